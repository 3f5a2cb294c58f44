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
 * (enum gguf_scan_cut). A row is the logits at one position of a chunk: the row
 * at position p predicts the token at position p + 1. A chunk scores the tokens
 * that its rows predict; its other tokens are context only.
 *
 * If the vocabulary wants a BOS, the model gets a BOS in place of each chunk's
 * first token, and does not see the token that the BOS replaces. (A text's
 * first chunk loses nothing: its first token already is the BOS that
 * GGUF_TOKENIZE_ADD_SPECIAL has added.) Sinks get the tokens as they are in the
 * text. Each chunk is a sequence of its own. Chunks are computed together; the
 * number of them depends on n_ubatch and n_seq of the session.
 *
 * Logits are given to the sinks as soon as they are computed, some rows at a
 * time, in the order of the text. They are not kept. A program that looks at
 * other tensors than logits uses on_graph of its session (session.h) and scans
 * without sinks.
 *
 * Log-probabilities are computed in double precision from f32 logits. On the
 * CPU all results, logits too, are bit for bit the same for any number of
 * threads and any n_ubatch and n_seq of the session.
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

/* How a text of n tokens is cut into chunks, and the tokens that a chunk
 * scores. C is n_ctx, S is stride; tokens of a text are counted from 0. */
enum gguf_scan_cut {
    /* Chunks side by side. Chunk i has the tokens i C to (i + 1) C - 1. Its
     * rows begin at position r of the chunk (rows_from), so it scores its
     * tokens from position r + 1 on. Tokens after the last whole chunk are
     * dropped. stride must be 0. */
    GGUF_SCAN_CHUNKS,

    /* A sliding window. Chunk i has the tokens i S to min(i S + C, n) - 1; the
     * last chunk is the first that reaches the end of the text. A chunk scores
     * the tokens that no earlier chunk has. If S < C, every token but the
     * text's first is scored once. If S is C, tokens at multiples of S are not
     * scored; if the text ends with such a token, no chunk has that token. In
     * every chunk but the first, each scored token has at least C - S tokens
     * before it. stride must be 1 to C. A text must have at least 4 tokens. If
     * the last chunk would have fewer than 4 tokens, it begins earlier, so that
     * it has 4. It scores the same tokens as it would without that. n_ctx must
     * be 4 or more. */
    GGUF_SCAN_SLIDING,

    /* The chunks of --ppl-stride in llama.cpp's perplexity tool (commit
     * d32676d), for figures that can be compared with that tool's. Chunk i has
     * the tokens i S to i S + C - 1 and scores the last S of them; there are
     * ceil((n - C) / S) chunks. The first C - S tokens and those after the last
     * chunk are not scored, and no BOS replaces a chunk's first token. stride
     * must be 1 to C - 1. gguf_scan_strided_ctx() computes C from that tool's
     * options --ctx-size and --ppl-stride. */
    GGUF_SCAN_STRIDED
};

/* Rows of a chunk that GGUF_SCAN_CHUNKS computes and scores. */
enum gguf_scan_rows_from {
    GGUF_SCAN_SECOND_HALF, /* rows from position n_ctx / 2, or n_ctx - 2 if
                            * that is lower */
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

    /* Position of each chunk's first row, for GGUF_SCAN_CHUNKS. The other cuts
     * have rows of their own: they ignore GGUF_SCAN_SECOND_HALF, the default,
     * and refuse GGUF_SCAN_FROM_FIRST. */
    enum gguf_scan_rows_from rows_from;
    uint32_t first; /* position for GGUF_SCAN_FROM_FIRST, up to n_ctx - 2 */

    size_t first_chunk; /* number of the first chunk that is scanned, from 0;
                         * it must exist */
    size_t max_chunks;  /* most chunks that are scanned; 0: no limit */

    struct gguf_pool *pool; /* threads for log-probabilities; NULL: none */
    struct gguf_progress_callback progress; /* unit: tokens */

    /* Memory budget in bytes for activations between layers. 0: off. Otherwise
     * all chunks whose activations fit into it together go through one layer
     * before any of them goes through the next layer (session_layered.h).
     * Results are the same bits, and weights are read once for all of these
     * chunks. Scans of several models must leave it 0. */
    uint64_t max_stored;

    bool no_bos; /* compute each chunk's first token, not a BOS */

    /* Ends of texts, if the tokens are several texts one after another: for
     * each text the index of the token after its last. Each text is cut by
     * itself and must have at least one chunk; chunks are numbered through all
     * texts. NULL: one text. */
    const size_t *text_end;
    size_t n_texts; /* elements of text_end; ignored if that is NULL */
};
#define GGUF_SCAN_PARAMS_INIT GGUF_INIT(struct gguf_scan_params)

/* Number of chunks of one text.
 *
 * n_tokens   Tokens of the text.
 * params     n_ctx, cut, stride, rows_from and first; the other members are
 *            ignored. NULL: the defaults.
 *
 * Returns 0 if the text is too short, or if one of these members has a value
 * that gguf_scan_run() refuses with every session. Any thread.
 * Since: 0.1 */
GGUF_API size_t gguf_scan_n_chunks(size_t n_tokens,
                                   const struct gguf_scan_params *params);

/* Number of tokens of the shortest text that has a chunk.
 *
 * params   n_ctx, cut, stride, rows_from and first; the other members are
 *          ignored. NULL: the defaults.
 *
 * Returns 0 if one of these members has a value that gguf_scan_run() refuses
 * with every session. Any thread. Since: 0.1 */
GGUF_API uint64_t gguf_scan_min_tokens(const struct gguf_scan_params *params);

/* Largest number of rows of a chunk in texts of up to n_tokens tokens. If
 * n_tokens is less than gguf_scan_min_tokens(), the result has no meaning.
 *
 * n_tokens   Tokens of the longest text.
 * params     n_ctx, cut, stride, rows_from and first; the other members are
 *            ignored. NULL: the defaults.
 *
 * Returns 0 if one of these members has a value that gguf_scan_run() refuses
 * with every session. Any thread. Since: 0.1 */
GGUF_API size_t gguf_scan_max_rows(size_t n_tokens,
                                   const struct gguf_scan_params *params);

/* Value for gguf_scan_params.n_ctx with which GGUF_SCAN_STRIDED has the chunks
 * of llama.cpp's perplexity tool.
 *
 * n_ctx    Value of that tool's option --ctx-size.
 * stride   Value of its option --ppl-stride, and of gguf_scan_params.stride.
 *
 * Returns n_ctx + stride / 2, rounded up to a multiple of 256; 0 if that is
 * 2^32 or more. Any thread. Since: 0.1 */
GGUF_API uint32_t gguf_scan_strided_ctx(uint32_t n_ctx, uint32_t stride);

/* ---- sinks ---- */

/* Facts about a scan, for its sinks. Owned by the scan. Only the library makes
 * it; later versions may add members at its end. */
struct gguf_scan_info {
    /* Parameters of the scan, with defaults filled in. */
    const struct gguf_scan_params *params;
    struct gguf_session *session; /* session of the first model */
    uint32_t n_vocab;             /* logits in a row */

    /* Rows. With GGUF_SCAN_CHUNKS every chunk has rows at the positions first
     * to first + n_rows - 1. With the other cuts chunks differ: first is 0, and
     * n_rows is the largest number of rows that a chunk has. */
    uint32_t first, n_rows;

    size_t n_chunks;   /* chunks of all texts, scanned or not */
    size_t begin, end; /* chunks that are scanned: begin to end - 1 */
    struct gguf_session *const *sessions; /* session of each model */
    size_t n_models;                      /* number of models */

    /* Tokens of all texts: text_end[n_texts - 1] of them. */
    const gguf_token *text;
    const size_t *text_end; /* [n_texts], index of the token after each text;
                             * never NULL */
    size_t n_texts;         /* number of texts, 1 or more */
    uint64_t n_scored;      /* rows of all chunks that are scanned */
};

struct gguf_scan;

/* Some rows of one chunk, valid during the call of a sink. Row i is at position
 * first + i of the chunk and predicts token[first + i + 1]. Only the library
 * makes it; later versions may add members at its end. */
struct gguf_scan_rows {
    struct gguf_scan *scan;  /* the scan, for gguf_scan_nll() */
    size_t chunk;            /* number of the chunk in all texts, from 0 */
    const gguf_token *token; /* tokens of the chunk, as in the text */
    uint32_t first;          /* position of the first row in the chunk */
    uint32_t n;              /* number of rows */
    uint32_t n_vocab;        /* logits in a row */
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
 * The scan's pool computes them on the first call for these rows; later calls
 * return the same array. A row's number is not finite if the row has a logit
 * that is NaN or +infinity, or if the logit of the token is -infinity. The
 * result has rows->n numbers; the scan owns it, and it is valid as long as
 * rows. Since: 0.1 */
GGUF_API const double *gguf_scan_nll(const struct gguf_scan_rows *rows);

/* Negative log-likelihoods of one of the models.
 *
 * rows     Argument of a sink's rows function. Call this inside of that
 *          function.
 * model    Number of the model, 0 to rows->n_models - 1.
 *
 * The result has rows->n numbers, computed from the logits of this model. The
 * scan owns it, and it is valid as long as rows. Since: 0.1 */
GGUF_API const double *gguf_scan_model_nll(const struct gguf_scan_rows *rows,
                                           size_t model);

/* Count the bytes and words of the tokens that rows score: token[first + 1] to
 * token[first + n] of rows.
 *
 * rows      Argument of a sink's rows function. Call this inside of that
 *           function.
 * n_bytes   Receives the number of bytes of these tokens' text.
 * n_words   Receives the number of words that begin in these bytes.
 *
 * Bytes are those of gguf_vocab_detokenize(), without the space that tokenizing
 * put in front; control tokens have 0 bytes. Words are separated by white space
 * of ASCII. The counts of a token do not depend on chunks: over all tokens of a
 * text but its BOS they add up to the bytes and words of the text. A scan that
 * does not score all tokens gives smaller sums.
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
/* Called after the last chunk, or after a failure, once for each sink whose
 * begin returned GGUF_OK or is NULL. If a begin fails, end is called only for
 * the sinks before that sink.
 *
 * st       GGUF_OK, or the failure of the scan or of an earlier sink's end.
 *
 * If st is not GGUF_OK, the scan returns st, and the status that this function
 * returns is ignored. */
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
 * session   Session of the model. All its sequences are cleared, before chunks
 *           are computed and at the end of the scan.
 * token     Tokens of the text, made with GGUF_TOKENIZE_ADD_SPECIAL.
 * n         Number of tokens.
 * params    Options. NULL: the defaults.
 * sinks     Sinks; each gets all rows. Borrowed during the call.
 * n_sinks   Number of sinks. 0: the text is only computed.
 *
 * If no sink takes rows, no logits are computed.
 *
 * GGUF_E_INVALID       The text is too short, n_ctx is larger than the
 *                      session's, first_chunk does not exist, another member of
 *                      params is out of range, or a sink has a wrong size.
 * GGUF_E_LIMIT         max_stored is too small. The message has max_stored and
 *                      the least size that is needed.
 * GGUF_E_UNSUPPORTED   The model has an encoder and a decoder; or it is an
 *                      encoder and a sink takes rows.
 * GGUF_E_CANCELLED     The progress callback returned true.
 * GGUF_E_NOMEM         An allocation failed.
 * Other                A status of gguf_session_decode() or
 *                      gguf_session_logits(), or the status of a sink.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_run(struct gguf_session *session, const gguf_token *token, size_t n,
              const struct gguf_scan_params *params,
              const struct gguf_sink *const *sinks, size_t n_sinks,
              struct gguf_error *err) GGUF_MUST_CHECK;

/* Scan a text with several models side by side.
 *
 * sessions   One session for each model, with a backend of its own. All their
 *            sequences are cleared, before chunks are computed and at the end.
 * n_models   Number of models, 1 or more.
 * token      Tokens of the text, made with GGUF_TOKENIZE_ADD_SPECIAL.
 * n          Number of tokens.
 * params     Options. NULL: the defaults.
 * sinks      Sinks; each gets all rows. Borrowed during the call.
 * n_sinks    Number of sinks.
 *
 * Every model computes the same chunks, then the sinks get some rows of all
 * models at once. The number of rows in one call of a sink is at most the
 * smallest gguf_session_max_logits() of the sessions. A row does not depend on
 * the other models.
 *
 * GGUF_E_INVALID       The vocabulary of a model differs from that of the first
 *                      one. The message has the difference.
 * GGUF_E_UNSUPPORTED   max_stored is not 0, and there are two models or more.
 * Other                A status of gguf_scan_run(), for the same reason.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_run_models(struct gguf_session *const *sessions, size_t n_models,
                     const gguf_token *token, size_t n,
                     const struct gguf_scan_params *params,
                     const struct gguf_sink *const *sinks, size_t n_sinks,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Check that two models have the same vocabulary.
 *
 * a, b     The models. A model without a vocabulary counts as one with 0
 *          tokens. Two such models are compared by the number of logits only;
 *          such a model differs from every model with a vocabulary.
 *
 * gguf_scan_run_models() does this itself.
 *
 * GGUF_E_INVALID   They differ. The message has the first difference: the
 *                  number of logits or tokens, the text of a token, or the
 *                  BOS that a text begins with.
 *
 * Any thread. Since: 0.1 */
GGUF_API enum gguf_status
gguf_scan_compare_vocab(const struct gguf_model *a, const struct gguf_model *b,
                        struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
