/* SPDX-License-Identifier: MIT */
/* check-predictions.c - error in the shipped model's predictions by cache type
 *
 * Prints the Kullback-Leibler divergence of each type's predictions from those
 * with an F32 cache. With GGUF_TEST_LONG over more text, and for keys and
 * values separately.
 */
#include "config.h"
#include "base/compiler.h"
#include "tests/model/run.h"
#include "tests/source.h"
#include "tests/tap.h"

#include <math.h>

/* Types with more bits come first. */
static const uint32_t types[] = { GGUF_DTYPE_F32,   GGUF_DTYPE_F16,
                                  GGUF_DTYPE_BF16,  GGUF_DTYPE_Q8_0,
                                  GGUF_DTYPE_Q5_1,  GGUF_DTYPE_Q5_0,
                                  GGUF_DTYPE_Q4_1,  GGUF_DTYPE_Q4_0,
                                  GGUF_DTYPE_IQ4_NL };
enum { N_TYPES = GG_LEN(types) };

static const char *name_of(uint32_t type)
{
    return gguf_dtype_find(type)->name;
}

#define TINY_LLAMA "share/tiny-llama/"

/* Tokenize the first n tokens of the text. */
static bool tokenize_text(struct run *r, struct gguf_tokens *t)
{
    enum { MOST = 40000 };
    char *text = malloc(MOST);
    FILE *f = fopen(source_path(TINY_LLAMA "persuasion.txt"), "rb");
    const size_t size = f ? fread(text, 1, MOST, f) : 0;
    const bool good =
        size &&
        gguf_vocab_tokenize(gguf_model_vocab(r->model), text, size,
                            GGUF_TOKENIZE_ADD_SPECIAL, t, &r->err) == GGUF_OK;
    if (f)
        fclose(f);
    free(text);
    return good;
}

/* Kullback-Leibler divergence of two rows of logits: sum of p ln(p / q). */
static double rows_apart(const float *a, const float *b, size_t n)
{
    double max[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 }, kl = 0;
    for (size_t i = 0; i < n; i++) {
        max[0] = fmax(max[0], (double)a[i]);
        max[1] = fmax(max[1], (double)b[i]);
    }
    for (size_t i = 0; i < n; i++) {
        sum[0] += exp((double)a[i] - max[0]);
        sum[1] += exp((double)b[i] - max[1]);
    }
    for (size_t i = 0; i < n; i++) {
        const double p = (double)a[i] - max[0] - log(sum[0]);
        kl += exp(p) * (p - ((double)b[i] - max[1] - log(sum[1])));
    }
    return kl;
}

/* Logits of the shipped model in chunks of n_ctx tokens. Free them with
 * free(). */
static float *logits_of(uint32_t k, uint32_t v, uint32_t n_ctx,
                        size_t n_chunks, size_t *width)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct run r;
    float *out = NULL;
    p.n_ctx = n_ctx;
    p.key_dtype = gguf_dtype_find(k);
    p.value_dtype = gguf_dtype_find(v);
    bool good =
        run_open_path(&r, source_path(TINY_LLAMA "tiny-llama-f16.gguf"), 2,
                      &p) &&
        tokenize_text(&r, &t) && t.n >= n_ctx * n_chunks;
    *width = r.n_vocab;
    if (good)
        out = malloc(n_ctx * n_chunks * *width * sizeof *out);
    for (size_t c = 0; good && c < n_chunks; c++) {
        struct gguf_batch b = GGUF_BATCH_INIT;
        b.n = n_ctx;
        b.token = t.id + c * n_ctx;
        good = gguf_session_clear(r.session, &r.err) == GGUF_OK &&
               run_logits(&r, &b, out + c * n_ctx * *width);
    }
    if (!good) {
        free(out);
        out = NULL;
    }
    gguf_tokens_fini(&t);
    run_close(&r);
    return out;
}

/* Mean divergence over all tokens with a cache of these types. */
static double divergence_of(uint32_t k, uint32_t v, const float *want,
                            uint32_t n_ctx, size_t n_chunks)
{
    size_t width;
    double sum = 0;
    float *got = logits_of(k, v, n_ctx, n_chunks, &width);
    for (size_t i = 0; got && i < n_ctx * n_chunks; i++)
        sum += rows_apart(want + i * width, got + i * width, width);
    const bool good = got != NULL;
    free(got);
    return good ? sum / (double)(n_ctx * n_chunks) : INFINITY;
}

/* More bits give less divergence: each type but IQ4_NL is compared with one of
 * the next smaller size. */
static void check_predictions(void)
{
    const bool is_long = getenv("GGUF_TEST_LONG") != NULL;
    const uint32_t n_ctx = is_long ? 512 : 64;
    const size_t n_chunks = is_long ? 12 : 1;
    size_t width;
    double kl[N_TYPES] = { 0 };
    float *want = logits_of(0, 0, n_ctx, n_chunks, &width);
    ok(want != NULL, "the shipped model with a cache of F32");
    for (size_t t = 1; want && t < N_TYPES; t++) {
        const uint32_t type = types[t];
        kl[t] = divergence_of(type, type, want, n_ctx, n_chunks);
        ok(kl[t] > 0 && kl[t] < 1,
           "%s: KL divergence from F32 %.3g, over %zu tokens", name_of(type),
           kl[t], n_ctx * n_chunks);
        if (is_long)
            ok(1 > divergence_of(type, 0, want, n_ctx, n_chunks),
               "%s of keys alone: %.3g, of values alone: %.3g", name_of(type),
               divergence_of(type, 0, want, n_ctx, n_chunks),
               divergence_of(0, type, want, n_ctx, n_chunks));
    }
    ok(kl[1] < kl[3] && kl[2] < kl[4] && kl[3] < kl[4] && kl[3] < kl[5] &&
           kl[4] < kl[6] && kl[5] < kl[7],
       "more bits diverge less: of 16 than of 8 or 5, of 8 than of 5, of 5 "
       "than of 4");
    free(want);
}

int main(void)
{
    check_predictions();
    return done_testing();
}
