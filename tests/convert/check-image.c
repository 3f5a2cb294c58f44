/* SPDX-License-Identifier: MIT */
/* check-image.c - image and video models in one .safetensors file
 *
 * A file has the tensors that tell its architecture, and others. Expected
 * names, types, shapes and keys follow from the rules of image.h.
 */
#include "config.h"
#include "gguf/convert.h"
#include "gguf/dtype.h"
#include "gguf/file.h"
#include "gguf/recipe.h"
#include "gguf/stats.h"
#include "tests/scratch.h"
#define STFILE_MOST (1 << 20)
#include "tests/stfile.h"
#include "tests/tap.h"

#include <sys/stat.h>
#include <unistd.h>

#define FLUX   "double_blocks.0.img_attn.proj.weight"
#define HYVID  "double_blocks.0.img_attn_proj.weight"
#define REFINE "txt_in.individual_token_refiner.blocks.1.self_attn_qkv.weight"
#define COMFY  "model.diffusion_model."
#define SHAPE  "comfy.gguf.orig_shape."

static char top[200];
static struct stfile st, ended;
static struct gguf_file *made;
static struct gguf_error err;

/* Write the tensors as a file, and convert it to recipe's types. */
static enum gguf_status convert_file(const char *recipe)
{
    struct gguf_convert *c = NULL;
    struct gguf_quant *job = NULL;
    struct gguf_recipe *r = NULL;
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_limits limits = GGUF_LIMITS_INIT;
    struct gguf_file_params file = GGUF_FILE_PARAMS_INIT;
    char in[300], out[300];
    limits.max_name_size = 128;
    file.limits = &limits;
    snprintf(in, sizeof in, "%s", scratch_path(top, "in.safetensors"));
    snprintf(out, sizeof out, "%s", scratch_path(top, "out.gguf"));
    struct stfile *const whole = &ended;
    *whole = st;
    const size_t size = stfile_end(whole);
    FILE *o = fopen(in, "wb");
    if (!o || fwrite(whole->bytes, 1, size, o) != size || fclose(o))
        return GGUF_E_IO;
    unlink(out);
    gguf_file_close(made);
    made = NULL;
    gguf_error_clear(&err);
    enum gguf_status s = gguf_convert_open(&c, in, NULL, &err);
    if (s == GGUF_OK)
        s = gguf_recipe_preset(&r, recipe, NULL, &err);
    p.recipe = r;
    if (s == GGUF_OK)
        s = gguf_convert_create_job(&job, c, &p, &err);
    if (s == GGUF_OK)
        s = gguf_quant_run(job, out, NULL, &err);
    if (s == GGUF_OK)
        s = gguf_file_open(&made, out, &file, &err);
    gguf_quant_destroy(job);
    gguf_convert_close(c);
    gguf_recipe_destroy(r);
    return s;
}

/* Is the tensor in the file, with this type and these dimensions? */
static bool has_tensor(const char *name, uint32_t dtype, unsigned n_dims,
                       int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3)
{
    const struct gguf_tensor_info *t =
        made ? gguf_file_tensor_find(made, name) : NULL;
    return t && t->dtype == dtype && t->n_dims == n_dims && t->ne[0] == ne0 &&
           t->ne[1] == ne1 && t->ne[2] == ne2 && t->ne[3] == ne3;
}

static bool has_text(const char *key, const char *want)
{
    struct gguf_str s;
    const struct gguf_kv *kv = made ? gguf_file_kv_find(made, key) : NULL;
    return kv && gguf_kv_get_str(kv, &s, NULL) == GGUF_OK &&
           s.size == strlen(want) && !memcmp(s.data, want, s.size);
}

static bool has_shape(const char *key, const int32_t *want, size_t n)
{
    int32_t x[8];
    const struct gguf_kv *kv = made ? gguf_file_kv_find(made, key) : NULL;
    return kv && kv->type == GGUF_VAL_ARR && kv->n == n && n <= 8 &&
           gguf_kv_get_elems_i32(kv, 0, n, x, NULL) == GGUF_OK &&
           !memcmp(x, want, n * sizeof *x);
}

static void check_types(void)
{
    stfile_begin(&st);
    stfile_add(&st, COMFY FLUX, "BF16", "40,64", 5120);
    stfile_add(&st, COMFY "img_in.weight", "BF16", "40,64", 5120);
    stfile_add(&st, COMFY "img_in.bias", "BF16", "40", 80);
    stfile_add(&st, COMFY "small.weight", "BF16", "32,32", 2048);
    stfile_add(&st, COMFY "pad_token", "BF16", "1,1280", 2560);
    stfile_add(&st, COMFY "f32.weight", "F32", "40,64", 10240);
    stfile_add(&st, COMFY "f16.bias", "F16", "40", 80);
    stfile_add(&st, COMFY "number", "F32", "", 4);
    stfile_add(&st, COMFY "ids", "I64", "3", 24);
    stfile_add(&st, "vae.decoder.weight", "BF16", "4,4", 32);
    stfile_add(&st, "ema." COMFY "img_in.weight", "BF16", "4,4", 32);
    ok(convert_file("COPY") == GGUF_OK, "a checkpoint is converted: %s",
       err.message);
    ok(made && gguf_file_n_tensors(made) == 9 &&
           has_text("general.architecture", "flux"),
       "only tensors that begin with the prefix are kept, without it");
    ok(has_tensor(FLUX, GGUF_DTYPE_BF16, 2, 64, 40, 1, 1), "BF16 stays");
    ok(has_tensor("img_in.bias", GGUF_DTYPE_F32, 1, 40, 1, 1, 1) &&
           has_tensor("small.weight", GGUF_DTYPE_F32, 2, 32, 32, 1, 1),
       "vectors and small tensors of BF16 become F32");
    ok(has_tensor("pad_token", GGUF_DTYPE_F32, 2, 1280, 1, 1, 1),
       "so does a parameter that is no layer's; its dimension of 1 stays");
    ok(has_tensor("f32.weight", GGUF_DTYPE_F16, 2, 64, 40, 1, 1) &&
           has_tensor("f16.bias", GGUF_DTYPE_F16, 1, 40, 1, 1, 1),
       "F32 becomes F16, F16 stays");
    ok(has_tensor("number", GGUF_DTYPE_F32, 1, 1, 1, 1, 1) &&
           has_tensor("ids", GGUF_DTYPE_I64, 1, 3, 1, 1, 1),
       "a number has one dimension; whole numbers stay");
    ok(convert_file("Q8_0") == GGUF_OK &&
           has_tensor(FLUX, GGUF_DTYPE_Q8_0, 2, 64, 40, 1, 1) &&
           has_tensor("img_in.weight", GGUF_DTYPE_BF16, 2, 64, 40, 1, 1) &&
           has_tensor("pad_token", GGUF_DTYPE_F32, 2, 1280, 1, 1, 1),
       "quantization keeps what the architecture names: %s", err.message);
}

static void check_dimensions(void)
{
    static const int32_t five[] = { 8, 4, 3, 2, 2 }, conv[] = { 16, 32, 3, 3 };
    stfile_begin(&st);
    stfile_add(&st, HYVID, "BF16", "4,4", 32);
    stfile_add(&st, REFINE, "BF16", "4,4", 32);
    uint8_t *x =
        stfile_add(&st, "img_in.proj.weight", "BF16", "8,4,3,2,2", 768);
    x[766] = 0x80, x[767] = 0x3f; /* 1 */
    ok(convert_file("COPY") == GGUF_OK &&
           has_tensor("img_in.proj.weight", GGUF_DTYPE_F32, 4, 2, 2, 3, 32) &&
           has_shape(SHAPE "img_in.proj.weight", five, 5),
       "five dimensions become four and a key: %s", err.message);
    stfile_begin(&st);
    stfile_add(&st, "label_emb.0.0.weight", "F16", "512,512", 2 * 512 * 512);
    stfile_add(&st, "conv.weight", "F16", "16,32,3,3", 9216);
    stfile_add(&st, "odd.weight", "F16", "3,3", 18);
    ok(convert_file("COPY") == GGUF_OK &&
           has_text("general.architecture", "sdxl") &&
           has_tensor("conv.weight", GGUF_DTYPE_F16, 2, 256, 18, 1, 1) &&
           has_shape(SHAPE "conv.weight", conv, 4) &&
           has_tensor("odd.weight", GGUF_DTYPE_F16, 2, 3, 3, 1, 1) &&
           !gguf_file_kv_find(made, SHAPE "odd.weight") &&
           !gguf_file_kv_find(made, SHAPE "label_emb.0.0.weight"),
       "filters get rows of 256, if they have so many: %s", err.message);
}

static float read_number(const char *name, uint64_t i)
{
    struct gguf_rows *rows = NULL;
    float x = -1;
    const struct gguf_tensor_info *t =
        made ? gguf_file_tensor_find(made, name) : NULL;
    if (!t || gguf_rows_create(&rows, NULL, NULL) != GGUF_OK ||
        gguf_rows_decode(rows, made, t->index, i, 1, &x, NULL) != GGUF_OK)
        x = -1;
    gguf_rows_destroy(rows);
    return x;
}

static void put_float(uint8_t *p, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    gg_bytes_store32le(p, bits);
}

static void check_scales(void)
{
    stfile_begin(&st);
    uint8_t *x = stfile_add(&st, FLUX, "F8_E4M3", "40,64", 2560);
    x[1] = 0x38;                                                /* 1 */
    stfile_add(&st, "a.weight", "F8_E4M3", "2,2", 4)[2] = 0x40; /* 2 */
    put_float(stfile_add(&st, "a.weight_scale", "F32", "2,1", 8) + 4, 3);
    put_float(stfile_add(&st, "double_blocks.0.img_attn.proj.scale_weight",
                         "F32", "", 4),
              0.75f);
    stfile_add(&st, "double_blocks.0.img_attn.proj.scale_input", "F32", "", 4);
    stfile_add(&st, "scaled_fp8", "F8_E4M3", "2", 2);
    stfile_add(&st, "a.comfy_quant", "U8", "4", 4);
    ok(convert_file("COPY") == GGUF_OK && gguf_file_n_tensors(made) == 2,
       "scales and notes are not in the file: %s", err.message);
    ok(read_number(FLUX, 1) == 0.75f && read_number("a.weight", 2) == 6,
       "8-bit floats are multiplied by their scales");
}

static void check_config(void)
{
    stfile_begin(&st);
    st.n_header += (size_t)sprintf(
        st.header + st.n_header,
        "\"__metadata__\":{\"format\":\"pt\",\"config\":\"{\\\"a\\\":1}\"}");
    stfile_add(&st, "net." FLUX, "BF16", "4,4", 32);
    stfile_add(&st, "logvar.weight", "BF16", "4,4", 32);
    ok(convert_file("COPY") == GGUF_OK && has_text("config", "{\"a\":1}") &&
           gguf_file_n_tensors(made) == 1,
       "the text config of the metadata is a key: %s", err.message);
}

static void refuse_file(const char *why, const char *what)
{
    ok(convert_file("COPY") == GGUF_E_ARCH && strstr(err.message, why),
       "%s: %s", what, err.message);
}

static void check_refused(void)
{
    char name[140];
    stfile_begin(&st);
    stfile_add(&st, FLUX, "BF16", "4,4", 32);
    stfile_add(&st, HYVID, "BF16", "4,4", 32);
    stfile_add(&st, REFINE, "BF16", "4,4", 32);
    refuse_file("flux and hyvid", "names of two architectures");
    stfile_begin(&st);
    stfile_add(&st, HYVID, "BF16", "4,4", 32);
    refuse_file("a folder is wanted", "one name of two");
    stfile_begin(&st);
    stfile_add(&st, "transformer_blocks.0.attn.add_q_proj.weight", "BF16",
               "4,4", 32);
    refuse_file("diffusers", "the layout of diffusers");
    for (size_t n = 127; n <= 128; n++) {
        memset(name, 'x', n);
        name[n] = 0;
        stfile_begin(&st);
        stfile_add(&st, FLUX, "BF16", "4,4", 32);
        stfile_add(&st, name, "BF16", "4,4", 32);
        ok(convert_file("COPY") == (n == 127 ? GGUF_OK : GGUF_E_LIMIT),
           "a name of %zu bytes: %s", n, err.message);
    }
    unlink(scratch_path(top, "in.safetensors"));
    struct gguf_convert *c;
    ok(gguf_convert_open(&c, scratch_path(top, "in.safetensors"), NULL,
                         &err) == GGUF_E_NOTFOUND &&
           !c,
       "a missing file: %s", err.message);
}

int main(void)
{
    snprintf(top, sizeof top, "check-image.%d.tmp", (int)getpid());
    if (mkdir(top, 0777) != 0)
        return 99;
    check_types();
    check_dimensions();
    check_scales();
    check_config();
    check_refused();
    gguf_file_close(made);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
