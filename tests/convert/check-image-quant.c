/* SPDX-License-Identifier: MIT */
/* check-image-quant.c - quantized weights of image models, as ComfyUI has them
 *
 * Numbers are computed here from the definitions: E2M1 and E4M3 (OCP
 * Microscaling Formats 1.0, OCP 8-bit Floating Point), E8M0, and the order of
 * scales that cuBLAS wants: tile by tile, in each tile row by row of 32, and in
 * these four rows at a distance of 32 with four groups each.
 */
#include "config.h"
#include "tests/convert/image_file.h"
#include "tests/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#define FLUX  "double_blocks.0.img_attn.proj.weight"
#define LAYER "double_blocks.1.img_mlp.0"

static double e2m1(unsigned c)
{
    const unsigned e = c >> 1 & 3, m = c & 1;
    const double v = e ? ldexp(1 + 0.5 * m, (int)e - 1) : 0.5 * m;
    return c & 8 ? -v : v;
}

static double e4m3(unsigned c)
{
    const unsigned e = c >> 3 & 15, m = c & 7;
    const double v = e ? ldexp(1 + m / 8.0, (int)e - 7) : ldexp(m / 8.0, -6);
    return c & 128 ? -v : v;
}

/* Codes of number (row, col) and of its scale. */
static unsigned code_of(int row, int col)
{
    return (unsigned)(row * 37 + col * 11 + row * col) % 251;
}
static unsigned scale_of(int row, int group)
{
    return (unsigned)(row * 5 + group * 29 + 3) % 120; /* positive, no NaN */
}

/* Write the scales of [rows, groups] in the order of tiles. */
static void put_tiles(uint8_t *p, int rows, int groups, unsigned plus)
{
    for (int tr = 0; tr < rows; tr += 128)
        for (int tg = 0; tg < groups; tg += 4)
            for (int r = 0; r < 32; r++)
                for (int quarter = 0; quarter < 4; quarter++)
                    for (int g = 0; g < 4; g++) {
                        const int row = tr + 32 * quarter + r, group = tg + g;
                        *p++ = row < rows && group < groups
                                   ? (uint8_t)(scale_of(row, group) + plus)
                                   : 0;
                    }
}

static void add_text(const char *name, const char *text)
{
    char shape[20];
    snprintf(shape, sizeof shape, "%zu", strlen(text));
    memcpy(stfile_add(&st, name, "U8", shape, strlen(text)), text,
           strlen(text));
}

/* Begin a file whose other weights are BF16. */
static void begin_file(const char *metadata)
{
    stfile_begin(&st);
    if (metadata)
        st.n_header += (size_t)sprintf(st.header + st.n_header,
                                       "\"__metadata__\":{%s}", metadata);
    stfile_add(&st, FLUX, "BF16", "320,256", 2 * 320 * 256);
}

enum { ROWS = 144, COLS = 96 };

static void add_nvfp4(const char *layer, const char *scale_type, float all)
{
    char name[100];
    snprintf(name, sizeof name, "%s.weight", layer);
    uint8_t *p = stfile_add(&st, name, "U8", "144,48", ROWS * COLS / 2);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c += 2)
            *p++ = (uint8_t)((code_of(r, c) & 15) << 4 |
                             (code_of(r, c + 1) & 15));
    snprintf(name, sizeof name, "%s.weight_scale", layer);
    put_tiles(stfile_add(&st, name, scale_type, "256,8", 256 * 8), ROWS,
              COLS / 16, 0);
    snprintf(name, sizeof name, "%s.weight_scale_2", layer);
    put_float(stfile_add(&st, name, "F32", "", 4), all);
    snprintf(name, sizeof name, "%s.input_scale", layer);
    put_float(stfile_add(&st, name, "F32", "", 4), 1);
}

/* Number of elements of the weight that differ from BF16 of the definition. */
static int count_wrong(int rows, bool fp4, float all)
{
    static float x[ROWS * COLS];
    struct gguf_rows *reader = NULL;
    const struct gguf_tensor_info *t =
        made ? gguf_file_tensor_find(made, LAYER ".weight") : NULL;
    int wrong = 0;
    if (!t || t->dtype != GGUF_DTYPE_BF16 || t->ne[0] != COLS ||
        t->ne[1] != rows || gguf_rows_create(&reader, NULL, NULL) != GGUF_OK ||
        gguf_rows_decode(reader, made, t->index, 0, (uint64_t)rows * COLS, x,
                         NULL) != GGUF_OK)
        return -1;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < COLS; c++) {
            const double v = fp4 ? e2m1(code_of(r, c) & 15) *
                                       e4m3(scale_of(r, c / 16)) * (double)all
                                 : e4m3(code_of(r, c) & 0xbf) *
                                       ldexp(1, (int)scale_of(r, c / 32) - 64);
            /* BF16 of a double: 8 significant bits. */
            int e;
            const double m = frexp(v, &e);
            const double want = ldexp(nearbyint(ldexp(m, 8)), e - 8);
            wrong += x[r * COLS + c] != (float)want;
        }
    gguf_rows_destroy(reader);
    return wrong;
}

#define NVFP4 "{\"format\": \"nvfp4\"}"

static void check_nvfp4(void)
{
    begin_file(NULL);
    add_nvfp4(LAYER, "F8_E4M3", 0.3f);
    add_text(LAYER ".comfy_quant", NVFP4);
    ok(convert_file("COPY") == GGUF_OK && gguf_file_n_tensors(made) == 2,
       "a layer of nvfp4 is one tensor: %s", err.message);
    ok(!count_wrong(ROWS, true, 0.3f), "its numbers");
    ok(convert_file("Q8_0") == GGUF_OK &&
           has_tensor(LAYER ".weight", GGUF_DTYPE_Q8_0, 2, COLS, ROWS, 1, 1),
       "it is quantized: %s", err.message);

    begin_file("\"_quantization_metadata\":\"{\\\"layers\\\":{\\\"" LAYER
               "\\\":{\\\"format\\\":\\\"nvfp4\\\"},\\\"te.x\\\":"
               "{\\\"format\\\":\\\"new\\\"}}}\"");
    add_nvfp4(LAYER, "U8", 2);
    stfile_add(&st, LAYER ".bias", "BF16", "130", 260);
    ok(convert_file("COPY") == GGUF_OK && !count_wrong(130, true, 2),
       "the metadata name the form; padded rows are cut to the bias: %s",
       err.message);

    stfile_begin(&st);
    st.n_header += (size_t)sprintf(
        st.header + st.n_header,
        "\"__metadata__\":{\"_quantization_metadata\":\"{\\\"layers\\\":"
        "{\\\"" LAYER "\\\":\\\"nvfp4\\\"}}\"}");
    stfile_add(&st, "model.diffusion_model." FLUX, "BF16", "320,256",
               2 * 320 * 256);
    add_nvfp4("model.diffusion_model." LAYER, "F8_E4M3", 1);
    ok(convert_file("COPY") == GGUF_OK && !count_wrong(ROWS, true, 1),
       "the metadata may lack the prefix: %s", err.message);
}

static void add_mxfp8(const char *scale_type)
{
    uint8_t *p =
        stfile_add(&st, LAYER ".weight", "F8_E4M3", "144,96", ROWS * COLS);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            *p++ = (uint8_t)(code_of(r, c) & 0xbf);
    put_tiles(
        stfile_add(&st, LAYER ".weight_scale", scale_type, "256,4", 256 * 4),
        ROWS, COLS / 32, 127 - 64);
    add_text(LAYER ".comfy_quant", "{\"format\":\"mxfp8\"}");
}

static void check_others(void)
{
    begin_file(NULL);
    add_mxfp8("F8_E8M0");
    ok(convert_file("COPY") == GGUF_OK && !count_wrong(ROWS, false, 1),
       "a layer of mxfp8: %s", err.message);
    begin_file(NULL);
    add_mxfp8("U8");
    ok(convert_file("COPY") == GGUF_OK && !count_wrong(ROWS, false, 1),
       "scales of mxfp8 as bytes: %s", err.message);

    begin_file(NULL);
    uint8_t *p = stfile_add(&st, "a.weight", "I8", "2,600", 1200);
    p[1] = 0xfd; /* -3 */
    p[600] = 127;
    p = stfile_add(&st, "a.weight_scale", "F32", "2,1", 8);
    put_float(p, 0.5f);
    put_float(p + 4, 0.25f);
    add_text("a.comfy_quant", "{\"format\":\"int8_tensorwise\"}");
    stfile_add(&st, "b.weight", "F8_E5M2", "2,600", 1200)[1] = 0x44; /* 4 */
    put_float(stfile_add(&st, "b.weight_scale", "F32", "1", 4), 1.5f);
    add_text("b.comfy_quant", "{\"format\":\"float8_e5m2\"}");
    stfile_add(&st, "c.weight", "BF16", "2,600", 2400);
    put_float(stfile_add(&st, "c.scale_weight", "F32", "", 4), 1);
    ok(convert_file("COPY") == GGUF_OK && gguf_file_n_tensors(made) == 4 &&
           has_tensor("a.weight", GGUF_DTYPE_BF16, 2, 600, 2, 1, 1),
       "whole numbers, 8-bit floats, and a scale of 1: %s", err.message);
    ok(read_number("a.weight", 1) == -1.5f &&
           read_number("a.weight", 600) == 31.75f &&
           read_number("b.weight", 1) == 6,
       "their numbers");
}

static void check_refusal(enum gguf_status status, const char *why)
{
    const enum gguf_status s = convert_file("COPY");
    ok(s == status && strstr(err.message, why), "refused: %s", err.message);
}

static void check_refused(void)
{
    begin_file(NULL);
    add_nvfp4(LAYER, "F8_E4M3", 1);
    check_refusal(GGUF_E_UNSUPPORTED, "no comfy_quant");
    add_text(LAYER ".comfy_quant", "{\"format\":\"svdquant_w4a4\"}");
    check_refusal(GGUF_E_UNSUPPORTED, "format 'svdquant_w4a4'");
    begin_file(NULL);
    add_nvfp4(LAYER, "F8_E4M3", NAN);
    add_text(LAYER ".comfy_quant", NVFP4);
    check_refusal(GGUF_E_TENSOR, "not finite");
    begin_file(NULL);
    add_nvfp4(LAYER, "F8_E5M2", 1);
    add_text(LAYER ".comfy_quant", NVFP4);
    check_refusal(GGUF_E_TENSOR, "do not fit its groups");
    begin_file(NULL);
    stfile_add(&st, "a.weight", "U8", "16,8", 128);
    add_text("a.comfy_quant", NVFP4);
    check_refusal(GGUF_E_TENSOR, "weight_scale is missing");
    stfile_add(&st, "a.weight_scale", "F8_E4M3", "128,4", 512);
    check_refusal(GGUF_E_TENSOR, "weight_scale_2 is missing");
    stfile_add(&st, "a.pre_quant_scale", "F32", "16", 64);
    check_refusal(GGUF_E_UNSUPPORTED, "pre_quant_scale");
    begin_file(NULL);
    stfile_add(&st, "a.weight", "U8", "16,7", 112);
    add_text("a.comfy_quant", NVFP4);
    check_refusal(GGUF_E_TENSOR, "groups of 16");
    begin_file(NULL);
    stfile_add(&st, "a.weight", "F8_E4M3", "16,48", 768);
    add_text("a.comfy_quant", "{\"format\":\"mxfp8\"}");
    check_refusal(GGUF_E_TENSOR, "groups of 32");
    begin_file(NULL);
    stfile_add(&st, "a.weight", "I8", "2,2", 4);
    put_float(stfile_add(&st, "a.weight_scale", "F32", "", 4), 1);
    add_text("a.comfy_quant", "{\"format\":\"int8_tensorwise\","
                              "\"params\":{\"convrot\":true}}");
    check_refusal(GGUF_E_UNSUPPORTED, "convrot");
    begin_file(NULL);
    stfile_add(&st, "a.weight", "BF16", "2,2", 8);
    put_float(stfile_add(&st, "a.weight_scale", "F32", "", 4), 2);
    check_refusal(GGUF_E_TENSOR, "not of 8-bit floats");
    add_text("a.comfy_quant", "{\"format\":\"float8_e4m3fn\"}");
    check_refusal(GGUF_E_TENSOR, "not 8-bit floats");
    begin_file(NULL);
    stfile_add(&st, "a.weight", "BF16", "2,2", 8);
    add_text("a.comfy_quant", "{\"format\":4}");
    check_refusal(GGUF_E_TENSOR, "lacks a format");
    begin_file(NULL);
    stfile_add(&st, "a.weight", "BF16", "2,2", 8);
    add_text("a.comfy_quant", "{\"format\"}");
    check_refusal(GGUF_E_FORMAT, "a.comfy_quant: JSON");
    begin_file("\"_quantization_metadata\":\"{\\\"layers\\\"\"");
    check_refusal(GGUF_E_FORMAT, "_quantization_metadata: JSON");
}

int main(void)
{
    snprintf(top, sizeof top, "check-image-quant.%d.tmp", (int)getpid());
    if (gg_os_make_folder(top) != 0)
        return 99;
    check_nvfp4();
    check_others();
    check_refused();
    gguf_file_close(made);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
