/* SPDX-License-Identifier: MIT */
/* collect.h - collect importance data by evaluating a model on a text
 *
 * A collector adds up the squares of the inputs of each weight matrix. For
 * column j of a matrix, over the rows x of its input,
 *
 *     sum(j)  = sum over rows of x(j)^2
 *     count   = number of rows
 *
 * and for each expert over the rows that it received. Its calls, in order:
 *
 *     gguf_collect_create(&c, NULL, &err);
 *     gguf_collect_run(c, session, tokens, n, NULL, &err);
 *     gguf_collect_result(c, &im, &err);             (imatrix.h)
 *     gguf_collect_destroy(c);
 *
 * Text: tokenized with GGUF_TOKENIZE_ADD_SPECIAL and cut into chunks of n_ctx
 * tokens. Each chunk is evaluated as a separate sequence. If the vocabulary
 * adds a BOS, it replaces the first token of each chunk. All tokens of a chunk
 * count. llama.cpp's imatrix tool works the same way (commit d32676d).
 *
 * Several runs: gguf_collect_save() writes a part, a file with the exact state.
 * gguf_collect_load() continues from it, and gguf_collect_merge() adds up parts
 * of one text that were evaluated apart.
 *
 * Accuracy: squares are added in double precision within a chunk, in the order
 * of its tokens. Sums of chunks are cut to at least 32 binary digits below the
 * first digit of the column's largest one, and added as integers. That is
 * exact: the result does not depend on threads, batches, or the division of
 * chunks among runs. Each chunk loses less than 2^-32 of the column's largest
 * chunk.
 *
 * Ownership: a collector keeps none of its arguments but the allocator.
 *
 * Threads: a collector is used by one thread at a time.
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
    size_t struct_size; /* set by GGUF_COLLECT_PARAMS_INIT */
    const struct gguf_allocator *allocator; /* kept; NULL: malloc */
    uint32_t n_ctx;                         /* tokens of a chunk; 0: 512 */

    /* Collect for the output matrix too. Its inputs are the states of all
     * tokens after the last norm; nothing is multiplied for this. */
    bool output;

    /* Texts: collect only for matrices whose names contain one of them;
     * copied. */
    const char *const *include;
    size_t n_include; /* number of texts; 0: collect for all matrices */

    /* Texts: collect nothing for matrices whose names contain one of them;
     * copied. */
    const char *const *exclude;
    size_t n_exclude; /* number of texts */

    /* Precision of the session's products, a name of gguf_precision_name(), up
     * to 31 bytes; copied. Parts with another precision cannot be merged. NULL:
     * "exact". */
    const char *precision;
};
#define GGUF_COLLECT_PARAMS_INIT GGUF_INIT(struct gguf_collect_params)

/* Create a collector without data.
 *
 * out      Receives the collector. NULL after a failure.
 * params   Its settings. NULL: the defaults.
 *
 * Free *out with gguf_collect_destroy().
 *
 * GGUF_E_INVALID  The precision is too long; a text of include or exclude is
 *                 NULL or has a newline.
 * GGUF_E_NOMEM    Memory for the collector cannot be allocated.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_create(struct gguf_collect **out,
                    const struct gguf_collect_params *params,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a collector. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_collect_destroy(struct gguf_collect *c);

/* ------------------------------------------------------------- the run --- */

/* A chunk that was evaluated. Only the library makes it; later versions may add
 * members at its end. */
struct gguf_collect_chunk {
    size_t chunk;    /* number of the chunk in the text, from 0 */
    size_t n_done;   /* chunks of this run that were evaluated */
    size_t n_all;    /* chunks of this run */
    const char *bad; /* name of a matrix with an input that is NaN or infinite:
                      * the chunk was left out; NULL: it counts */
};

/* Report an evaluated chunk, in the order of chunks. Return true to stop the
 * run with GGUF_E_CANCELLED; the chunk counts nevertheless. */
typedef bool gguf_collect_chunk_fn(void *user,
                                   const struct gguf_collect_chunk *chunk);

/* A chunk function and its pointer. Later versions add no members to this
 * struct. */
struct gguf_collect_chunk_callback {
    gguf_collect_chunk_fn *fn; /* NULL: no reports */
    void *user;                /* passed to fn */
};

struct gguf_collect_run_params {
    size_t struct_size;     /* set by GGUF_COLLECT_RUN_PARAMS_INIT */
    const char *dataset;    /* name of the text in the result; NULL: none */
    size_t first_chunk;     /* chunks before this one are not evaluated */
    size_t max_chunks;      /* number of chunks to evaluate; 0: all */
    struct gguf_pool *pool; /* threads that add up the squares; NULL: the
                             * calling thread alone */
    struct gguf_collect_chunk_callback on_chunk; /* called after each chunk */
    struct gguf_progress_callback progress;      /* unit: tokens */

    /* Memory budget in bytes for activations between layers. 0: chunks are
     * evaluated one by one. Otherwise a group of chunks that fits the budget
     * goes through each layer together, so that weights are read once per
     * group. The chunks of a group are added and reported when all are through;
     * the sums take twice their memory. */
    uint64_t max_stored;
};
#define GGUF_COLLECT_RUN_PARAMS_INIT GGUF_INIT(struct gguf_collect_run_params)

/* Evaluate chunks of a text and add their squares.
 *
 * c         The collector.
 * session   Evaluates the chunks; its context must have room for n_ctx tokens.
 *           It is cleared.
 * token     The tokens of the text.
 * n         Number of tokens.
 * run       Which chunks to evaluate, and how. NULL: the defaults.
 *
 * Chunks that c has already are not evaluated again. May be called repeatedly
 * for other chunks of the same text. After the first call, the model, the text
 * and the types of the session's key/value cache are fixed.
 *
 * A chunk with an input that is NaN or infinite is left out of all sums; layer
 * by layer, its group is then evaluated again without it. After a failure, c
 * has the chunks that were finished before.
 *
 * GGUF_E_INVALID      The text has too few tokens for a chunk; the session has
 *                     no room for a chunk.
 * GGUF_E_LIMIT        max_stored is too small for one chunk: the message has
 *                     both sizes.
 * GGUF_E_MISMATCH     The model, the text or the cache types differ from those
 *                     of earlier runs.
 * GGUF_E_UNSUPPORTED  The model has an encoder and a decoder; or it is an
 *                     encoder and max_stored is set.
 * GGUF_E_CANCELLED    A callback stopped the run.
 * GGUF_E_NOMEM        Memory for the sums cannot be allocated.
 * Other               The statuses of gguf_session_decode().
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_run(struct gguf_collect *c, struct gguf_session *session,
                 const gguf_token *token, size_t n,
                 const struct gguf_collect_run_params *run,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* --------------------------------------------------------- the results --- */

/* State of a collector. */
struct gguf_collect_info {
    size_t struct_size; /* set by GGUF_COLLECT_INFO_INIT; members
                         * beyond this size are not filled */
    uint32_t n_ctx;     /* tokens of a chunk */
    bool output;        /* data for the output matrix are collected */
    size_t n_chunks;    /* chunks of the text; 0: nothing was run or merged */
    size_t n_done;      /* chunks in the sums */
    size_t n_skipped;   /* chunks that were left out */
    size_t n_tensors;   /* weight tensors with an input */
    const char *precision; /* precision of the products; belongs to c */
};
#define GGUF_COLLECT_INFO_INIT GGUF_INIT(struct gguf_collect_info)

/* Describe the state of a collector in *out.
 *
 * GGUF_E_INVALID  out is NULL or its struct_size is 0.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_info(const struct gguf_collect *c, struct gguf_collect_info *out,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* State of a chunk. */
enum gguf_collect_state {
    GGUF_COLLECT_MISSING = 0, /* not evaluated */
    GGUF_COLLECT_DONE = 1,    /* added to the sums */
    GGUF_COLLECT_SKIPPED = 2  /* left out: an input was NaN or infinite */
};

/* State of chunk number chunk of the text; MISSING if it is out of range.
 * Since: 0.1 */
GGUF_API enum gguf_collect_state
gguf_collect_chunk_state(const struct gguf_collect *c, size_t chunk);

/* Make importance data of the sums and counts, in single precision.
 *
 * c     The collector.
 * out   Receives the data. NULL after a failure.
 *
 * Matrices without input, such as those of layers that are not evaluated, are
 * left out. Free *out with gguf_imatrix_destroy().
 *
 * GGUF_E_NOTFOUND   Nothing was collected.
 * GGUF_E_NONFINITE  Every chunk was left out.
 * GGUF_E_NOMEM      Memory for the data cannot be allocated.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_result(const struct gguf_collect *c, struct gguf_imatrix **out,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* ---------------------------------------------------------- parts --- */

/* Save the exact state of a collector as a part.
 *
 * c       The collector.
 * path    Path of the file. It gets its name when it is complete: a process
 *         that is killed leaves an existing file as it was.
 * force   Replace an existing file.
 *
 * A part is a GGUF file with general.type "imatrix-part"; gguf-imatrix(1)
 * describes its keys and tensors.
 *
 * GGUF_E_INVALID  Nothing was run or merged.
 * GGUF_E_EXIST    path exists and force is not set.
 * GGUF_E_LIMIT    A name is too long for a tensor of the file.
 * GGUF_E_IO       The file cannot be written.
 * GGUF_E_NOSPACE  The disk is full.
 * GGUF_E_NOMEM    A buffer cannot be allocated.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_save(const struct gguf_collect *c, const char *path, bool force,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Load a part.
 *
 * out      Receives a collector with the state of the part. NULL after a
 *          failure.
 * path     Path of the file.
 * params   How to open it. NULL: the defaults.
 *
 * Free *out with gguf_collect_destroy().
 *
 * GGUF_E_NOTFOUND  The file is not a part, or lacks a key.
 * GGUF_E_VERSION   The file is a part of another version of this format.
 * GGUF_E_FORMAT    A number is out of range.
 * GGUF_E_MISMATCH  A tensor is missing or has another shape.
 * GGUF_E_TYPE      A key has the wrong type.
 * Other            The statuses of gguf_file_open().
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_load(struct gguf_collect **out, const char *path,
                  const struct gguf_file_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Add the chunks of other to c.
 *
 * c       The collector. If it has no chunks yet, only its settings must equal
 *         those of other.
 * other   A collector of the same model and text, with other chunks.
 *
 * GGUF_E_MISMATCH  The model, the text, a setting or a shape differs; a chunk
 *                  is in both; or other has no chunks. The message says which.
 *                  c is unchanged.
 * GGUF_E_NOMEM     Memory for the sums cannot be allocated. c may have a part
 *                  of other, and can only be destroyed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_collect_merge(struct gguf_collect *c, const struct gguf_collect *other,
                   struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
