/* eval.h - numbers about models
 *
 * Perplexity: the text is tokenized once, as the vocabulary asks (BOS), and
 * cut into chunks of n_ctx tokens; a rest is dropped. If the vocabulary adds
 * a BOS, it replaces each chunk's first token. Each chunk is a sequence of
 * its own. The tokens at positions n_ctx / 2 + 1 to n_ctx - 1 are scored:
 * x = -ln p(token | those before it). Then
 *
 *     perplexity  = exp(mean x)
 *     uncertainty = perplexity * sqrt((mean x^2 - (mean x)^2) / (n - 1))
 *
 * as llama.cpp's perplexity tool does (checked against commit d32676d).
 * Log-probabilities are computed in double from f32 logits and summed in the
 * order of the text: digits do not depend on threads or batch sizes.
 */
#ifndef GGUF_EVAL_H
#define GGUF_EVAL_H

#include <gguf/pool.h>
#include <gguf/progress.h>
#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sums over scored tokens. Two of them are merged by adding the members. */
struct gguf_ppl {
    uint64_t n;    /* tokens scored */
    double sum;    /* of x, nats */
    double sum_sq; /* of x^2 */
};

/* exp(sum / n); NaN for n = 0. Since: 0.1 */
GGUF_API double gguf_ppl_value(const struct gguf_ppl *p);
/* One standard error; NaN for n < 2. Since: 0.1 */
GGUF_API double gguf_ppl_error(const struct gguf_ppl *p);

/* One more chunk is done: chunk (from 0) of n_chunks, what it gave, and the
 * sums of all so far. Not 0 stops with GGUF_E_CANCELLED. */
typedef int gguf_ppl_fn(void *user, size_t chunk, size_t n_chunks,
                        const struct gguf_ppl *of_chunk,
                        const struct gguf_ppl *so_far);

struct gguf_ppl_params {
    size_t struct_size;
    uint32_t n_ctx;        /* tokens of a chunk, at least 4, at most that of
                              the session */
    size_t first_chunk;    /* chunks before it are not evaluated */
    size_t max_chunks;     /* 0: all */
    struct gguf_pool *pool; /* for log-probabilities; NULL: this thread */
    gguf_ppl_fn *on_chunk; /* in order of chunks; or NULL */
    gguf_progress_fn *progress; /* in tokens; or NULL */
    void *user;            /* of both */
};
#define GGUF_PPL_PARAMS_INIT                                                  \
    { sizeof(struct gguf_ppl_params), 512, 0, 0, NULL, NULL, NULL, NULL }

/* Chunks of n_ctx tokens in n_tokens; 0 if there are fewer than two, which is
 * too little for an estimate. Since: 0.1 */
GGUF_API size_t gguf_ppl_n_chunks(size_t n_tokens, uint32_t n_ctx);

/* Perplexity of n tokens (tokenized with GGUF_TOKENIZE_ADD_SPECIAL). As many
 * chunks as the session has sequences and n_ubatch has room for are computed
 * together; the session is cleared. GGUF_E_INVALID (too few tokens,
 * params), GGUF_E_NONFINITE (logits that are no numbers: names chunk and
 * position, and the weight that is to blame if there is one),
 * GGUF_E_CANCELLED, GGUF_E_NOMEM. *out holds what was summed until then.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_ppl_run(struct gguf_session *session, const gguf_token *token, size_t n,
             const struct gguf_ppl_params *params, struct gguf_ppl *out,
             struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
