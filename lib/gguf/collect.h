/* SPDX-License-Identifier: MIT */
/* collect.h - importance data collected by evaluating a model on a text
 *
 * For each matrix of the layers, the sums of squares of each column of its
 * input: of matrix W and the rows x of its input, which a text makes,
 *
 *     sum(j)  = sum over rows of x(j)^2
 *     count   = number of rows
 *
 * for each expert of its own rows. The text is tokenized as the vocabulary
 * asks and cut into chunks of n_ctx tokens, each a sequence of its own; a BOS
 * takes the place of a chunk's first token if the vocabulary adds one. All
 * tokens of a chunk count. As llama.cpp's imatrix tool (commit d32676d).
 *
 * Squares are added in double within a chunk, in the order of its tokens. Sums
 * of chunks are cut off to 32 binary digits or more below the first digit of
 * the column's largest one and added as whole numbers, which is exact: they do
 * not depend on the number of threads, on how tokens are batched, or on how
 * chunks are divided among runs and in which order these are merged. What is
 * cut off is less than 2^-32 of the column's largest chunk, for each chunk.
 *
 *     gguf_collect_create(&c, NULL, &err);
 *     gguf_collect_run(c, session, tokens, n, NULL, &err);
 *     gguf_collect_result(c, &im, &err);             (gguf/imatrix.h)
 *
 * One thread at a time.
 */
#ifndef GGUF_COLLECT_H
#define GGUF_COLLECT_H

#include <gguf/imatrix.h>
#include <gguf/pool.h>
#include <gguf/progress.h>
#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_collect;

struct gguf_collect_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    uint32_t n_ctx;                         /* tokens of a chunk, at least 1 */
    bool output; /* the output matrix too: the states after the last norm of
                  * all tokens; nothing is multiplied */
    const char *const *include; /* n_include texts: only matrices whose names
                                 * contain one; copied */
    size_t n_include;           /* 0: all */
    const char *const *exclude; /* n_exclude texts: no matrices whose names
                                 * contain one; copied */
    size_t n_exclude;
    const char *precision; /* how sessions compute products of weights, by
                            * gguf_precision_name(); at most 31 bytes; parts of
                            * another are refused; copied. NULL: "exact" */
};
#define GGUF_COLLECT_PARAMS_INIT                                              \
    {                                                                         \
        sizeof(struct gguf_collect_params), NULL, 512, false, NULL, 0, NULL,  \
            0, NULL                                                           \
    }

/* With nothing collected yet. params NULL: the defaults. GGUF_E_INVALID,
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_create(struct gguf_collect **out,
                    const struct gguf_collect_params *params,
                    struct gguf_error *err) GGUF_MUST_CHECK;
/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_collect_destroy(struct gguf_collect *c);

/* A chunk that is through. Made by the library: it may grow at its end. */
struct gguf_collect_chunk {
    size_t chunk;         /* from 0, of the text */
    size_t n_done, n_all; /* chunks of this run that are through; all */
    const char *bad;      /* NULL, or: the chunk was left out, because this
                           * matrix had an input that is NaN or infinite */
};
/* A result other than 0 stops with GGUF_E_CANCELLED; the chunk counts. */
typedef int gguf_collect_chunk_fn(void *user,
                                  const struct gguf_collect_chunk *chunk);

struct gguf_collect_run {
    size_t struct_size;
    const char *dataset;    /* the text's name in the result; or NULL */
    size_t first_chunk;     /* chunks before it are not evaluated */
    size_t max_chunks;      /* 0: all */
    struct gguf_pool *pool; /* for the sums; NULL: this thread */
    gguf_collect_chunk_fn *on_chunk; /* in order of chunks; or NULL */
    gguf_progress_fn *progress;      /* in tokens; or NULL */
    void *user;                      /* of both */
    uint64_t max_stored; /* 0: chunk after chunk. Else layer by layer, so that
                          * weights are read once for as many chunks as leave
                          * no more bytes for the next layer: a group, whose
                          * chunks are in c, and reported, when all are
                          * through; the sums take twice their memory */
};
#define GGUF_COLLECT_RUN_INIT GGUF_INIT(struct gguf_collect_run)

/* Evaluate the chunks of n tokens (tokenized with GGUF_TOKENIZE_ADD_SPECIAL)
 * that c does not have yet, one at a time or layer by layer, with the same
 * digits; the session is cleared. It may be
 * called again, for other chunks of the same text: after the first call the
 * model, the text and the type of the session's keys and values are those of c.
 * run NULL: the defaults. A chunk whose inputs are not all finite is left out
 * of all sums; layer by layer its group is computed once more without it. After
 * a failure c has the chunks that were through. GGUF_E_INVALID (too few tokens,
 * params), GGUF_E_LIMIT (max_stored is too little for a chunk: both sizes),
 * GGUF_E_MISMATCH (another model, text or type of keys than c has),
 * GGUF_E_UNSUPPORTED (a model of an encoder and a decoder; encoders layer by
 * layer), GGUF_E_CANCELLED, GGUF_E_NOMEM, and the statuses of the session.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_run(struct gguf_collect *c, struct gguf_session *session,
                 const gguf_token *token, size_t n,
                 const struct gguf_collect_run *run,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* What was collected. */
struct gguf_collect_info {
    size_t struct_size;
    uint32_t n_ctx;
    bool output;
    size_t n_chunks;       /* of the text; 0: there was no run */
    size_t n_done;         /* of them in the sums */
    size_t n_skipped;      /* left out */
    size_t n_tensors;      /* matrices with an input */
    const char *precision; /* of the params, or of the part that was loaded;
                            * lives as long as what was collected */
};
#define GGUF_COLLECT_INFO_INIT GGUF_INIT(struct gguf_collect_info)
/* GGUF_E_INVALID (out). Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_info(const struct gguf_collect *c, struct gguf_collect_info *out,
                  struct gguf_error *err) GGUF_MUST_CHECK;

enum gguf_collect_state {
    GGUF_COLLECT_MISSING = 0,
    GGUF_COLLECT_DONE = 1,
    GGUF_COLLECT_SKIPPED = 2 /* not finite */
};
/* What became of a chunk of the text; MISSING out of range. Since: 0.1 */
GGUF_API enum gguf_collect_state
gguf_collect_chunk_state(const struct gguf_collect *c, size_t chunk);

/* The sums and counts in single precision, as files have them. Matrices without
 * input, such as those of layers that are not evaluated, are left out.
 * GGUF_E_NOTFOUND (nothing was collected), GGUF_E_NONFINITE (every chunk was
 * left out), GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_result(const struct gguf_collect *c, struct gguf_imatrix **out,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* A part: a file with the whole state of c, exactly, from which a run goes on
 * or which is merged with others. Written atomically: a process that is killed
 * leaves the file of before. GGUF (gguf/file.h) with general.type
 * "imatrix-part"; what is in it is described in gguf-imatrix(1). GGUF_E_INVALID
 * (there was no run), GGUF_E_EXIST, GGUF_E_IO, GGUF_E_NOSPACE, GGUF_E_NOMEM.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_save(const struct gguf_collect *c, const char *path, int force,
                  struct gguf_error *err) GGUF_MUST_CHECK;
/* params: of the file; NULL: the defaults. The statuses of gguf_file_open, and
 * GGUF_E_NOTFOUND (not a part), GGUF_E_VERSION, GGUF_E_FORMAT, GGUF_E_MISMATCH,
 * GGUF_E_TYPE. Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_load(struct gguf_collect **out, const char *path,
                  const struct gguf_file_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Add what other has; if c has nothing yet, only settings must be the same.
 * GGUF_E_MISMATCH (another model, text, setting; a chunk
 * that both have: the message says which), GGUF_E_NOMEM. Nothing has changed
 * then, but for GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_merge(struct gguf_collect *c, const struct gguf_collect *other,
                   struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
