/* SPDX-License-Identifier: MIT */
/* mkfullrank.c - writes a model with experts whose activations have full rank
 *
 *   mkfullrank OUT.gguf [SEED [WIDTH LAYERS EXPERTS]]
 *
 * Activations of small trained models have a low rank, which flatters error
 * feedback. Here weights are independent random numbers. Columns have scales
 * with a log-normal distribution, as those of trained models differ. Layers
 * add less than a unit to the embedding, so that errors do not grow without
 * bound, and predictions have an entropy of some nats. With random words of
 * the vocabulary as text, feedback leaves 87 to 96% of the error of a matrix:
 * tr(D) / tr(S) of second moments S = L D L'. After attention it leaves 53%.
 *
 * The architecture is qwen2moe: biases, a shared expert with a gate, and two
 * routed experts per token. Routers prefer some experts. Matrices are F16.
 */
#include "config.h"
#include "tests/model/gen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gen g;

enum { N_VOCAB = 2048, FIRST_WORD = 3 + 256 };

struct shape {
    uint32_t embd, layers, experts;
};

static void must_succeed(enum gguf_status st, const struct gguf_error *err)
{
    if (st == GGUF_OK)
        return;
    fprintf(stderr, "mkfullrank: %s\n", err->message);
    exit(99);
}

/* Control tokens, one for each byte, and words of three letters, whose first
 * one is large: word i has the letters i % 26, i / 26 % 26 and i / 676 % 26.
 * Words are found in a text before it is tokenized otherwise. */
static void set_vocab(void)
{
    static char text[N_VOCAB][8];
    static struct gguf_str token[N_VOCAB];
    static float score[N_VOCAB];
    static int32_t type[N_VOCAB];
    static const char *const control[] = { "<unk>", "<s>", "</s>" };
    struct gguf_error err;
    for (int i = 0; i < N_VOCAB; i++) {
        const int w = i - FIRST_WORD;
        if (i < 3)
            snprintf(text[i], sizeof text[i], "%s", control[i]);
        else if (w < 0)
            snprintf(text[i], sizeof text[i], "<0x%02X>", i - 3);
        else
            snprintf(text[i], sizeof text[i], "%c%c%c", 'A' + w % 26,
                     'a' + w / 26 % 26, 'a' + w / 676 % 26);
        token[i] = (struct gguf_str){ text[i], strlen(text[i]) };
        type[i] = i < 1 ? 2 : i < 3 ? 3 : w < 0 ? 6 : 4;
    }
    struct gguf_meta *m = g.meta;
    must_succeed(gguf_meta_set_strz(m, "tokenizer.ggml.model", "llama", &err),
                 &err);
    must_succeed(gguf_meta_set_str_array(m, "tokenizer.ggml.tokens", token,
                                         N_VOCAB, &err),
                 &err);
    must_succeed(gguf_meta_set_array(m, "tokenizer.ggml.scores", GGUF_VAL_F32,
                                     score, N_VOCAB, &err),
                 &err);
    must_succeed(gguf_meta_set_array(m, "tokenizer.ggml.token_type",
                                     GGUF_VAL_I32, type, N_VOCAB, &err),
                 &err);
    must_succeed(gguf_meta_set_u32(m, "tokenizer.ggml.bos_token_id", 1, &err),
                 &err);
    must_succeed(gguf_meta_set_u32(m, "tokenizer.ggml.eos_token_id", 2, &err),
                 &err);
    must_succeed(
        gguf_meta_set_u32(m, "tokenizer.ggml.unknown_token_id", 0, &err),
        &err);
    must_succeed(
        gguf_meta_set_bool(m, "tokenizer.ggml.add_space_prefix", false, &err),
        &err);
    must_succeed(
        gguf_meta_set_bool(m, "tokenizer.ggml.add_bos_token", true, &err),
        &err);
}

static void set_keys(const struct shape *z)
{
    struct gguf_error err;
    const struct {
        const char *key;
        uint32_t v;
    } keys[] = { { "vocab_size", N_VOCAB },
                 { "context_length", 512 },
                 { "embedding_length", z->embd },
                 { "block_count", z->layers },
                 { "feed_forward_length", z->embd },
                 { "attention.head_count", z->embd / 64 },
                 { "attention.head_count_kv", z->embd / 128 },
                 { "expert_feed_forward_length", 256 },
                 { "expert_shared_feed_forward_length", 256 },
                 { "expert_count", z->experts },
                 { "expert_used_count", 2 } };
    must_succeed(
        gguf_meta_set_strz(g.meta, "general.architecture", "qwen2moe", &err),
        &err);
    must_succeed(gguf_meta_set_strz(g.meta, "general.name", "full rank", &err),
                 &err);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char name[64];
        snprintf(name, sizeof name, "qwen2moe.%s", keys[i].key);
        must_succeed(gguf_meta_set_u32(g.meta, name, keys[i].v, &err), &err);
    }
    must_succeed(gguf_meta_set_f32(g.meta,
                                   "qwen2moe.attention.layer_norm_rms_epsilon",
                                   1e-6f, &err),
                 &err);
}

static void add_experts(uint32_t i, const char *name, int64_t ne0, int64_t ne1,
                        uint32_t n)
{
    gen_tensor(&g, ne0, ne1, "blk.%u.ffn_%s_exps.weight", i, name);
    g.t[g.n - 1].n_dims = 3;
    g.t[g.n - 1].ne[2] = n;
}

static void add_layer(uint32_t i, const struct shape *z)
{
    const int64_t e = z->embd, kv = e / 2, ff = 256;
    gen_tensor(&g, e, 0, "blk.%u.attn_norm.weight", i);
    gen_tensor(&g, e, e, "blk.%u.attn_q.weight", i);
    gen_tensor(&g, e, kv, "blk.%u.attn_k.weight", i);
    gen_tensor(&g, e, kv, "blk.%u.attn_v.weight", i);
    gen_tensor(&g, e, 0, "blk.%u.attn_q.bias", i);
    gen_tensor(&g, kv, 0, "blk.%u.attn_k.bias", i);
    gen_tensor(&g, kv, 0, "blk.%u.attn_v.bias", i);
    gen_tensor(&g, e, e, "blk.%u.attn_output.weight", i);
    gen_tensor(&g, e, 0, "blk.%u.ffn_norm.weight", i);
    gen_tensor(&g, e, z->experts, "blk.%u.ffn_gate_inp.weight", i);
    add_experts(i, "gate", e, ff, z->experts);
    add_experts(i, "up", e, ff, z->experts);
    add_experts(i, "down", ff, e, z->experts);
    gen_tensor(&g, e, 0, "blk.%u.ffn_gate_inp_shexp.weight", i);
    gen_tensor(&g, e, ff, "blk.%u.ffn_gate_shexp.weight", i);
    gen_tensor(&g, e, ff, "blk.%u.ffn_up_shexp.weight", i);
    gen_tensor(&g, ff, e, "blk.%u.ffn_down_shexp.weight", i);
}

/* A nearly normal number of deviation 1, the next of a sequence. */
static double draw_normal(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        *state = *state * UINT64_C(6364136223846793005) +
                 UINT64_C(1442695040888963407);
        sum += (double)(*state >> 40) * 0x1p-24;
    }
    return sum - 6;
}

/* Generate a tensor's weights, and multiply its columns by exp(d x) with a
 * normal x. Row r of a router is divided by r + 1, so that some experts are
 * used more than others. The values are never freed: the program ends. */
static void scale_columns(struct gen_tensor *t, uint64_t seed)
{
    const double d = t->n_dims > 1 ? 0.4 : 0.3;
    const size_t ne0 = (size_t)t->ne[0], rows = (size_t)(t->ne[1] * t->ne[2]);
    float *w = malloc(ne0 * rows * sizeof *w);
    if (!w)
        exit(99);
    gen_weights(w, &g, t);
    for (size_t j = 0; j < ne0; j++) {
        const float scale = (float)exp(d * draw_normal(&seed));
        for (size_t r = 0; r < rows; r++)
            w[r * ne0 + j] *=
                strstr(t->name, "gate_inp.") ? scale / (float)(r + 1) : scale;
    }
    t->values = w;
}

int main(int argc, char **argv)
{
    struct shape z = { .embd = 256, .layers = 2, .experts = 4 };
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    if (argc > 5) {
        z.embd = (uint32_t)atoi(argv[3]);
        z.layers = (uint32_t)atoi(argv[4]);
        z.experts = (uint32_t)atoi(argv[5]);
    }
    if (argc < 2 || z.embd < 128 || z.embd % 128) {
        fprintf(stderr, "usage: mkfullrank OUT.gguf "
                        "[SEED [WIDTH LAYERS EXPERTS]]\n");
        return 99;
    }
    gen_init(&g, seed);
    set_vocab();
    set_keys(&z);
    gen_gain(&g, "^token_embd", sqrt(z.embd));
    gen_gain(&g, "attn_output|ffn_down", 0.4);
    gen_gain(&g, "^output\\.weight", 1.2);
    gen_tensor(&g, z.embd, N_VOCAB, "token_embd.weight");
    gen_tensor(&g, z.embd, 0, "output_norm.weight");
    gen_tensor(&g, z.embd, N_VOCAB, "output.weight");
    for (uint32_t i = 0; i < z.layers; i++)
        add_layer(i, &z);
    for (size_t i = 0; i < g.n; i++)
        scale_columns(&g.t[i], seed + 977 * i);

    size_t size;
    void *data = gen_file(&g, GGUF_DTYPE_F16, &size);
    FILE *f = fopen(argv[1], "wb");
    const bool good = f && fwrite(data, 1, size, f) == size;
    if (!f || fclose(f) || !good) {
        perror(argv[1]);
        return 99;
    }
    free(data);
    gen_fini(&g);
    return 0;
}
