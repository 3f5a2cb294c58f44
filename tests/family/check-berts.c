/* SPDX-License-Identifier: MIT */
/* check-berts.c - bert, nomic-bert, nomic-bert-moe, jina-bert-v3, neo-bert,
 * eurobert and chameleon against doubles: what files may have or lack
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/ref.h"
#include "tests/family/refbert.h"
#include "tests/model/run.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { V = 48, N = 29, E = 48 };

/* Sizes, and what the architectures have. */
#define SIZES .n_embd = E, .n_ff = 40, .n_head = 4, .n_layer = 3, .eps = 1e-6f
#define BERT  .arch = "bert", .positions = 1, .ffn = REFBERT_PLAIN, SIZES
#define NOMIC                                                                 \
    .arch = "nomic-bert", .rope = REFBERT_NEOX, .ffn = REFBERT_GATED, SIZES
#define NOMIC_MOE                                                             \
    .arch = "nomic-bert-moe", .rope = REFBERT_NEOX, .ffn = REFBERT_PLAIN, SIZES
#define JINA                                                                  \
    .arch = "jina-bert-v3", .rope = REFBERT_NEOX, .ffn = REFBERT_PLAIN, SIZES
#define NEO                                                                   \
    .arch = "neo-bert", .pre = 1, .last = "enc.output_norm",                  \
    .rope = REFBERT_PAIRS, .ffn = REFBERT_HALVES, .fused = 1, SIZES
#define EURO                                                                  \
    .arch = "eurobert", .pre = 1, .last = "output_norm",                      \
    .rope = REFBERT_NEOX, .ffn = REFBERT_GATED, SIZES
#define CHAMELEON                                                             \
    .arch = "chameleon", .pre = 1, .last = "output_norm",                     \
    .rope = REFBERT_PAIRS, .ffn = REFBERT_GATED, .causal = 2, SIZES

static const struct {
    const char *what;
    struct refbert s;
} forms[] = {
    { "everything",
      { BERT, .n_head_kv = 4, .qkv_bias = 1, .out_bias = 1, .ffn_bias = 1,
        .types = 2 } },
    { "no bias, no types", { BERT, .n_head_kv = 4 } },
    { "q, k and v in one, without bias",
      { BERT, .n_head_kv = 4, .fused = 1, .out_bias = 1, .types = 1 } },
    { "q, k and v in one, with a bias",
      { BERT, .n_head_kv = 4, .fused = 1, .qkv_bias = 1, .ffn_bias = 1,
        .types = 3 } },
    { "fewer heads of keys", { BERT, .n_head_kv = 2, .qkv_bias = 1 } },
    { "a bias of the output alone", { BERT, .n_head_kv = 4, .out_bias = 1 } },
    { "causal", { BERT, .n_head_kv = 4, .causal = 1, .types = 2 } },
    { "no key of causal: causal", { BERT, .n_head_kv = 4, .causal = 2 } },

    { "as published", { NOMIC, .n_head_kv = 4, .fused = 1, .types = 2 } },
    { "no types, q, k and v apart", { NOMIC, .n_head_kv = 4 } },
    { "biases of attention, and some that are not used",
      { NOMIC, .n_head_kv = 4, .qkv_bias = 1, .out_bias = 1, .ffn_bias = 2,
        .types = 2 } },
    { "another base, half of a head turns",
      { NOMIC, .n_head_kv = 4, .fused = 1, .rot = 6, .base = 1000,
        .types = 1 } },
    { "causal", { NOMIC, .n_head_kv = 4, .causal = 1 } },

    { "experts in every second layer",
      { NOMIC_MOE, .n_head_kv = 4, .fused = 1, .qkv_bias = 1, .out_bias = 1,
        .ffn_bias = 1, .types = 1, .every = 2, .experts = 5, .used = 2 } },
    { "experts in one of three, one of them used",
      { NOMIC_MOE, .n_head_kv = 4, .every = 3, .experts = 4, .used = 1 } },
    { "all experts used",
      { NOMIC_MOE, .n_head_kv = 4, .types = 2, .every = 2, .experts = 3,
        .used = 3 } },
    { "no experts", { NOMIC_MOE, .n_head_kv = 4, .ffn_bias = 1, .types = 1 } },
    { "a number of experts, and no layers of them",
      { NOMIC_MOE, .n_head_kv = 4, .experts = 4, .used = 2 } },

    { "everything",
      { JINA, .n_head_kv = 4, .fused = 1, .qkv_bias = 1, .out_bias = 1,
        .ffn_bias = 1, .types = 1, .base = 20000 } },
    { "no bias, no types", { JINA, .n_head_kv = 4 } },
    { "biases of the feed-forward part alone, q, k and v apart",
      { JINA, .n_head_kv = 4, .ffn_bias = 1, .types = 2 } },
    { "causal, half of a head turns",
      { JINA, .n_head_kv = 4, .rot = 6, .causal = 2, .out_bias = 1 } },

    { "as published", { NEO, .n_head_kv = 4 } },
    { "fewer heads of keys", { NEO, .n_head_kv = 2, .base = 500 } },
    { "causal, half of a head turns",
      { NEO, .n_head_kv = 4, .rot = 6, .causal = 1 } },

    { "as published", { EURO, .n_head_kv = 2, .base = 250000 } },
    { "one head of keys, biases", { EURO, .n_head_kv = 1, .qkv_bias = 1 } },
    { "q, k and v in one", { EURO, .n_head_kv = 4, .fused = 1 } },
    { "q, k and v in one, with a bias",
      { EURO, .n_head_kv = 2, .fused = 1, .qkv_bias = 1, .rot = 6 } },
    { "no key of causal: causal", { EURO, .n_head_kv = 4, .causal = 2 } },

    { "norms before the parts",
      { CHAMELEON, .n_head_kv = 2, .head_norm = 1 } },
    { "norms after them",
      { CHAMELEON, .n_head_kv = 2, .head_norm = 1, .swin = 1 } },
    { "biases of head norms, another base",
      { CHAMELEON, .n_head_kv = 4, .head_norm = 2, .base = 500 } },
    { "q, k and v in one, with a bias",
      { CHAMELEON, .n_head_kv = 1, .head_norm = 2, .swin = 1, .fused = 1,
        .qkv_bias = 1 } },
};

static struct gen g;
static const struct gguf_session_params init = GGUF_SESSION_PARAMS_INIT;

static bool states_of(struct run *r, const gguf_token *tok, float *out)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    uint8_t want[N];
    const float *rows;
    memset(want, 1, sizeof want);
    b.n = N;
    b.token = tok;
    b.want = want;
    const enum gguf_status st =
        gguf_model_get_info(r->model)->has_logits
            ? gguf_session_decode(r->session, &b, &r->err)
            : gguf_session_encode(r->session, &b, &r->err);
    if (st != GGUF_OK ||
        gguf_session_states(r->session, 0, N, &rows, &r->err) != GGUF_OK)
        return false;
    memcpy(out, rows, N * E * sizeof *out);
    return true;
}

static void check_form(const struct refbert *s, const char *what)
{
    static float got[2][N * E], want[N * E];
    static double ref[N * E];
    gguf_token tok[N];
    size_t size;
    bool good = true;
    struct run r;
    refbert_model(&g, s, V);
    void *file = gen_file(&g, GGUF_DTYPE_F32, &size);
    for (int i = 0; i < N; i++)
        tok[i] = (i * 37 + 11) % V;
    for (unsigned k = 0; k < 2 && good; k++) { /* threads */
        good = run_open(&r, file, size, 1 + 2 * k, &init) &&
               states_of(&r, tok, got[k]);
        if (k == 0)
            run_close(&r);
    }
    refbert_run(&g, s, tok, N, ref);
    for (int i = 0; i < N * E; i++)
        want[i] = (float)ref[i];
    const double d = good ? run_nmse(got[0], want, N * E) : 1;
    ok(good && d < 1e-11 && !memcmp(got[0], got[1], sizeof got[0]),
       "%s, %s: %.2g%s", s->arch, what, d, good ? "" : r.err.message);
    run_close(&r);
    free(file);
    gen_fini(&g);
}

int main(void)
{
    for (size_t i = 0; i < GG_LEN(forms); i++)
        check_form(&forms[i].s, forms[i].what);
    return done_testing();
}
