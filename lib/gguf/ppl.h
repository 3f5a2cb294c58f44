/* SPDX-License-Identifier: MIT */
/* ppl.h - perplexity of a text
 *
 * A scan (eval.h) cuts a text into chunks, and each chunk scores some of its
 * tokens: by default those at the positions n_ctx / 2 + 1 to n_ctx - 1. For a
 * scored token, x = -ln p(token | the tokens before it in the chunk). Over the
 * n scored tokens of the text:
 *
 *     perplexity  = exp(mean x)
 *     uncertainty = perplexity * sqrt((mean x^2 - (mean x)^2) / (n - 1))
 *
 * These are the definitions of llama.cpp's perplexity tool (checked against
 * commit d32676d). Sums are in double precision and in the order of the text:
 * digits do not depend on the number of threads or on the size of batches.
 *
 *     struct gguf_ppl ppl = GGUF_PPL_INIT;
 *     gguf_ppl_run(session, t.id, t.n, NULL, &ppl, &err);
 *     printf("%.4f +/- %.4f\n", gguf_ppl_value(&ppl), gguf_ppl_error(&ppl));
 *
 * Threads: one thread at a time for each session; any thread for functions that
 * take sums.
 */
#ifndef GGUF_PPL_H
#define GGUF_PPL_H

#include <gguf/eval.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sums over scored tokens. */
struct gguf_ppl {
    size_t struct_size;
    uint64_t n;       /* scored tokens */
    double sum;       /* sum of x, in nats */
    double sum_sq;    /* sum of x^2 */
    uint64_t n_bytes; /* bytes of the text of these tokens */
    uint64_t n_words; /* words that begin in it (gguf_scan_count_text()) */
};
#define GGUF_PPL_INIT GGUF_INIT(struct gguf_ppl)

/* Perplexity for each token, exp(sum / n). NaN for n = 0. Since: 0.1 */
GGUF_API double gguf_ppl_value(const struct gguf_ppl *p);

/* Standard error of the perplexity. NaN for n < 2. Since: 0.1 */
GGUF_API double gguf_ppl_error(const struct gguf_ppl *p);

/* Unit of text for which a figure is given. */
enum gguf_ppl_unit { GGUF_PPL_TOKEN, GGUF_PPL_BYTE, GGUF_PPL_WORD };

/* Perplexity for each unit of text: exp(sum / m) for m units.
 *
 * p        The sums.
 * unit     Unit of text.
 * error    Receives the standard error, value * se(x) n / m with the standard
 *          error se(x) of mean x. NULL: not wanted.
 *
 * Figures for bytes and words can be compared between vocabularies. NaN if the
 * text has no such unit. Since: 0.1 */
GGUF_API double gguf_ppl_per_unit(const struct gguf_ppl *p,
                                  enum gguf_ppl_unit unit, double *error);

/* Bits for each unit of text: sum / (m ln 2) for m units.
 *
 * p        The sums.
 * unit     Unit of text.
 * error    Receives the standard error, se(x) n / (m ln 2) with the standard
 *          error se(x) of mean x. NULL: not wanted.
 *
 * Figures for bytes and words can be compared between vocabularies. NaN if the
 * text has no such unit. Since: 0.1 */
GGUF_API double gguf_ppl_bits_per_unit(const struct gguf_ppl *p,
                                       enum gguf_ppl_unit unit, double *error);

/* Add the sums of one text to those of others.
 *
 * sums     Sums that grow.
 * part     Sums that are added.
 *
 * GGUF_E_INVALID   A struct_size is wrong.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status gguf_ppl_add(struct gguf_ppl *sums,
                                       const struct gguf_ppl *part,
                                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Called after each chunk.
 *
 * chunk      Number of the chunk, from 0.
 * n_chunks   Number of chunks of all texts.
 * of_chunk   Sums of the chunk.
 * so_far     Sums of all chunks up to and with this one. The struct_size of
 *            both is that of the run's result.
 *
 * Returns true to stop: the run then fails with GGUF_E_CANCELLED. */
typedef bool gguf_ppl_fn(void *user, size_t chunk, size_t n_chunks,
                         const struct gguf_ppl *of_chunk,
                         const struct gguf_ppl *so_far);

/* Function that sees the sums of each chunk. Later versions add no members to
 * this struct. */
struct gguf_ppl_callback {
    gguf_ppl_fn *fn; /* NULL: none */
    void *user;      /* first argument of fn */
};

/* Options of gguf_ppl_run(). */
struct gguf_ppl_params {
    size_t struct_size;

    /* Options of the scan; n_ctx at least 4. NULL: the defaults. */
    const struct gguf_scan_params *scan;

    struct gguf_ppl_callback on_chunk; /* sees each chunk, in order */

    /* Further sinks of the same scan; they get rows after perplexity. NULL:
     * none. */
    const struct gguf_sink *const *sinks;
    size_t n_sinks; /* number of further sinks */
};
#define GGUF_PPL_PARAMS_INIT GGUF_INIT(struct gguf_ppl_params)

/* Number of tokens that a text must have: two chunks of n_ctx tokens, or 4
 * tokens for GGUF_SCAN_SLIDING.
 *
 * params   Options of the scan. NULL: the defaults.
 *
 * Returns 0 if params are wrong. Since: 0.1 */
GGUF_API uint64_t gguf_ppl_min_tokens(const struct gguf_scan_params *params);

/* Number of chunks of one text, as gguf_scan_n_chunks() counts them.
 *
 * n_tokens   Tokens of the text.
 * params     Options of the scan. NULL: the defaults.
 *
 * Returns 0 if the text has fewer tokens than gguf_ppl_min_tokens() or params
 * are wrong. Since: 0.1 */
GGUF_API size_t gguf_ppl_n_chunks(size_t n_tokens,
                                  const struct gguf_scan_params *params);

/* Compute the perplexity of a text, or of several.
 *
 * session   Session of the model. It is cleared.
 * token     Tokens of the text, made with GGUF_TOKENIZE_ADD_SPECIAL.
 * n         Number of tokens: at least gguf_ppl_min_tokens() for one text, a
 *           chunk for each of several texts.
 * params    Options. NULL: the defaults.
 * out       Receives the sums; begin with GGUF_PPL_INIT. After a failure it
 *           has the sums of the chunks that were computed.
 *
 * GGUF_E_NONFINITE   A logit is NaN or infinite. The message has chunk and
 *                    position, and the weight that is the cause, if one is.
 * GGUF_E_CANCELLED   The progress callback or on_chunk returned true.
 *
 * Fails otherwise as gguf_scan_run() does. Since: 0.1 */
GGUF_API enum gguf_status gguf_ppl_run(struct gguf_session *session,
                                       const gguf_token *token, size_t n,
                                       const struct gguf_ppl_params *params,
                                       struct gguf_ppl *out,
                                       struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
