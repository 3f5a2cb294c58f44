/* SPDX-License-Identifier: MIT */
/* kld.h - how far a model's predictions are from those of a base
 *
 * A model (a quantized file, say) and a base (the file that it was made from)
 * predict the same tokens of a text. For each of the N tokens that are scored,
 * q and b are the distributions that model and base give before it, t is the
 * token itself, and
 *
 *     x    = -ln q(t)         xb = -ln b(t)
 *     kld  = sum over i of b(i) (ln b(i) - ln q(i)), 0 where b(i) = 0
 *     dp   = q(t) - b(t)
 *     same = 1 if the likeliest token (the first of equals) is the same,
 *            else 0
 *
 * Of these, with mean and se(v) = sqrt((mean v^2 - (mean v)^2) / (N - 1)) over
 * the tokens, and cov = (mean x xb - mean x mean xb) / (N - 1):
 *
 *     ppl, ppl_base   exp(mean x), exp(mean xb)   +/- value * se(x), se(xb)
 *     correlation     r = cov / (se(x) se(xb))    +/- (1 - r^2) / sqrt(N - 1)
 *     ln_ratio        mean (x - xb)               +/- se(x - xb)
 *     ratio           exp(ln_ratio)               +/- ratio * se(x - xb)
 *     difference      ppl - ppl_base              +/- the square root of
 *                     error(ppl)^2 + error(ppl_base)^2 - 2 ppl ppl_base cov
 *     kld             mean kld                    +/- se(kld)
 *     dp              mean dp                     +/- se(dp)
 *     dp_rms          sqrt(mean dp^2)             +/- se(dp^2) / (2 dp_rms)
 *     same_top        s = mean same               +/- sqrt(s(1 - s) / (N - 1))
 *
 * The quantile f of N sorted values v(0) .. v(N - 1) is the one at f (N - 1),
 * between two of them by linear interpolation; its uncertainty is half the
 * distance between the quantiles (f (N - 1) +/- sqrt(N f (1 - f))) / (N - 1),
 * cut to the values there are, which holds for any distribution. Those of the
 * smallest and the largest have none.
 *
 * These are the definitions of llama.cpp's perplexity tool (checked against
 * commit d32676d), which prints no uncertainty of r and of quantiles. All is
 * computed in double from f32 logits, sums in the order of the text, first in a
 * chunk and then over chunks: digits depend neither on threads nor on batches.
 */
#ifndef GGUF_KLD_H
#define GGUF_KLD_H

#include <gguf/baseline.h>
#include <gguf/eval.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_kld;

/* What is known of a scored token. The struct never grows. */
struct gguf_kld_token {
    double x, x_base, kld; /* nats */
    int same_top;          /* 0 or 1 */
};

/* A value and its standard error; NaN where there is none. The struct never
 * grows. */
struct gguf_figure {
    double value, error;
};

/* Quantiles 0, 0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9 and 100 %. */
enum { GGUF_KLD_N_QUANTILES = 13 };
/* Which one i is, from 0 to 1; NaN if there is none. Since: 0.1 */
GGUF_API double gguf_kld_quantile(unsigned i);

/* As above; probabilities are from 0 to 1, not percent. */
struct gguf_kld_stats {
    size_t struct_size;
    uint64_t n; /* tokens scored */
    struct gguf_figure ppl, ppl_base, correlation, ln_ratio, ratio, difference;
    struct gguf_figure kld, dp, dp_rms, same_top;
    struct gguf_figure kld_at[GGUF_KLD_N_QUANTILES];
    struct gguf_figure dp_at[GGUF_KLD_N_QUANTILES];
};
#define GGUF_KLD_STATS_INIT                                                   \
    {                                                                         \
        .struct_size = sizeof(struct gguf_kld_stats)                          \
    }

/* Called after each chunk (counted from 0) of n_chunks. A result other than 0
 * stops with GGUF_E_CANCELLED. */
typedef int gguf_kld_fn(void *user, size_t chunk, size_t n_chunks,
                        const struct gguf_kld *kld);

struct gguf_kld_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    size_t model, base;     /* which of a scan's models they are, from 0 */
    struct gguf_pool *pool; /* kept; NULL: the thread that scans */
    gguf_kld_fn *on_chunk;  /* or NULL */
    void *user;             /* of on_chunk */
    const struct gguf_baseline *baseline; /* kept; NULL: base is a model of
                                           * the scan */
};
#define GGUF_KLD_PARAMS_INIT                                                  \
    {                                                                         \
        sizeof(struct gguf_kld_params), NULL, 1, 0, NULL, NULL, NULL, NULL    \
    }

/* Nothing scored yet. GGUF_E_INVALID (params), GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_kld_create(struct gguf_kld **out, const struct gguf_kld_params *params,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_kld_destroy(struct gguf_kld *kld);

/* The sink by which scans add to it (gguf_scan_run_models in eval.h); owned by
 * it. One scan at a time; a further one goes on where the last one ended. Of a
 * scanned token 32 bytes are kept, and nothing of its logits. The scan fails
 * with GGUF_E_INVALID (it has no such model; the baseline is of another
 * vocabulary, context or text: what differs), GGUF_E_NOMEM, GGUF_E_CANCELLED
 * (by on_chunk), and GGUF_E_NONFINITE where logits are NaN or infinite: the
 * message names chunk and position, and the weight that is the cause if there
 * is one. Since: 0.1 */
GGUF_API const struct gguf_sink *gguf_kld_sink(struct gguf_kld *kld);

/* Add n tokens of a chunk that were scored elsewhere: chunk after chunk gives
 * the same digits as the scan that they are from. GGUF_E_INVALID (not finite:
 * names the index), GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status gguf_kld_add(struct gguf_kld *kld,
                                       const struct gguf_kld_token *token,
                                       size_t n,
                                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Tokens so far, in the order of the text; valid until one is added.
 * Since: 0.1 */
GGUF_API const struct gguf_kld_token *
gguf_kld_tokens(const struct gguf_kld *kld, size_t *n);

/* Statistics of all chunks so far; GGUF_KLD_STATS_INIT first. Figures of too
 * few tokens are NaN. gguf_kld_means leaves quantiles out, which take sorting
 * and memory of their own. GGUF_E_INVALID (struct_size), GGUF_E_NOMEM.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_kld_means(const struct gguf_kld *kld, struct gguf_kld_stats *stats,
               struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_kld_stats(const struct gguf_kld *kld, struct gguf_kld_stats *stats,
               struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
