/* SPDX-License-Identifier: MIT */
/* eval.h - numbers about models
 *
 * A scan takes a text, or several, through a model once. A text is tokenized
 * as the vocabulary asks (BOS) and cut into chunks of n_ctx tokens, side by
 * side or overlapping (enum gguf_scan_cut). If the vocabulary adds a BOS, it
 * takes the place of each chunk's first token. Each chunk is a sequence of its
 * own, and as many go through the model together as there is room for. Logits
 * are handed to sinks as they are computed, some rows at a time and in the
 * order of the text; they are not kept. Code that looks at other tensors than
 * logits uses the session's graphs (on_graph in session.h) and scans without a
 * sink.
 *
 * Perplexity is a sink. The tokens that a chunk scores (side by side those at
 * positions n_ctx / 2 + 1 to n_ctx - 1) have x = -ln p(token | those before it
 * in the chunk). Then
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

/* How a text of n tokens is cut into chunks, with C = n_ctx and S = stride; and
 * which tokens each of them scores, that is predicts in its rows. */
enum gguf_scan_cut {
    /* Chunk i has tokens i C to (i + 1) C - 1, and scores those after its token
     * first. A rest is dropped. stride is 0. */
    GGUF_SCAN_CHUNKS,
    /* The sliding window: chunk i has tokens i S to min(i S + C, n) - 1; the
     * last is the first that reaches the end of the text. Scored are those that
     * no chunk before has: each token of the text but the first once, and each
     * but those of the first chunk with C - S to C - 1 tokens before it. S is 1
     * to C; of S = C nothing predicts the first token of a chunk. Texts have 4
     * tokens or more, and so has the last chunk: where it would have fewer, it
     * begins earlier. */
    GGUF_SCAN_SLIDING,
    /* --ppl-stride of llama.cpp's perplexity tool (commit d32676d), for its
     * figures: chunk i has tokens i S to i S + C - 1 and scores the last S of
     * them; there are ceil((n - C) / S). The first C - S tokens and a rest are
     * not scored, and no BOS is put in. S is 1 to C - 1. C is
     * gguf_scan_strided_ctx of what the tool is asked for. */
    GGUF_SCAN_STRIDED
};

/* What a scan will hand to its sinks; borrowed from the scan. Made by the
 * library: it may grow at its end. */
struct gguf_scan_info {
    const struct gguf_scan_params *params; /* how the text is cut; defaults are
                                            * filled in */
    struct gguf_session *session;
    uint32_t n_vocab;
    uint32_t first, n_rows; /* rows of each chunk: positions first to first +
                             * n_rows - 1; but with a stride first is 0, and
                             * n_rows what a chunk has at most */
    size_t n_chunks;        /* of the text */
    size_t begin, end;      /* chunks that are scanned: begin to end - 1 */
    struct gguf_session *const *sessions; /* n_models, side by side; the first
                                           * is session */
    size_t n_models;
    const gguf_token *text; /* all of it; side by side n_chunks * n_ctx tokens
                             * or more */
    const size_t
        *text_end; /* [n_texts]: the token after the last of each text,
                             * whether params have several texts or one */
    size_t n_texts;
    uint64_t n_scored; /* rows of all chunks that are scanned */
};

struct gguf_scan;

/* Some rows of one chunk, valid during the call. Row i is the model's
 * prediction, after token[first + i], of token[first + i + 1]. Made by the
 * library: it may grow at its end. */
struct gguf_scan_rows {
    struct gguf_scan *scan;
    size_t chunk;            /* from 0, of the text */
    const gguf_token *token; /* [n_tokens] of the chunk, as in the text */
    uint32_t first, n;
    uint32_t n_vocab;
    const float *logits; /* [n][n_vocab], of the first model */
    size_t n_models;
    const float *const *logits_of; /* [n_models], of each model likewise */
    size_t text;                   /* which one, from 0 */
    size_t at;                     /* token[0] is that token of all texts */
    uint32_t n_tokens;             /* of the chunk */
};

/* -ln p(token[first + i + 1]) for each of the rows, natural logarithms,
 * computed by the scan's pool when the first sink asks. Not finite where
 * logits are not. To be called only from a sink's rows function; valid as long
 * as rows. Since: 0.1 */
GGUF_API const double *gguf_scan_nll(const struct gguf_scan_rows *rows);
/* The same of one of the models, from 0. Since: 0.1 */
GGUF_API const double *gguf_scan_model_nll(const struct gguf_scan_rows *rows,
                                           size_t model);

/* The bytes of the text that the rows' tokens (those that they predict) stand
 * for, and the words that begin in it: of gguf_vocab_detokenize, without what
 * tokenizing has put in front of the text; control tokens have none. What white
 * space of ASCII parts is a word. Over all tokens of a text but a BOS they are
 * those of the text, whatever its chunks. To be called as gguf_scan_nll is.
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_count_text(const struct gguf_scan_rows *rows, uint64_t *n_bytes,
                     uint64_t *n_words,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* The functions of a sink. A status other than GGUF_OK ends the scan with that
 * status and with the message in err, which is never NULL. */
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
                                * a failure: then st says how the scan ended,
                                * and the status that end returns is ignored */
};
#define GGUF_SINK_INIT GGUF_INIT(struct gguf_sink)

struct gguf_scan_params {
    size_t struct_size;
    uint32_t n_ctx;             /* tokens of a chunk: at least 2, at most the
                               session's */
    uint32_t first;             /* position of each chunk's first row, at most
                               n_ctx - 2; GGUF_SCAN_HALF: n_ctx / 2, and for
                               other cuts than GGUF_SCAN_CHUNKS */
    size_t first_chunk;         /* chunks before it are not scanned */
    size_t max_chunks;          /* 0: all */
    struct gguf_pool *pool;     /* for log-probabilities; NULL: this thread */
    gguf_progress_fn *progress; /* in tokens; or NULL */
    void *user;                 /* of progress */
    uint64_t max_stored; /* 0: chunks go through all layers, as many as are
                          * computed together at a time. Else layer by layer
                          * (gguf_session_decode_layered), as many as can store
                          * in so many bytes what they leave for the next layer:
                          * the same digits, and weights are read once for all
                          * of these. Of one model */
    enum gguf_scan_cut cut;
    uint32_t stride;        /* as the cut says */
    int no_bos;             /* none takes the place of a chunk's first token */
    const size_t *text_end; /* NULL: the tokens are one text. Else n_texts of
                             * them, one after another: for each the number of
                             * the token after its last. Each is cut by itself,
                             * and has a chunk at least; chunks are counted
                             * through all of them */
    size_t n_texts;
};
#define GGUF_SCAN_HALF UINT32_MAX
#define GGUF_SCAN_PARAMS_INIT                                                 \
    {                                                                         \
        sizeof(struct gguf_scan_params), 512, GGUF_SCAN_HALF, 0, 0, NULL,     \
            NULL, NULL, 0, GGUF_SCAN_CHUNKS, 0, 0, NULL, 0                    \
    }

/* Chunks of one text of so many tokens, cut as params say: n_ctx (1 or more),
 * first, cut and stride; first_chunk and max_chunks do not count. 0: the text
 * is too short, or params are wrong. Since: 0.1 */
GGUF_API size_t gguf_scan_n_chunks(size_t n_tokens,
                                   const struct gguf_scan_params *params);

/* Number of tokens of the shortest text that has a chunk; 0: params are wrong.
 * Since: 0.1 */
GGUF_API uint64_t gguf_scan_min_tokens(const struct gguf_scan_params *params);

/* The largest number of rows of a chunk of texts of at most n_tokens tokens;
 * 0: params are wrong. Since: 0.1 */
GGUF_API size_t gguf_scan_max_rows(size_t n_tokens,
                                   const struct gguf_scan_params *params);

/* Tokens of a chunk of GGUF_SCAN_STRIDED where llama.cpp's tool is asked for
 * n_ctx: n_ctx + stride / 2, rounded up to a multiple of 256; 0: too many.
 * Since: 0.1 */
GGUF_API uint32_t gguf_scan_strided_ctx(uint32_t n_ctx, uint32_t stride);

/* Scan n tokens (tokenized with GGUF_TOKENIZE_ADD_SPECIAL) into n_sinks sinks,
 * which get each piece in turn. As many chunks as the session has sequences
 * and n_ubatch has room for are computed together; the session is cleared.
 * Where no sink takes rows, no logits are computed. GGUF_E_INVALID (too few
 * tokens, params, a sink), GGUF_E_LIMIT (max_stored is too little: both sizes),
 * GGUF_E_CANCELLED (by progress), GGUF_E_UNSUPPORTED (a model that encodes a
 * text and decodes another; an encoder, where a sink takes rows), GGUF_E_NOMEM,
 * and the statuses of sinks and of the session. Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_run(struct gguf_session *session, const gguf_token *token, size_t n,
              const struct gguf_scan_params *params,
              const struct gguf_sink *const *sinks, size_t n_sinks,
              struct gguf_error *err) GGUF_MUST_CHECK;

/* Take the same text through n_models models side by side, each with a session
 * and a backend of its own: every model computes a group of chunks, and then
 * sinks get some rows of all of them at once. No more rows are there at a time
 * than one session gives (gguf_session_max_logits). What a row holds does not
 * depend on the models beside it. GGUF_E_INVALID also where a model has another
 * vocabulary than the first one: the message says what differs. Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_run_models(struct gguf_session *const *sessions, size_t n_models,
                     const gguf_token *token, size_t n,
                     const struct gguf_scan_params *params,
                     const struct gguf_sink *const *sinks, size_t n_sinks,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Do two models have the same vocabulary? GGUF_E_INVALID: no; the message says
 * what differs first: the number of logits or of tokens, the text of a token,
 * or the token that begins a text. Models without a vocabulary are compared by
 * the number of logits. gguf_scan_run_models asks this itself. Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_compare_vocab(const struct gguf_model *a, const struct gguf_model *b,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* ---- perplexity ---- */

/* Sums over scored tokens. */
struct gguf_ppl {
    size_t struct_size;
    uint64_t n;       /* tokens scored */
    double sum;       /* of x, nats */
    double sum_sq;    /* of x^2 */
    uint64_t n_bytes; /* of the text that these tokens stand for, */
    uint64_t n_words; /* and in it: as gguf_scan_count_text has them */
};
#define GGUF_PPL_INIT GGUF_INIT(struct gguf_ppl)

/* exp(sum / n); NaN for n = 0. Since: 0.1 */
GGUF_API double gguf_ppl_value(const struct gguf_ppl *p);
/* One standard error; NaN for n < 2. Since: 0.1 */
GGUF_API double gguf_ppl_error(const struct gguf_ppl *p);

/* What a figure is for each of. */
enum gguf_ppl_unit { GGUF_PPL_TOKEN, GGUF_PPL_BYTE, GGUF_PPL_WORD };

/* With m of a unit and se(x) the standard error of the mean x: the perplexity
 * for each of the unit, exp(sum / m), and the bits, sum / (m ln 2). *error (or
 * NULL) gets the standard error, value * se(x) n / m and se(x) n / (m ln 2).
 * Figures for bytes and words can be compared between vocabularies. NaN where
 * there are none of the unit. Since: 0.1 */
GGUF_API double gguf_ppl_per_unit(const struct gguf_ppl *p,
                                  enum gguf_ppl_unit unit, double *error);
GGUF_API double gguf_ppl_bits_per_unit(const struct gguf_ppl *p,
                                       enum gguf_ppl_unit unit, double *error);

/* Sums over both texts: add part to sums. GGUF_E_INVALID (a struct's size).
 * Since: 0.1 */
GGUF_API enum gguf_status gguf_ppl_add(struct gguf_ppl *sums,
                                       const struct gguf_ppl *part,
                                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Called after each chunk (counted from 0) of n_chunks with its sums and the
 * sums of all so far; struct_size is that of the run's result. A result other
 * than 0 stops with GGUF_E_CANCELLED. */
typedef int gguf_ppl_fn(void *user, size_t chunk, size_t n_chunks,
                        const struct gguf_ppl *of_chunk,
                        const struct gguf_ppl *so_far);

struct gguf_ppl_params {
    size_t struct_size;
    const struct gguf_scan_params *scan; /* the scan of the text; n_ctx is at
                                          * least 4. NULL: the defaults */
    gguf_ppl_fn *on_chunk; /* called for each chunk, in order; or NULL */
    void *user;            /* argument of on_chunk */
    const struct gguf_sink *const *sinks; /* n_sinks more sinks of the same
                                           * scan, after perplexity's own */
    size_t n_sinks;
};
#define GGUF_PPL_PARAMS_INIT GGUF_INIT(struct gguf_ppl_params)

/* Number of tokens that one text needs: two chunks of n_ctx tokens, or 4 tokens
 * for GGUF_SCAN_SLIDING. 0: params are wrong. Since: 0.1 */
GGUF_API uint64_t gguf_ppl_min_tokens(const struct gguf_scan_params *params);

/* Chunks of one text, as gguf_scan_n_chunks; 0 also where it has fewer tokens
 * than gguf_ppl_min_tokens says. Since: 0.1 */
GGUF_API size_t gguf_ppl_n_chunks(size_t n_tokens,
                                  const struct gguf_scan_params *params);

/* Perplexity of n tokens: one scan. One text must have gguf_ppl_min_tokens, of
 * several texts each a chunk. Fails like gguf_scan_run, and
 * with GGUF_E_NONFINITE if logits are NaN or infinite: it names chunk,
 * position, and the weight that is the cause if there is one. *out,
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
