/* SPDX-License-Identifier: MIT */
/* check-mxfp4.c - gpt-oss as it is published: experts in MXFP4, gates and
 * others in turns, become blocks of the same numbers
 *
 * What a folder's bytes stand for is written here from the definition of the
 * format (OCP Microscaling 1.0: E2M1 elements, E8M0 scales of 32) and of the
 * folder (two neighbours in a byte, the first one in the low half; row 2 i is
 * of a gate, 2 i + 1 of what it gates).
 */
#include "config.h"
#include "gguf/stats.h"
#include "tests/convert/folder.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/stfile.h"
#include "tests/tap.h"

#include <math.h>
#include <unistd.h>

enum { E = 64, F = 32, X = 3 }; /* width, of an expert, experts */

static char top[200];
static struct folder folder;
static struct stfile file;

static unsigned code_of(int down, int x, int r, int c)
{
    return (unsigned)(down * 3 + x * 5 + r * 7 + c * 3 + c / 16) % 16;
}

static int exponent_of(int down, int x, int r, int b)
{
    return 118 + (down + x * 2 + r + b * 3) % 17;
}

static float value_of(int down, int x, int r, int c)
{
    static const float e2m1[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    const unsigned code = code_of(down, x, r, c);
    const float v = e2m1[code & 7];
    return ldexpf(code & 8 ? -v : v, exponent_of(down, x, r, c / 32) - 127);
}

static void add_experts(int down, const char *name, int rows, int cols)
{
    char full[120], shape[60];
    snprintf(full, sizeof full, "model.layers.0.mlp.experts.%s_blocks", name);
    snprintf(shape, sizeof shape, "%d,%d,%d,16", X, rows, cols / 32);
    uint8_t *q = stfile_add(&file, full, "U8", shape,
                            (size_t)X * (size_t)rows * (size_t)cols / 2);
    snprintf(full, sizeof full, "model.layers.0.mlp.experts.%s_scales", name);
    snprintf(shape, sizeof shape, "%d,%d,%d", X, rows, cols / 32);
    uint8_t *s = stfile_add(&file, full, "U8", shape,
                            (size_t)X * (size_t)rows * (size_t)cols / 32);
    for (int x = 0; x < X; x++)
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < cols; c += 2) {
                *q++ = (uint8_t)(code_of(down, x, r, c) |
                                 code_of(down, x, r, c + 1) << 4);
                if (c % 32 == 0)
                    *s++ = (uint8_t)exponent_of(down, x, r, c / 32);
            }
}

static void add_floats(const char *name, int a, int b)
{
    char full[120], shape[60];
    snprintf(full, sizeof full, "model.%s", name);
    snprintf(shape, sizeof shape, b ? "%d,%d" : "%d", a, b);
    const size_t n = (size_t)a * (size_t)(b ? b : 1);
    uint8_t *p = stfile_add(&file, full, "BF16", shape, 2 * n);
    for (size_t i = 0; i < n; i++)
        gg_bytes_store16le(
            p + 2 * i,
            (uint16_t)(gg_bytes_f32_bits(folder_value(full, i)) >> 16));
}

static void make(void)
{
    folder_begin(&folder, scratch_path(top, "gpt-oss"));
    folder_text(
        &folder, "config.json",
        "{\"architectures\":[\"GptOssForCausalLM\"],\"hidden_size\":64,"
        "\"intermediate_size\":32,\"num_hidden_layers\":1,"
        "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":16,"
        "\"vocab_size\":260,\"max_position_embeddings\":64,\"rms_norm_eps\":"
        "1e-5,\"num_local_experts\":3,\"num_experts_per_tok\":2,"
        "\"sliding_window\":16,\"rope_theta\":150000,\"rope_scaling\":{"
        "\"rope_type\":\"yarn\",\"factor\":32.0,\"beta_fast\":32.0,"
        "\"beta_slow\":1.0,\"truncate\":false,"
        "\"original_max_position_embeddings\":4096},"
        "\"quantization_config\":{\"quant_method\":\"mxfp4\","
        "\"modules_to_not_convert\":[\"model.layers.*.self_attn\","
        "\"model.layers.*.mlp.router\",\"model.embed_tokens\",\"lm_head\"]}}");
    folder_bpe(&folder, false);
    stfile_begin(&file);
    add_floats("embed_tokens.weight", FOLDER_VOCAB, E);
    add_floats("norm.weight", E, 0);
    add_floats("layers.0.input_layernorm.weight", E, 0);
    add_floats("layers.0.post_attention_layernorm.weight", E, 0);
    add_floats("layers.0.self_attn.sinks", 4, 0);
    static const struct {
        const char *name;
        int rows, cols;
    } linear[] = { { "self_attn.q_proj", 64, E },
                   { "self_attn.k_proj", 32, E },
                   { "self_attn.v_proj", 32, E },
                   { "self_attn.o_proj", E, 64 },
                   { "mlp.router", X, E } };
    for (size_t i = 0; i < sizeof linear / sizeof *linear; i++) {
        char name[100];
        snprintf(name, sizeof name, "layers.0.%s.weight", linear[i].name);
        add_floats(name, linear[i].rows, linear[i].cols);
        snprintf(name, sizeof name, "layers.0.%s.bias", linear[i].name);
        add_floats(name, linear[i].rows, 0);
    }
    add_experts(0, "gate_up_proj", 2 * F, E);
    add_experts(1, "down_proj", E, F);
    add_floats("layers.0.mlp.experts.gate_up_proj_bias", X, 2 * F);
    add_floats("layers.0.mlp.experts.down_proj_bias", X, E);
    memcpy(stfile_add(&file, "lm_head.weight", "BF16", "260,64",
                      2 * FOLDER_VOCAB * E),
           file.data, 2 * FOLDER_VOCAB * E);
    const size_t size = stfile_end(&file);
    FILE *f = fopen(scratch_path(folder.dir, "model.safetensors"), "wb");
    if (!f || fwrite(file.bytes, 1, size, f) != size || fclose(f) != 0)
        exit(99);
}

/* Row r of an expert's tensor is row of_row(r) of the folder's. */
static void check(const struct gguf_file *f, struct gguf_rows *rows,
                  const char *name, int down, int n_rows, int n_cols, int step,
                  int first)
{
    static float x[X * 2 * F * E];
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
    const uint64_t n = (uint64_t)X * (uint64_t)n_rows * (uint64_t)n_cols;
    bool good = t && t->dtype == GGUF_DTYPE_MXFP4 && t->n_dims == 3 &&
                t->ne[0] == n_cols && t->ne[1] == n_rows && t->ne[2] == X;
    ok(good, "%s is MXFP4 of its shape", name);
    good = good && gguf_rows_get(rows, f, t->index, 0, n, x, NULL) == GGUF_OK;
    for (int i = 0; good && i < (int)n; i++) {
        const int e = i / (n_rows * n_cols), r = i / n_cols % n_rows;
        good = x[i] == value_of(down, e, r * step + first, i % n_cols);
    }
    ok(good, "%s: all numbers are those of the folder", name);
}

static void check_bias(const struct gguf_file *f, struct gguf_rows *rows,
                       const char *name, int step, int first, int n_rows)
{
    static const char *const from[] = {
        "model.layers.0.mlp.experts.down_proj_bias",
        "model.layers.0.mlp.experts.gate_up_proj_bias"
    };
    float x[X * E];
    const struct gguf_tensor_info *t = gguf_file_tensor_find(f, name);
    bool good =
        t && t->dtype == GGUF_DTYPE_F32 &&
        gguf_rows_get(rows, f, t->index, 0, (uint64_t)X * (uint64_t)n_rows, x,
                      NULL) == GGUF_OK;
    for (int i = 0; good && i < X * n_rows; i++)
        good = x[i] ==
               folder_value(from[step == 2], (uint64_t)(i * step + first));
    ok(good, "%s: its biases", name);
}

int main(void)
{
    struct gguf_error e;
    struct gguf_file *f;
    struct gguf_rows *rows;
    snprintf(top, sizeof top, "check-mxfp4.%d.tmp", (int)getpid());
    folder_begin(&folder, top);
    make();
    gguf_error_clear(&e);
    const char *out = scratch_path(top, "out.gguf");
    const bool good = folder_convert(folder.dir, out, NULL, &e) == GGUF_OK &&
                      gguf_file_open(&f, out, NULL, &e) == GGUF_OK &&
                      gguf_rows_create(&rows, NULL, &e) == GGUF_OK;
    ok(good, "it becomes a file: %s", e.message);
    if (good) {
        check(f, rows, "blk.0.ffn_gate_exps.weight", 0, F, E, 2, 0);
        check(f, rows, "blk.0.ffn_up_exps.weight", 0, F, E, 2, 1);
        check(f, rows, "blk.0.ffn_down_exps.weight", 1, E, F, 1, 0);
        check_bias(f, rows, "blk.0.ffn_gate_exps.bias", 2, 0, F);
        check_bias(f, rows, "blk.0.ffn_up_exps.bias", 2, 1, F);
        check_bias(f, rows, "blk.0.ffn_down_exps.bias", 1, 0, E);
        gguf_rows_destroy(rows);
        gguf_file_close(f);
    }
    ok(folder_convert(folder.dir, out, "Q8_0", &e) == GGUF_OK, "and Q8_0: %s",
       e.message);
    scratch_clean(folder.dir);
    rmdir(folder.dir);
    scratch_clean(top);
    rmdir(top);
    return done_testing();
}
