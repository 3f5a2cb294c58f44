/* SPDX-License-Identifier: MIT */
/* check-nibbles.c - weights of 4-bit numbers, compared with double precision
 *
 * Numbers and scales are drawn, packed as each form's authors pack them, and
 * read back. Expected values are computed from the drawn numbers. Tables
 * follow their definitions: NF4's is the published one, E2M1's and E4M3's are
 * computed.
 */
#include "config.h"
#include "base/bytes.h"
#include "data/nibbles.h"
#include "kern/cpu_features.h"
#include "tests/stfile.h"
#include "tests/tap.h"

#include <math.h>

enum { ROWS = 6, COLS = 96, N = ROWS * COLS };

static struct gg_codec_kern codec[GG_N_DTYPES];
static struct stfile file;
static double want[N];

static uint8_t *add_tensor(const char *name, const char *type,
                           const char *shape, size_t size)
{
    return stfile_add(&file, name, type, shape, size);
}

static void put_f32(uint8_t *p, size_t i, double x)
{
    gg_bytes_store32le(p + 4 * i, gg_bytes_f32_bits((float)x));
}

static enum gguf_status open_it(struct gg_safetensors **s,
                                enum gg_nibbles_form form,
                                struct gguf_error *e)
{
    const size_t size = stfile_end(&file);
    gguf_error_clear(e);
    enum gguf_status st =
        gg_safetensors_open_memory(s, file.bytes, size, NULL, codec, NULL, e);
    if (st == GGUF_OK)
        st = gg_nibbles_join(*s, form, e);
    if (st == GGUF_OK)
        st = gg_safetensors_scale(*s, e);
    if (st != GGUF_OK) {
        gg_safetensors_close(*s);
        *s = NULL;
    }
    return st;
}

/* Does the list's x.weight have the expected numbers, as a whole and in
 * pieces? In single precision some roundings are allowed. */
static void is_weight(enum gg_nibbles_form form, uint32_t own,
                      const char *what)
{
    static float x[N], piece[7];
    struct gg_safetensors *s;
    struct gguf_error e;
    struct gg_data_rows r;
    struct gg_data_info info;
    bool good = open_it(&s, form, &e) == GGUF_OK;
    const uint32_t i =
        good ? gg_safetensors_find(s, (struct gguf_str){ "x.weight", 8 })
             : GG_INDEX_NONE;
    good = i != GG_INDEX_NONE &&
           gg_data_rows(&s->list, i, &r, &e) == GGUF_OK &&
           !gg_data_bytes(&s->list, i) && s->tensor[i].type->own == own;
    if (good) {
        gg_data_info(&s->list, i, &info);
        gg_data_read(&r, 0, N, x);
        gg_data_read(&r, COLS + 13, 7, piece);
        good = info.n_dims == 2 && info.ne[0] == COLS && info.ne[1] == ROWS &&
               !memcmp(piece, x + COLS + 13, sizeof piece);
    }
    for (int k = 0; good && k < N; k++)
        good = fabs((double)x[k] - want[k]) <= fabs(want[k]) * 0x1p-21;
    for (size_t k = 0; good && k < s->n_tensors; k++)
        good = k == i || s->tensor[k].is_part ==
                             !strncmp(s->tensor[k].name.data, "x.", 2);
    ok(good, "%s %s", what, e.message);
    gg_safetensors_close(s);
}

/* ---- NVFP4 ---- */

static double e2m1(int code)
{
    const int e = code >> 1 & 3, m = code & 1;
    const double x = e ? ldexp(1 + m / 2.0, e - 1) : m / 2.0;
    return code & 8 ? -x : x;
}

static double e4m3(int code)
{
    const int e = code >> 3 & 15, m = code & 7;
    return e ? ldexp(1 + m / 8.0, e - 7) : ldexp(m / 8.0, -6);
}

static void put_nvfp4(bool pack, double all)
{
    stfile_begin(&file);
    uint8_t *q =
        add_tensor(pack ? "x.weight_packed" : "x.weight", "U8", "6,48", N / 2);
    uint8_t *p = add_tensor("x.weight_scale", "F8_E4M3", "6,6", N / 16);
    put_f32(add_tensor(pack ? "x.weight_global_scale" : "x.weight_scale_2",
                       "F32", pack ? "1" : "", 4),
            0, all);
    add_tensor("y.weight", "BF16", "2,2", 8); /* not quantized */
    for (int b = 0; b < N / 16; b++)
        p[b] = (uint8_t)rnd_below(0x7f);
    for (int i = 0; i < N; i++) {
        const int code = (int)rnd_below(16);
        q[i / 2] |= (uint8_t)(code << 4 * (i % 2));
        want[i] = e2m1(code) * e4m3(p[i / 16]) *
                  (pack ? 1 / (double)(float)all : (double)(float)all);
    }
}

/* ---- bitsandbytes ---- */

static const double nf4[16] = { -1,
                                -0.6961928009986877,
                                -0.5250730514526367,
                                -0.39491748809814453,
                                -0.28444138169288635,
                                -0.18477343022823334,
                                -0.09105003625154495,
                                0,
                                0.07958029955625534,
                                0.16093020141124725,
                                0.24611230194568634,
                                0.33791524171829224,
                                0.44070982933044434,
                                0.5626170039176941,
                                0.7229568362236023,
                                1 };

static void put_bnb(bool nested, const char *dtype)
{
    enum { BLOCK = 64, SCALES = N / BLOCK, MORE = 4 };
    char state[300], shape[20];
    double scale[SCALES];
    stfile_begin(&file);
    uint8_t *q = add_tensor("x.weight", "U8", "288,1", N / 2);
    uint8_t *p = add_tensor("x.weight.absmax", nested ? "U8" : "F32", "9",
                            nested ? SCALES : 4 * SCALES);
    uint8_t *map = add_tensor("x.weight.quant_map", "F32", "16", 64);
    for (size_t i = 0; i < 16; i++)
        put_f32(map, i, nf4[i]);
    if (nested) {
        uint8_t *m =
            add_tensor("x.weight.nested_quant_map", "F32", "256", 1024);
        uint8_t *a = add_tensor("x.weight.nested_absmax", "F32", "3", 12);
        for (size_t i = 0; i < 256; i++)
            put_f32(m, i, (double)i / 256);
        for (size_t i = 0; i < 3; i++)
            put_f32(a, i, (double)i + 0.5);
    }
    for (int i = 0; i < SCALES; i++) {
        const int code = (int)rnd_below(256);
        scale[i] = nested ? code / 256.0 * (i / MORE + 0.5) + 0.125
                          : (code + 1) / 64.0;
        if (nested)
            p[i] = (uint8_t)code;
        else
            put_f32(p, (size_t)i, scale[i]);
    }
    sprintf(state,
            "{\"quant_type\":\"nf4\",\"blocksize\":64,\"dtype\":\"%s\","
            "\"shape\":[%d,%d]%s}",
            dtype, ROWS, COLS,
            nested ? ",\"nested_blocksize\":4,\"nested_dtype\":\"float32\","
                     "\"nested_offset\":0.125"
                   : "");
    sprintf(shape, "%zu", strlen(state));
    memcpy(add_tensor("x.weight.quant_state.bitsandbytes__nf4", "U8", shape,
                      strlen(state)),
           state, strlen(state));
    for (int i = 0; i < N; i++) {
        const int code = (int)rnd_below(16);
        q[i / 2] |= (uint8_t)(code << (i % 2 ? 0 : 4));
        want[i] = (double)(float)nf4[code] * scale[i / BLOCK];
    }
}

/* ---- refused weights ---- */

static void check_refusal(enum gg_nibbles_form form, const char *word)
{
    struct gg_safetensors *s = NULL;
    struct gguf_error e;
    ok(open_it(&s, form, &e) == GGUF_E_TENSOR && strstr(e.message, word) && !s,
       "refused: %s", e.message);
}

static void check_refused(void)
{
    put_nvfp4(false, 0);
    check_refusal(GG_NIBBLES_NVFP4, "is 0 or not finite");
    put_nvfp4(true, INFINITY);
    check_refusal(GG_NIBBLES_NVFP4_PACK, "is 0 or not finite");
    stfile_begin(&file);
    add_tensor("x.weight", "U8", "2,8", 16);
    add_tensor("x.weight_scale", "F8_E4M3", "2,1", 2);
    check_refusal(GG_NIBBLES_NVFP4, "scale for all weights");
    stfile_begin(&file);
    add_tensor("x.weight", "U8", "2,8", 16);
    add_tensor("x.weight_scale", "F8_E4M3", "1,2", 2);
    check_refusal(GG_NIBBLES_NVFP4, "do not fit its blocks");
    stfile_begin(&file);
    add_tensor("x.weight", "U8", "2,7", 14);
    add_tensor("x.weight_scale", "F8_E4M3", "2,1", 2);
    check_refusal(GG_NIBBLES_NVFP4, "blocks of 16");
    stfile_begin(&file);
    add_tensor("x.weight", "U8", "8,1", 8);
    add_tensor("x.weight.absmax", "F32", "1", 4);
    check_refusal(GG_NIBBLES_BNB, "quant_map is missing");
    stfile_begin(&file);
    add_tensor("x.weight", "U8", "8,1", 8);
    add_tensor("x.weight.absmax", "F32", "1", 4);
    add_tensor("x.weight.quant_map", "F32", "16", 64);
    memcpy(
        add_tensor("x.weight.quant_state.bitsandbytes__nf4", "U8", "16", 16),
        "{\"blocksize\": 1}", 16);
    check_refusal(GG_NIBBLES_BNB, "lacks shape");
    put_bnb(false, "bfloat16");
    file.data[file.n_data - 4] = '5'; /* 95 columns */
    check_refusal(GG_NIBBLES_BNB, "fit its shape");
}

int main(void)
{
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    put_nvfp4(false, 0.0123);
    is_weight(GG_NIBBLES_NVFP4, GGUF_DTYPE_BF16, "NVFP4 of modelopt");
    put_nvfp4(true, 731.5);
    is_weight(GG_NIBBLES_NVFP4_PACK, GGUF_DTYPE_BF16,
              "NVFP4 of compressed-tensors");
    put_bnb(false, "bfloat16");
    is_weight(GG_NIBBLES_BNB, GGUF_DTYPE_BF16, "NF4");
    put_bnb(true, "float16");
    is_weight(GG_NIBBLES_BNB, GGUF_DTYPE_F16, "NF4, scales of a table");
    check_refused();
    return done_testing();
}
