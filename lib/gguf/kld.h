/* SPDX-License-Identifier: MIT */
/* kld.h - divergence of a model's predictions from those of a base
 *
 * A model (a quantized file, say) and a base (the file that it was made from)
 * predict the same tokens of a text. N tokens are scored. Let t be one of them;
 * let q be the distribution that the model predicts for the place of t, and b
 * the base's. Then
 *
 *     x    = -ln q(t)         xb = -ln b(t)
 *     kld  = sum over i of b(i) (ln b(i) - ln q(i)), 0 where b(i) = 0
 *     dp   = q(t) - b(t)
 *     same = 1 if the likeliest token (the first of equals) is the same,
 *            else 0
 *
 * Means are over the N tokens. With
 *
 *     se(v) = sqrt((mean(v^2) - mean(v)^2) / (N - 1))           standard error
 *     cov   = (mean(x * xb) - mean(x) * mean(xb)) / (N - 1)
 *
 * the statistics and their errors are
 *
 *     ppl             exp(mean(x))                +/- ppl * se(x)
 *     ppl_base        exp(mean(xb))               +/- ppl_base * se(xb)
 *     correlation     r = cov / (se(x) * se(xb))  +/- (1 - r^2) / sqrt(N - 1)
 *     ln_ratio        mean(x - xb)                +/- se(x - xb)
 *     ratio           exp(ln_ratio)               +/- ratio * se(x - xb)
 *     difference      ppl - ppl_base              +/- the square root of
 *                     error(ppl)^2 + error(ppl_base)^2
 *                     - 2 * ppl * ppl_base * cov
 *     kld             mean(kld)                   +/- se(kld)
 *     dp              mean(dp)                    +/- se(dp)
 *     dp_rms          sqrt(mean(dp^2))            +/- se(dp^2) / (2 * dp_rms),
 *                                                 or 0 if dp_rms is 0
 *     same_top        s = mean(same)              +/- sqrt(s(1 - s) / (N - 1))
 *
 * The quantile f of N sorted values v(0) .. v(N - 1) is the value at f (N - 1),
 * linearly interpolated. Let d = sqrt(N f (1 - f)) / (N - 1). The error of the
 * quantile is half the distance between the quantiles f - d and f + d, each
 * limited to 0 to 1; this assumes no particular distribution. The errors of the
 * quantiles 0 and 1 are NaN.
 *
 * These are the definitions of llama.cpp's perplexity tool (checked against
 * commit d32676d), which prints no error of r and of quantiles. Sums are in
 * double precision, in the order of the text, first in a chunk and then over
 * chunks: from the same logits the statistics are the same bits for any number
 * of threads and any batch size.
 *
 *     gguf_kld_create(&kld, NULL, &err);
 *     struct gguf_session *const s[] = { base, quantized };
 *     const struct gguf_sink *sinks[] = { gguf_kld_sink(kld) };
 *     gguf_scan_run_models(s, 2, t.id, t.n, NULL, sinks, 1, &err);
 *     struct gguf_kld_stats stats = GGUF_KLD_STATS_INIT;
 *     gguf_kld_stats(kld, &stats, &err);
 *     gguf_kld_destroy(kld);
 *
 * Threads: one thread at a time for each object.
 */
#ifndef GGUF_KLD_H
#define GGUF_KLD_H

#include <gguf/baseline.h>
#include <gguf/eval.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_kld;

/* Numbers of a scored token, as defined above. Later versions add no members to
 * this struct. */
struct gguf_kld_token {
    double x, x_base; /* -ln q(t) and -ln b(t), in nats */
    double kld;       /* divergence, in nats */
    bool same_top;    /* model and base have the same likeliest token */
};

/* A value and its error, as defined above; NaN: undefined. Later versions add
 * no members to this struct. */
struct gguf_figure {
    double value, error;
};

/* Number of quantiles: 0, 0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9 and
 * 100 %. */
enum { GGUF_KLD_N_QUANTILES = 13 };

/* Quantile i as a number from 0 to 1; NaN if i is out of range. Any thread.
 * Since: 0.1 */
GGUF_API double gguf_kld_quantile(unsigned i);

/* Statistics, as defined above. Probabilities are from 0 to 1. */
struct gguf_kld_stats {
    size_t struct_size;
    uint64_t n;                         /* scored tokens */
    struct gguf_figure ppl, ppl_base;   /* perplexities */
    struct gguf_figure correlation;     /* correlation of x and xb */
    struct gguf_figure ln_ratio, ratio; /* ratio of the perplexities */
    struct gguf_figure difference;      /* difference of the perplexities */
    struct gguf_figure kld;             /* mean divergence, in nats */
    struct gguf_figure dp, dp_rms;      /* change of probability */
    struct gguf_figure same_top;        /* share of same likeliest tokens */
    struct gguf_figure kld_at[GGUF_KLD_N_QUANTILES]; /* quantiles of kld */
    struct gguf_figure dp_at[GGUF_KLD_N_QUANTILES];  /* quantiles of dp */
};
#define GGUF_KLD_STATS_INIT GGUF_INIT(struct gguf_kld_stats)

/* Called after each chunk of a scan, by the thread that scans.
 *
 * chunk      Number of the chunk among all chunks of this scan's texts, from 0.
 *            Chunks before first_chunk count.
 * n_chunks   Number of chunks of all texts of this scan.
 * kld        The object, with all tokens up to and with this chunk.
 *            gguf_kld_means(), gguf_kld_stats() and gguf_kld_tokens() may be
 *            called.
 *
 * Returns true to stop: the scan then fails with GGUF_E_CANCELLED. The tokens
 * of this chunk stay in the object. */
typedef bool gguf_kld_fn(void *user, size_t chunk, size_t n_chunks,
                         const struct gguf_kld *kld);

/* Function that is called after each chunk, and its first argument. Later
 * versions add no members to this struct.
 */
struct gguf_kld_callback {
    gguf_kld_fn *fn; /* NULL: none */
    void *user;      /* first argument of fn */
};

/* Options of gguf_kld_create(). */
struct gguf_kld_params {
    size_t struct_size;

    /* Allocator of the object. It must outlive the object. NULL: malloc. */
    const struct gguf_allocator *allocator;

    /* File with the base's logits. It must outlive the object. NULL: the base
     * is the first model of the scan. */
    const struct gguf_baseline *baseline;

    /* Index of the compared model, from 0, among the models of the scan without
     * the base. In a scan of { base, a, b }, a is 0 and b is 1. With a
     * baseline the base is not in the scan: of { a, b }, a is 0 and b is 1. */
    size_t model;

    /* Threads for divergences. It must outlive the object. NULL: the thread
     * that scans. */
    struct gguf_pool *pool;

    struct gguf_kld_callback on_chunk; /* called after each chunk, in order */
};
#define GGUF_KLD_PARAMS_INIT GGUF_INIT(struct gguf_kld_params)

/* Make an object that has scored nothing yet.
 *
 * out      Receives the object. NULL after a failure.
 * params   Options. NULL: the defaults.
 *
 * Destroy *out with gguf_kld_destroy().
 *
 * GGUF_E_NOMEM   An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_kld_create(struct gguf_kld **out, const struct gguf_kld_params *params,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Free an object. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_kld_destroy(struct gguf_kld *kld);

/* Sink by which a scan adds tokens: pass it to gguf_scan_run_models() (eval.h).
 * Owned by the object.
 *
 * One scan at a time; a later scan adds to the tokens of earlier ones. 32 bytes
 * are kept for each scored token, and none of its logits. After a failed scan
 * the object has the tokens of the chunks that were complete.
 *
 * A scan with this sink can also fail with:
 *
 * GGUF_E_INVALID     The scan has too few models for params.model; or the
 *                    baseline was made with a vocabulary, a context length or a
 *                    text other than the scan's, or cannot be used with its
 *                    cut. The message has the difference.
 * GGUF_E_NONFINITE   A logit is NaN or infinite. The message has chunk and
 *                    position. If a weight of the model has a NaN or an
 *                    infinity, it also has the name of the weight.
 * GGUF_E_CANCELLED   on_chunk returned true.
 * GGUF_E_NOMEM       An allocation failed.
 *
 * Since: 0.1 */
GGUF_API const struct gguf_sink *gguf_kld_sink(struct gguf_kld *kld);

/* Add the tokens of a chunk that was scored elsewhere, not during a scan of
 * this object.
 *
 * token    The tokens, in the order of the text; copied.
 * n        Number of tokens: those of one chunk. 0 adds nothing.
 *
 * If all chunks of a scan are added in order, the statistics are bit for bit
 * those of that scan. on_chunk is not called. A failure adds nothing.
 *
 * GGUF_E_INVALID   A number is not finite. The message has the number of the
 *                  token, from 1.
 * GGUF_E_NOMEM     An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status gguf_kld_add(struct gguf_kld *kld,
                                       const struct gguf_kld_token *token,
                                       size_t n,
                                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Tokens so far, in the order of the text. During a scan these may include
 * tokens of a chunk that is not complete.
 *
 * n        Receives the number of tokens.
 *
 * Returns the array, or NULL if nothing was added yet. Owned by the object;
 * valid until a token is added or the object is destroyed. Since: 0.1 */
GGUF_API const struct gguf_kld_token *
gguf_kld_tokens(const struct gguf_kld *kld, size_t *n);

/* Compute all statistics but the quantiles, of all chunks that are complete. In
 * a scan the current chunk is complete when on_chunk is called.
 *
 * stats    Receives the statistics; begin with GGUF_KLD_STATS_INIT. All
 *          quantiles are NaN.
 *
 * Without tokens all values and errors are NaN. With one token the correlation
 * and all errors (but that of a dp_rms of 0) are NaN. It is faster than
 * gguf_kld_stats(), since it sorts nothing.
 *
 * GGUF_E_INVALID   struct_size is wrong.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_kld_means(const struct gguf_kld *kld, struct gguf_kld_stats *stats,
               struct gguf_error *err) GGUF_MUST_CHECK;

/* Compute all statistics, with quantiles, of all chunks that are complete. In a
 * scan the current chunk is complete when on_chunk is called.
 *
 * stats    Receives the statistics; begin with GGUF_KLD_STATS_INIT.
 *
 * Without tokens all values and errors are NaN. With one token the correlation
 * and all errors of means (but that of a dp_rms of 0) are NaN.
 *
 * GGUF_E_INVALID   struct_size is wrong.
 * GGUF_E_NOMEM     An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_kld_stats(const struct gguf_kld *kld, struct gguf_kld_stats *stats,
               struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
