/* SPDX-License-Identifier: MIT */
/* check-logits.c - outputs that texts of tests/family cannot describe: masked
 * or capped logits, and numbers that depend on the size of a model */
#include "config.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/hparam/hparams.h"
#include "tests/family/variant.h"
#include "tests/tap.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

enum { N = VARIANT_TOKENS, V = VARIANT_WIDTH };

static float x[N * V], y[N * V];

/* ---- chameleon: no logits of images, norms of two kinds ---- */

enum { LEFT = 4 }; /* tokens that are not image tokens */

static void check_struck(void)
{
    struct gguf_error err = { .message = "" };
    unsigned n_struck = 0, n_left = 0;
    const bool good = variant_outputs("chameleon", "", x, &err);
    for (int i = 0; good && i < N * V; i++)
        if (i % V < LEFT)
            n_left += fabsf(x[i]) < 100;
        else
            n_struck += x[i] == -FLT_MAX;
    ok(n_left == LEFT * N && n_struck == (V - LEFT) * N,
       "chameleon: logits of images are struck out in every row: %s",
       err.message);
}

/* Compare the logits of two variants that are not masked (run_nmse). */
static void check_left(const char *a, const char *b, double least, double most,
                       const char *what)
{
    struct gguf_error err;
    double d = 0, all = 0;
    if (!variant_outputs("chameleon", a, x, &err) ||
        !variant_outputs("chameleon", b, y, &err))
        abort();
    for (int i = 0; i < N * V; i++)
        if (i % V < LEFT) {
            d += pow((double)x[i] - (double)y[i], 2);
            all += pow((double)y[i], 2);
        }
    ok(d / all >= least && d / all < most, "chameleon: %s: %.2g", what,
       d / all);
}

#define SWIN  "key .swin_norm bool 1"
#define SHORT "gain attn_q.weight 1e-3"
static void check_norms(void)
{
    check_left("", SWIN, 1e-4, 9, "swin_norm counts");
    check_left(SWIN " + gain attn_norm|ffn_norm 0",
               "gain attn_output|ffn_down 0", 0, 1e-12,
               "norms are of the results then");
    check_left("",
               "tensor blk.0-1.attn_q_norm.bias 32 4 + "
               "tensor blk.0-1.attn_k_norm.bias 32 2",
               1e-6, 9, "biases of head norms");
    /* Queries of zeros: only the norm's own epsilon sets their length. */
    check_left(SHORT,
               SHORT " + key .attention.layer_norm_rms_epsilon f32 1e-06", 0,
               1e-6, "head norms have an epsilon of 1e-5");
}

/* ---- gemma3: a soft cap ---- */

static void check_cap(void)
{
    struct gguf_error err;
    if (!variant_outputs("gemma3", "nokey .final_logit_softcapping", x,
                         &err) ||
        !variant_outputs("gemma3", "key .final_logit_softcapping f32 2", y,
                         &err))
        abort();
    for (size_t i = 0; i < N * V; i++)
        x[i] = (float)(2 * tanh((double)x[i] / 2));
    const double d = run_nmse(y, x, N * V);
    ok(d < 1e-12, "gemma3: logits are capped softly: %.2g", d);
}

/* ---- qwen3tts: codes are the last tokens ---- */

enum { WORDS = 128, CODES = 3072, ALL = WORDS + CODES, FEW = 3 };

/* Logits of the first tokens, of a model with that many words and codes. */
static bool code_logits(const char *more, float *out, struct gguf_error *err)
{
    static struct variant v;
    static const gguf_token tok[FEW] = { 11, WORDS + 5, ALL - 1 };
    struct gguf_batch b = { .struct_size = sizeof b, .n = FEW, .token = tok };
    struct run r;
    size_t size;
    char changes[256];
    snprintf(changes, sizeof changes,
             "key .vocab_size u32 %d + tensor token_embd.weight 128 %d%s", ALL,
             ALL, more);
    variant_open(&v, "qwen3tts-tied", changes);
    void *file = variant_file(&v, &size);
    const bool good = run_open(&r, file, size, 1, &v.params) &&
                      r.n_vocab == ALL && run_logits(&r, &b, out);
    *err = r.err;
    run_close(&r);
    free(file);
    variant_close(&v);
    return good;
}

static void check_codes(void)
{
    static float own[FEW * ALL], tied[FEW * ALL];
    struct gguf_error err;
    unsigned n_none = 0, n_same = 0;
    const bool good = code_logits(" + tensor output.weight 128 3072 = 1 "
                                  "token_embd.weight[128:3072]",
                                  own, &err) &&
                      code_logits("", tied, &err);
    for (int i = 0; good && i < FEW * ALL; i++)
        if (i % ALL < WORDS)
            n_none += own[i] == -INFINITY && isfinite(tied[i]);
        else
            n_same += own[i] == tied[i];
    ok(good && n_none == FEW * WORDS && n_same == FEW * CODES,
       "qwen3tts: an own matrix has the logits of the last tokens, all others "
       "have none: %s",
       good ? "" : err.message);
    ok(!code_logits(" + tensor output.weight 128 3200", own, &err) &&
           strstr(err.message, "must be [128, 3072]"),
       "qwen3tts: no more logits than codes: %s", err.message);
}

/* ---- deepseek2: files that lack keys ---- */

/* Read the hyperparameters of a file with n_layer layers, n_vocab tokens and
 * attn_q. */
static bool load_sized(uint32_t n_layer, size_t n_vocab, struct gg_hparams *hp)
{
    static struct variant v;
    struct gguf_file *file;
    struct gguf_error err;
    size_t size;
    char changes[160];
    snprintf(changes, sizeof changes,
             "nokey .expert_gating_func .vocab_size + key .block_count u32 "
             "%" PRIu32 " + tensor blk.0.attn_q.weight 128 192",
             n_layer);
    variant_open(&v, "deepseek2", changes);
    for (uint32_t i = 0; i < n_layer; i++)
        gen_tensor(&v.m.g, 1, 0, "pad.%" PRIu32, i);
    void *data = gen_empty_file(&v.m.g, &size);
    memset(hp, 0, sizeof *hp);
    bool good =
        gguf_file_open_memory(&file, data, size, NULL, &err) == GGUF_OK;
    if (good) {
        const struct gg_source src = { .file = file };
        const struct gg_finding report = { NULL, &src, &err };
        good = gg_hparams_load(hp, &src, gg_arch_find(gg_str_z("deepseek2")),
                               gg_str_z("deepseek2"), n_vocab, NULL,
                               &report) == GGUF_OK;
    }
    gg_mem_free(NULL, hp->layer);
    gguf_file_close(file);
    free(data);
    variant_close(&v);
    return good;
}

static void check_sizes(void)
{
    enum { RANK = 48 };
    static const struct {
        uint32_t n_layer;
        size_t n_vocab;
        uint32_t rank, gating;
    } rows[] = {
        { 25, 100, RANK, 1 },    { 26, 100, 0, 1 },
        { 27, 100, 0, 1 },       { 28, 100, RANK, 1 },
        { 48, 128255, RANK, 1 }, { 48, 128256, 0, 1 },
        { 47, 154880, RANK, 2 }, { 48, 154880, RANK, 2 },
        { 46, 154880, RANK, 1 }, { 47, 154881, RANK, 1 },
    };
    static struct gg_hparams hp;
    for (size_t i = 0; i < GG_LEN(rows); i++)
        ok(load_sized(rows[i].n_layer, rows[i].n_vocab, &hp) &&
               hp.rank_q == rows[i].rank && hp.expert_gating == rows[i].gating,
           "%" PRIu32 " layers, %zu tokens: rank %" PRIu32 ", gate %" PRIu32,
           rows[i].n_layer, rows[i].n_vocab, hp.rank_q, hp.expert_gating);
}

int main(void)
{
    check_struck();
    check_norms();
    check_cap();
    check_codes();
    check_sizes();
    return done_testing();
}
