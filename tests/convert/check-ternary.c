/* SPDX-License-Identifier: MIT */
/* check-ternary.c - matrices of -v, 0 and v become folders and files with the
 * same numbers
 *
 * BitNet's conversion is computed here from its definition: with the mean
 * magnitude m of a matrix, round(x / m), limited to 1, times m. The file
 * becomes a folder in the file's type, and that a file with the same matrices.
 */
#include "config.h"
#define STFILE_MOST (1 << 22)
#include "gguf/stats.h"
#include "tests/convert/folder.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/stfile.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

enum { E = 256, F = 512 };

static char top[200];
static struct folder folder;
static struct stfile file;

static const struct {
    const char *hf, *name;
    int rows, cols;
    int draw; /* one in `draw' numbers is far from 0; 0: all are 0 */
} linear[] = {
    { "self_attn.q_proj", "blk.0.attn_q.weight", E, E, 1 },
    { "self_attn.k_proj", "blk.0.attn_k.weight", E / 2, E, 3 },
    { "self_attn.v_proj", "blk.0.attn_v.weight", E / 2, E, 7 },
    { "self_attn.o_proj", "blk.0.attn_output.weight", E, E, 29 },
    { "mlp.gate_proj", "blk.0.ffn_gate.weight", F, E, 101 },
    { "mlp.up_proj", "blk.0.ffn_up.weight", F, E, 0 },
    { "mlp.down_proj", "blk.0.ffn_down.weight", E, F, 20000 },
};
enum { N = sizeof linear / sizeof *linear };

static float x[N][F * E];

/* Draw the numbers of matrix k; bf16: exact in BF16. */
static void draw_all(int k, bool bf16)
{
    const float size = 0.001f * (float)(1 + rnd_below(9999));
    for (int i = 0; i < linear[k].rows * linear[k].cols; i++) {
        const bool far =
            linear[k].draw && !rnd_below((uint64_t)linear[k].draw);
        const float y = size * (float)(1 + rnd_below(1 << 20)) * 0x1p-20f;
        x[k][i] = rnd_below(2) ? y : -y;
        if (!far)
            x[k][i] *= linear[k].draw ? 1e-5f : 0;
        if (bf16)
            x[k][i] = gg_bytes_f32_from_bits(gg_bytes_f32_bits(x[k][i]) &
                                             0xffff0000);
    }
}

static void add_tensor(const char *name, const char *dtype, int a, int b,
                       const float *from)
{
    char full[120], shape[60];
    const bool bf16 = !strcmp(dtype, "BF16");
    const size_t n = (size_t)a * (size_t)(b ? b : 1);
    snprintf(full, sizeof full, "model.%s", name);
    snprintf(shape, sizeof shape, b ? "%d,%d" : "%d", a, b);
    uint8_t *p = stfile_add(&file, full, dtype, shape, (bf16 ? 2 : 4) * n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits =
            gg_bytes_f32_bits(from ? from[i] : folder_value(full, i));
        if (bf16)
            gg_bytes_store16le(p + 2 * i, (uint16_t)(bits >> 16));
        else
            gg_bytes_store32le(p + 4 * i, bits);
    }
}

static void make_folder(const char *dtype)
{
    folder_begin(&folder, scratch_path(top, "bitnet"));
    folder_text(&folder, "config.json",
                "{\"architectures\":[\"BitnetForCausalLM\"],"
                "\"hidden_act\":\"silu\",\"hidden_size\":256,"
                "\"intermediate_size\":512,\"num_hidden_layers\":1,"
                "\"num_attention_heads\":4,\"num_key_value_heads\":2,"
                "\"vocab_size\":260,\"max_position_embeddings\":64,"
                "\"rms_norm_eps\":1e-5,\"rope_theta\":10000}");
    folder_bpe(&folder, false);
    stfile_begin(&file);
    add_tensor("embed_tokens.weight", dtype, FOLDER_VOCAB, E, NULL);
    add_tensor("norm.weight", dtype, E, 0, NULL);
    add_tensor("layers.0.input_layernorm.weight", dtype, E, 0, NULL);
    add_tensor("layers.0.post_attention_layernorm.weight", dtype, E, 0, NULL);
    add_tensor("layers.0.self_attn.inner_attn_ln.weight", dtype, E, 0, NULL);
    add_tensor("layers.0.mlp.ffn_layernorm.weight", dtype, F, 0, NULL);
    for (int k = 0; k < N; k++) {
        char name[80];
        snprintf(name, sizeof name, "layers.0.%s.weight", linear[k].hf);
        draw_all(k, !strcmp(dtype, "BF16"));
        add_tensor(name, dtype, linear[k].rows, linear[k].cols, x[k]);
    }
    const size_t size = stfile_end(&file);
    FILE *f = folder_create(&folder, "model.safetensors");
    if (fwrite(file.bytes, 1, size, f) != size || fclose(f) != 0)
        exit(99);
}

static bool read_all(const struct gguf_file *f, struct gguf_rows *rows, int k,
                     float *out)
{
    const struct gguf_tensor_info *t =
        f ? gguf_file_tensor_find(f, linear[k].name) : NULL;
    return t && t->n_elements == (uint64_t)(linear[k].rows * linear[k].cols) &&
           gguf_rows_decode(rows, f, t->index, 0, t->n_elements, out, NULL) ==
               GGUF_OK;
}

/* Does the file have x rounded by the definition, in single precision? */
static bool is_rounded(int k, const float *got)
{
    const int n = linear[k].rows * linear[k].cols;
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += fabs((double)x[k][i]);
    const float mean = (float)fmax(sum / n, 1e-5), scale = 1 / mean;
    for (int i = 0; i < n; i++) {
        const float y = fminf(fmaxf(rintf(x[k][i] * scale), -1), 1) / scale;
        if (fabsf(got[i] - y) > 1e-6f * mean)
            return false;
    }
    return true;
}

static void check_types(const char *dtype, const char *recipe,
                        struct gguf_rows *rows)
{
    static float got[F * E], again[F * E];
    struct gguf_folder_params p = GGUF_FOLDER_PARAMS_INIT;
    const char *a = scratch_path(top, "a.gguf"), *b = scratch_path(top, "b");
    struct gguf_file *fa = NULL, *fb = NULL;
    struct gguf_error e;
    p.no_sync = 1;
    gguf_error_clear(&e);
    make_folder(dtype);
    bool good =
        folder_convert(folder.dir, a, recipe, &e) == GGUF_OK &&
        gguf_folder_write(a, b, &p, &e) == GGUF_OK &&
        folder_convert(b, scratch_path(top, "b.gguf"), recipe, &e) ==
            GGUF_OK &&
        gguf_file_open(&fa, a, NULL, &e) == GGUF_OK &&
        gguf_file_open(&fb, scratch_path(top, "b.gguf"), NULL, &e) == GGUF_OK;
    ok(good, "%s as %s, and back: %s", dtype, recipe ? recipe : "it is",
       e.message);
    for (int k = 0; k < N; k++) {
        good = read_all(fa, rows, k, got) && read_all(fb, rows, k, again);
        ok(good && !memcmp(got, again,
                           sizeof *got * (size_t)linear[k].rows *
                               (size_t)linear[k].cols),
           "%s of %s as %s: the same numbers", linear[k].name, dtype,
           recipe ? recipe : "it is");
        if (!strcmp(dtype, "F32") && !recipe)
            ok(good && is_rounded(k, got), "%s: rounded by the mean",
               linear[k].name);
    }
    gguf_file_close(fa);
    gguf_file_close(fb);
    scratch_clean(top);
}

static void check_others(void)
{
    struct gguf_folder_params p = GGUF_FOLDER_PARAMS_INIT;
    const char *a = scratch_path(top, "a.gguf"), *b = scratch_path(top, "b");
    struct gguf_error e;
    p.no_sync = 1;
    make_folder("F32");
    const bool made = folder_convert(folder.dir, a, "Q4_0", &e) == GGUF_OK;
    ok(made && gguf_folder_write(a, b, &p, &e) == GGUF_E_TENSOR &&
           strstr(e.message, "attn_k.weight") && access(b, F_OK) != 0,
       "of Q4_0, which has other numbers, no folder is made: %s", e.message);
    scratch_clean(top);
}

int main(void)
{
    static const char *const recipes[] = { NULL, "F16", "TQ1_0", "TQ2_0" };
    struct gguf_rows *rows;
    snprintf(top, sizeof top, "check-ternary.%d.tmp", (int)getpid());
    if (gguf_rows_create(&rows, NULL, NULL) != GGUF_OK)
        return 99;
    static struct folder f;
    folder_begin(&f, top);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        check_types("F32", recipes[i], rows);
        check_types("BF16", recipes[i], rows);
    }
    check_others();
    scratch_clean(top);
    rmdir(top);
    gguf_rows_destroy(rows);
    return done_testing();
}
