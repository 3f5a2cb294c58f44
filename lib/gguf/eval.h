/* SPDX-License-Identifier: MIT */
/* eval.h - scans: a text through models, its logits into sinks
 *
 * A scan takes a text, or several, through one model or more. It is the base of
 * perplexity (ppl.h), of divergences (kld.h) and of files of logits
 * (baseline.h), which are sinks. Programs can write sinks of their own.
 *
 *     gguf_vocab_tokenize(vocab, text, size, GGUF_TOKENIZE_ADD_SPECIAL,
 *                         &t, &err);
 *     struct gguf_sink sink = GGUF_SINK_INIT;
 *     sink.rows = take_rows;
 *     sink.user = &mine;
 *     const struct gguf_sink *sinks[] = { &sink };
 *     gguf_scan_run(session, t.id, t.n, NULL, sinks, 1, &err);
 *
 * The text is cut into chunks of n_ctx tokens, side by side or overlapping
 * (enum gguf_scan_cut). If the vocabulary wants a BOS, it takes the place of
 * each chunk's first token. Each chunk is a sequence of its own; chunks for
 * which there is room are computed together.
 *
 * Logits are given to the sinks as soon as they are computed, some rows at a
 * time, in the order of the text. They are not kept. A program that looks at
 * other tensors than logits uses on_graph of its session (session.h) and scans
 * without sinks.
 *
 * Log-probabilities are computed in double precision from f32 logits. Digits do
 * not depend on the number of threads or on the size of batches.
 *
 * Threads: one thread at a time for each session. Sinks are called from the
 * thread that scans.
 */
#ifndef GGUF_EVAL_H
#define GGUF_EVAL_H

#include <gguf/pool.h>
#include <gguf/progress.h>
#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parameters ---- */

/* How a text of n tokens is cut into chunks, and which tokens a chunk scores,
 * that is, predicts in its rows. C is n_ctx, S is stride. */
enum gguf_scan_cut {
    /* Chunks side by side. Chunk i has the tokens i C to (i + 1) C - 1 and
     * scores those after its first row's position. Tokens after the last whole
     * chunk are dropped. stride must be 0. */
    GGUF_SCAN_CHUNKS,

    /* A sliding window. Chunk i has the tokens i S to min(i S + C, n) - 1; the
     * last chunk is the first that reaches the end of the text. A chunk scores
     * the tokens that no earlier chunk has: every token but the first is scored
     * once, and after the first chunk with at least C - S tokens before it.
     * stride must be 1 to C. With a stride of C the first token of a chunk is
     * not scored. Texts have at least 4 tokens, and so has the last chunk: it
     * begins earlier if it would have fewer. */
    GGUF_SCAN_SLIDING,

    /* The chunks of --ppl-stride in llama.cpp's perplexity tool (commit
     * d32676d), for the same figures. Chunk i has the tokens i S to i S + C - 1
     * and scores the last S of them; there are ceil((n - C) / S) chunks. The
     * first C - S tokens and those after the last chunk are not scored, and no
     * BOS is added. stride must be 1 to C - 1. gguf_scan_strided_ctx() computes
     * C from that tool's option. */
    GGUF_SCAN_STRIDED
};

/* Rows of a chunk that GGUF_SCAN_CHUNKS computes and scores. */
enum gguf_scan_rows_from {
    GGUF_SCAN_SECOND_HALF, /* rows from position n_ctx / 2 */
    GGUF_SCAN_FROM_FIRST   /* rows from position first */
};

/* Options of a scan. */
struct gguf_scan_params {
    size_t struct_size;

    /* Tokens of a chunk: at least 2, at most n_ctx of the session. 0: 512. */
    uint32_t n_ctx;

    enum gguf_scan_cut cut; /* how the text is cut into chunks */

    /* Tokens from the begin of one chunk to that of the next, for
     * GGUF_SCAN_SLIDING and GGUF_SCAN_STRIDED. */
    uint32_t stride;

    /* First row of each chunk. Other cuts than GGUF_SCAN_CHUNKS allow the
     * default only. */
    enum gguf_scan_rows_from rows_from;
    uint32_t first; /* position for GGUF_SCAN_FROM_FIRST, up to n_ctx - 2 */

    size_t first_chunk; /* number of the first chunk that is scanned */
    size_t max_chunks;  /* most chunks that are scanned; 0: no limit */

    struct gguf_pool *pool; /* threads for log-probabilities; NULL: none */
    struct gguf_progress_callback progress; /* unit: tokens */

    /* Memory budget in bytes for activations between layers. 0: off. Else all
     * chunks that fit into it go through one layer before the next
     * (session_layered.h): digits are the same, and weights are read once for
     * all of these chunks. For one model. */
    uint64_t max_stored;

    bool no_bos; /* no BOS takes the place of a chunk's first token */

    /* Ends of texts, if the tokens are several texts one after another: for
     * each text the index of the token after its last. Each text is cut by
     * itself and must have at least one chunk; chunks are numbered through all
     * texts. NULL: one text. */
    const size_t *text_end;
    size_t n_texts; /* number of texts, with text_end */
};
#define GGUF_SCAN_PARAMS_INIT GGUF_INIT(struct gguf_scan_params)

/* Number of chunks of one text.
 *
 * n_tokens   Tokens of the text.
 * params     n_ctx, cut, stride and first row; the other members are ignored.
 *            NULL: the defaults.
 *
 * Returns 0 if the text is too short or params are wrong. Any thread.
 * Since: 0.1 */
GGUF_API size_t gguf_scan_n_chunks(size_t n_tokens,
                                   const struct gguf_scan_params *params);

/* Number of tokens of the shortest text that has a chunk.
 *
 * params   n_ctx, cut, stride and first row; the other members are ignored.
 *          NULL: the defaults.
 *
 * Returns 0 if params are wrong. Any thread. Since: 0.1 */
GGUF_API uint64_t gguf_scan_min_tokens(const struct gguf_scan_params *params);

/* Largest number of rows of a chunk in texts of up to n_tokens tokens.
 *
 * n_tokens   Tokens of the longest text.
 * params     n_ctx, cut, stride and first row; the other members are ignored.
 *            NULL: the defaults.
 *
 * Returns 0 if params are wrong. Any thread. Since: 0.1 */
GGUF_API size_t gguf_scan_max_rows(size_t n_tokens,
                                   const struct gguf_scan_params *params);

/* n_ctx of GGUF_SCAN_STRIDED for which llama.cpp's tool is asked for n_ctx
 * tokens: n_ctx + stride / 2, rounded up to a multiple of 256. 0 if that is too
 * large. Any thread. Since: 0.1 */
GGUF_API uint32_t gguf_scan_strided_ctx(uint32_t n_ctx, uint32_t stride);

/* ---- sinks ---- */

/* Facts about a scan, for its sinks. Owned by the scan. Only the library makes
 * it; later versions may add members at its end. */
struct gguf_scan_info {
    /* Parameters of the scan, with defaults filled in. */
    const struct gguf_scan_params *params;
    struct gguf_session *session; /* session of the first model */
    uint32_t n_vocab;             /* numbers of a row of logits */

    /* Rows of each chunk: positions first to first + n_rows - 1. With a stride,
     * first is 0 and n_rows is the largest number of a chunk. */
    uint32_t first, n_rows;

    size_t n_chunks;   /* chunks of all texts */
    size_t begin, end; /* chunks that are scanned: begin to end - 1 */
    struct gguf_session *const *sessions; /* session of each model */
    size_t n_models;                      /* number of models */

    /* Tokens of all texts. Side by side at least n_chunks * n_ctx of them. */
    const gguf_token *text;
    const size_t *text_end; /* [n_texts], index after each text */
    size_t n_texts;         /* number of texts, 1 or more */
    uint64_t n_scored;      /* rows of all chunks that are scanned */
};

struct gguf_scan;

/* Some rows of one chunk, valid during the call of a sink. Row i is the
 * prediction of token[first + i + 1] after token[first + i]. Only the library
 * makes it; later versions may add members at its end. */
struct gguf_scan_rows {
    struct gguf_scan *scan;  /* the scan, for gguf_scan_nll() */
    size_t chunk;            /* number of the chunk in all texts, from 0 */
    const gguf_token *token; /* tokens of the chunk, as in the text */
    uint32_t first;          /* position of the first row in the chunk */
    uint32_t n;              /* number of rows */
    uint32_t n_vocab;        /* numbers of a row */
    const float *logits;     /* [n][n_vocab], of the first model */
    size_t n_models;         /* number of models */
    const float *const *logits_of; /* [n_models], logits of each model */
    size_t text;                   /* number of the text, from 0 */
    size_t at;         /* index of token[0] in the tokens of all texts */
    uint32_t n_tokens; /* tokens of the chunk */
};

/* Negative log-likelihoods of the first model: for each row i the number -ln
 * p(token[first + i + 1]), natural logarithm.
 *
 * rows     Argument of a sink's rows function. Call this inside of that
 *          function.
 *
 * The scan's pool computes them when the first sink asks. They are not finite
 * if the logits are not. The result is valid as long as rows. Since: 0.1 */
GGUF_API const double *gguf_scan_nll(const struct gguf_scan_rows *rows);

/* Negative log-likelihoods of one of the models.
 *
 * rows     Argument of a sink's rows function. Call this inside of that
 *          function.
 * model    Number of the model, from 0.
 *
 * The result is as that of gguf_scan_nll(), for this model. Since: 0.1 */
GGUF_API const double *gguf_scan_model_nll(const struct gguf_scan_rows *rows,
                                           size_t model);

/* Count bytes and words of the text for which predicted tokens stand.
 *
 * rows      Argument of a sink's rows function. Call this inside of that
 *           function.
 * n_bytes   Receives the bytes of the tokens that the rows predict.
 * n_words   Receives the words that begin in these bytes.
 *
 * Bytes are those of gguf_vocab_detokenize(), without the space that tokenizing
 * put in front; control tokens have none. Words are separated by white space of
 * ASCII. The counts of all tokens of a text, without its BOS, add up to those
 * of the text, whatever its chunks.
 *
 * GGUF_E_NOMEM   An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_count_text(const struct gguf_scan_rows *rows, uint64_t *n_bytes,
                     uint64_t *n_words,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Functions of a sink. err is never NULL. A status other than GGUF_OK ends the
 * scan with that status and with the message in err. */

/* Called before the first chunk. info is valid until the scan ends. */
typedef enum gguf_status gguf_sink_begin_fn(void *user,
                                            const struct gguf_scan_info *info,
                                            struct gguf_error *err);
/* Called with some rows of a chunk, once or more for each chunk, in the order
 * of the text. */
typedef enum gguf_status gguf_sink_rows_fn(void *user,
                                           const struct gguf_scan_rows *rows,
                                           struct gguf_error *err);
/* Called after the last rows of a chunk, with its number. */
typedef enum gguf_status gguf_sink_chunk_fn(void *user, size_t chunk,
                                            struct gguf_error *err);
/* Called once for each sink that has begun. st is the status of the scan. After
 * a failure of the scan the result is ignored. */
typedef enum gguf_status gguf_sink_end_fn(void *user, enum gguf_status st,
                                          struct gguf_error *err);

/* Receiver of a scan's logits. A function that is NULL is not called. */
struct gguf_sink {
    size_t struct_size;
    void *user;                /* first argument of the functions */
    gguf_sink_begin_fn *begin; /* the scan begins */
    gguf_sink_rows_fn *rows;   /* rows of logits */
    gguf_sink_chunk_fn *chunk; /* a chunk is complete */
    gguf_sink_end_fn *end;     /* the scan has ended */
};
#define GGUF_SINK_INIT GGUF_INIT(struct gguf_sink)

/* ---- scans ---- */

/* Scan a text with one model.
 *
 * session   Session of the model. It is cleared.
 * token     Tokens of the text, made with GGUF_TOKENIZE_ADD_SPECIAL.
 * n         Number of tokens.
 * params    Options. NULL: the defaults.
 * sinks     Sinks; each gets all rows. Borrowed during the call.
 * n_sinks   Number of sinks. 0: the text is only computed.
 *
 * If no sink takes rows, no logits are computed.
 *
 * GGUF_E_INVALID       The text is too short, a member of params is out of
 *                      range, or a sink has a wrong size.
 * GGUF_E_LIMIT         max_stored is too small. The message has both sizes.
 * GGUF_E_UNSUPPORTED   The model has an encoder and a decoder; or it is an
 *                      encoder and a sink takes rows.
 * GGUF_E_CANCELLED     The progress callback returned true.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Fails otherwise as gguf_session_decode() does, or as a sink. Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_run(struct gguf_session *session, const gguf_token *token, size_t n,
              const struct gguf_scan_params *params,
              const struct gguf_sink *const *sinks, size_t n_sinks,
              struct gguf_error *err) GGUF_MUST_CHECK;

/* Scan a text with several models side by side.
 *
 * sessions   One session for each model, with a backend of its own. They are
 *            cleared.
 * n_models   Number of models, 1 or more.
 * token      Tokens of the text, made with GGUF_TOKENIZE_ADD_SPECIAL.
 * n          Number of tokens.
 * params     Options. NULL: the defaults.
 * sinks      Sinks; each gets all rows. Borrowed during the call.
 * n_sinks    Number of sinks.
 *
 * Every model computes the same chunks, then the sinks get some rows of all
 * models at once. The number of rows is at most that of the smallest
 * gguf_session_max_logits(). A row does not depend on the other models.
 *
 * GGUF_E_INVALID   The vocabulary of a model differs from that of the first
 *                  one. The message has the difference.
 *
 * Fails otherwise as gguf_scan_run() does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_run_models(struct gguf_session *const *sessions, size_t n_models,
                     const gguf_token *token, size_t n,
                     const struct gguf_scan_params *params,
                     const struct gguf_sink *const *sinks, size_t n_sinks,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Check that two models have the same vocabulary.
 *
 * a, b     The models. Without vocabularies their numbers of logits are
 *          compared.
 *
 * gguf_scan_run_models() does this itself.
 *
 * GGUF_E_INVALID   They differ. The message has the first difference: the
 *                  number of logits or tokens, the text of a token, or the
 *                  token that begins a text.
 *
 * Any thread. Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_compare_vocab(const struct gguf_model *a, const struct gguf_model *b,
                        struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
