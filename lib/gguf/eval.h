/* eval.h - numbers about models
 *
 * A scan takes a text through a model once. The text is tokenized as the
 * vocabulary asks (BOS) and cut into chunks of n_ctx tokens; a rest is dropped.
 * If the vocabulary adds a BOS, it takes the place of each chunk's first token.
 * Each chunk is a sequence of its own, and as many go through the model
 * together as there is room for. Logits are handed as they come, some rows at a
 * time and in the order of the text, to sinks, each of which makes something of
 * them; no chunk's logits are kept. What looks at other tensors than logits
 * hangs on the session's graphs (on_graph in session.h) and scans without a
 * sink.
 *
 * Perplexity is a sink. Of each chunk the tokens at positions n_ctx / 2 + 1 to
 * n_ctx - 1 are scored: x = -ln p(token | those before it). Then
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

/* ---- scans ---- */

/* What a scan will hand over; borrowed from it. Made by the library: it may
 * grow at its end. */
struct gguf_scan_info {
    struct gguf_session *session;
    uint32_t n_ctx, n_vocab;
    uint32_t first, n_rows; /* of each chunk: rows at positions first to
                             * first + n_rows - 1 */
    size_t n_chunks;        /* of the text */
    size_t begin, end;      /* chunks that are scanned: begin to end - 1 */
};

struct gguf_scan;

/* Some rows of one chunk, valid during the call. Row i is what the model says
 * after token[first + i] about token[first + i + 1]. Made by the library: it
 * may grow at its end. */
struct gguf_scan_rows {
    struct gguf_scan *scan;
    size_t chunk;            /* from 0, of the text */
    const gguf_token *token; /* [n_ctx] of the chunk, as in the text */
    uint32_t first, n;
    uint32_t n_vocab;
    const float *logits; /* [n][n_vocab] */
};

/* -ln p(token[first + i + 1]) for each of the rows, natural logarithms: they
 * are computed by the scan's pool when the first sink asks. Not finite where
 * logits are not. From a sink's rows function alone, valid as long as rows.
 * Since: 0.1 */
GGUF_API const double *gguf_scan_nll(const struct gguf_scan_rows *rows);

/* What a sink does. A status other than GGUF_OK ends the scan with that
 * status; a message in err, which is never NULL, is the scan's then. */
typedef enum gguf_status gguf_sink_begin_fn(void *user,
                                            const struct gguf_scan_info *info,
                                            struct gguf_error *err);
typedef enum gguf_status gguf_sink_rows_fn(void *user,
                                           const struct gguf_scan_rows *rows,
                                           struct gguf_error *err);
typedef enum gguf_status gguf_sink_chunk_fn(void *user, size_t chunk,
                                            struct gguf_error *err);
typedef enum gguf_status gguf_sink_end_fn(void *user, enum gguf_status st,
                                          struct gguf_error *err);

/* Where a scan's logits go: functions that are called from the thread that
 * scans. Each may be NULL. */
struct gguf_sink {
    size_t struct_size;
    void *user;
    gguf_sink_begin_fn *begin; /* before the first chunk */
    gguf_sink_rows_fn *rows;   /* once or more for each chunk, in order */
    gguf_sink_chunk_fn *chunk; /* all rows of the chunk were handed over */
    gguf_sink_end_fn *end;     /* once for each sink that has begun, also after
                                * a failure: st says how the scan ended, and
                                * then what end returns does not count */
};
#define GGUF_SINK_INIT                                                        \
    {                                                                         \
        sizeof(struct gguf_sink), NULL, NULL, NULL, NULL, NULL                \
    }

struct gguf_scan_params {
    size_t struct_size;
    uint32_t n_ctx;         /* tokens of a chunk, at least 2, at most that of
                               the session */
    uint32_t first;         /* position of each chunk's first row, at most
                               n_ctx - 2; GGUF_SCAN_HALF: n_ctx / 2 */
    size_t first_chunk;     /* chunks before it are not scanned */
    size_t max_chunks;      /* 0: all */
    struct gguf_pool *pool; /* for log-probabilities; NULL: this thread */
    gguf_progress_fn *progress; /* in tokens; or NULL */
    void *user;                 /* of progress */
};
#define GGUF_SCAN_HALF UINT32_MAX
#define GGUF_SCAN_PARAMS_INIT                                                 \
    {                                                                         \
        sizeof(struct gguf_scan_params), 512, GGUF_SCAN_HALF, 0, 0, NULL,     \
            NULL, NULL                                                        \
    }

/* Scan n tokens (tokenized with GGUF_TOKENIZE_ADD_SPECIAL) into n_sinks sinks,
 * which get each piece in turn. As many chunks as the session has sequences
 * and n_ubatch has room for are computed together; the session is cleared.
 * Where no sink takes rows, no logits are computed. GGUF_E_INVALID (too few
 * tokens, params, a sink), GGUF_E_CANCELLED (by progress), GGUF_E_NOMEM, and
 * what sinks and the session return. Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_run(struct gguf_session *session, const gguf_token *token, size_t n,
              const struct gguf_scan_params *params,
              const struct gguf_sink *const *sinks, size_t n_sinks,
              struct gguf_error *err) GGUF_MUST_CHECK;

/* ---- perplexity ---- */

/* Sums over scored tokens. */
struct gguf_ppl {
    size_t struct_size;
    uint64_t n;    /* tokens scored */
    double sum;    /* of x, nats */
    double sum_sq; /* of x^2 */
};
#define GGUF_PPL_INIT                                                         \
    {                                                                         \
        sizeof(struct gguf_ppl), 0, 0, 0                                      \
    }

/* exp(sum / n); NaN for n = 0. Since: 0.1 */
GGUF_API double gguf_ppl_value(const struct gguf_ppl *p);
/* One standard error; NaN for n < 2. Since: 0.1 */
GGUF_API double gguf_ppl_error(const struct gguf_ppl *p);
/* Sums over both texts: add part to sums. Since: 0.1 */
GGUF_API void gguf_ppl_add(struct gguf_ppl *sums, const struct gguf_ppl *part);

/* One more chunk is done: chunk (from 0) of n_chunks, what it gave, and the
 * sums of all so far, with the struct_size of the run's result. Not 0 stops
 * with GGUF_E_CANCELLED. */
typedef int gguf_ppl_fn(void *user, size_t chunk, size_t n_chunks,
                        const struct gguf_ppl *of_chunk,
                        const struct gguf_ppl *so_far);

struct gguf_ppl_params {
    size_t struct_size;
    uint32_t n_ctx;         /* tokens of a chunk, at least 4, at most that of
                              the session */
    size_t first_chunk;     /* chunks before it are not evaluated */
    size_t max_chunks;      /* 0: all */
    struct gguf_pool *pool; /* for log-probabilities; NULL: this thread */
    gguf_ppl_fn *on_chunk;  /* in order of chunks; or NULL */
    gguf_progress_fn *progress;           /* in tokens; or NULL */
    void *user;                           /* of both */
    const struct gguf_sink *const *sinks; /* n_sinks more of the same scan, */
    size_t n_sinks;                       /* after perplexity's own */
};
#define GGUF_PPL_PARAMS_INIT                                                  \
    {                                                                         \
        sizeof(struct gguf_ppl_params), 512, 0, 0, NULL, NULL, NULL, NULL,    \
            NULL, 0                                                           \
    }

/* Chunks of n_ctx tokens in n_tokens; 0 if there are fewer than two, which is
 * too little for an estimate. Since: 0.1 */
GGUF_API size_t gguf_ppl_n_chunks(size_t n_tokens, uint32_t n_ctx);

/* Perplexity of n tokens: a scan (gguf_scan_run), all of whose failures it can
 * return, and GGUF_E_NONFINITE (logits that are NaN or infinite: names chunk
 * and position, and the weight that is to blame if there is one). *out,
 * initialised with GGUF_PPL_INIT, holds what was summed until then.
 * Since: 0.1 */
GGUF_API enum gguf_status gguf_ppl_run(struct gguf_session *session,
                                       const gguf_token *token, size_t n,
                                       const struct gguf_ppl_params *params,
                                       struct gguf_ppl *out,
                                       struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
