/* SPDX-License-Identifier: MIT */
/* model_base.h - from a file to a model that can be evaluated
 *
 * A model is a file's hyperparameters, its vocabulary and its weights, all of
 * them checked against each other. Weights are used in place, from the
 * mapping. Copied are only floats that do not lie at multiples of four bytes,
 * and weights in another byte order than tensors in memory (tensor.h): all
 * weights of a big-endian file, and on a big-endian machine the plain numbers
 * of a little-endian file. Sessions (session.h) compute with it.
 *
 *     struct gguf_model *model;
 *     st = gguf_file_open(&file, path, NULL, &err);
 *     if (!st)
 *         st = gguf_model_create(&model, file, NULL, &err);
 *
 * The file may be a set of shards: results are the same bits as the merged file
 * gives.
 */
#ifndef GGUF_MODEL_BASE_H
#define GGUF_MODEL_BASE_H

#include <gguf/file.h>
#include <gguf/pool.h>
#include <gguf/progress.h>
#include <gguf/split.h>
#include <gguf/vocab.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_model;
struct gguf_tensor; /* tensor.h */

struct gguf_model_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    gguf_warn_fn *warn;                     /* or NULL */
    void *warn_user;
    const char *pre;              /* as in gguf_vocab_params; kept */
    const struct gguf_meta *meta; /* pairs that count instead of those of the
                                   * file, or beside them; NULL: none; kept */
};
#define GGUF_MODEL_PARAMS_INIT GGUF_INIT(struct gguf_model_params)

/* file is kept: it must outlive the model, and stay as it is on disk. An offset
 * in an error about a set counts in the shard whose name begins the message.
 *
 * GGUF_E_ARCH        the architecture is not one that can be evaluated
 * GGUF_E_HPARAM      a hyperparameter that is impossible: key and value
 * GGUF_E_NOTFOUND    a key that is missing
 * GGUF_E_TYPE        a key of the wrong type
 * GGUF_E_VOCAB       the vocabulary is inconsistent, or does not fit the
 *                    embeddings
 * GGUF_E_TENSOR      a weight that is missing or whose shape or type does not
 *                    fit: its name, what was found, what was expected
 * GGUF_E_UNSUPPORTED something well formed that is not evaluated yet; one
 *                    shard of several that was opened alone
 * GGUF_E_INVALID     params; params->meta has a key that says how files are
 *                    laid out: general.alignment, split.*
 * GGUF_E_NOMEM
 * Tensors that the model does not use, and keys of params->meta that nothing
 * reads, are warned of. A value of params->meta is checked as if it were in the
 * file, without an offset in errors. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_create(struct gguf_model **out, const struct gguf_file *file,
                  const struct gguf_model_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Sessions on it must be gone. Since: 0.1 */
GGUF_API void gguf_model_destroy(struct gguf_model *model);

/* The model does not change: any thread may call what follows. */

/* How states of a sequence's tokens become one vector. */
enum gguf_pooling {
    GGUF_POOLING_MODEL, /* as the file's pooling_type says; without it NONE */
    GGUF_POOLING_NONE,  /* they do not */
    GGUF_POOLING_MEAN,
    GGUF_POOLING_CLS,  /* the token at the lowest position */
    GGUF_POOLING_LAST, /* the one at the highest */
    GGUF_POOLING_RANK  /* scores: of the first token (or as the architecture
                        * has it), through the classifier cls and cls.output
                        * as far as the file has them */
};

/* "none", "mean", "cls", "last", "rank"; "?" for others. Since: 0.1 */
GGUF_API const char *gguf_pooling_name(enum gguf_pooling pooling);

/* Made by the library: it may grow at its end. */
struct gguf_model_info {
    struct gguf_str arch; /* general.architecture; borrowed of the file */
    uint32_t n_layer;
    uint32_t n_embd;      /* width of the residual stream */
    uint32_t n_vocab;     /* rows of the output matrix */
    uint32_t n_ctx_train; /* tokens of context that it was trained on */
    uint64_t n_params;    /* elements of the weights that are used; a matrix
                             used twice counts once */
    uint64_t weight_size; /* bytes of them */
    bool has_logits;      /* false: an encoder, whose states are its result */
    bool is_whole;      /* nothing is kept of a sequence, which is one batch */
    bool encodes_first; /* an encoder and a decoder: a text is encoded, then
                         * another is decoded (session.h) */
    gguf_token decoder_start;  /* the token that decoding begins with, or
                               * GGUF_TOKEN_NONE */
    enum gguf_pooling pooling; /* that the file asks for, or NONE */
    uint32_t n_label;          /* names of what RANK gives; 0: it has none */
    uint64_t copied_size; /* of weight_size, bytes in memory of the model's own
                           * rather than in the file's mapping */
};
/* Owned by the model. Since: 0.1 */
GGUF_API const struct gguf_model_info *
gguf_model_info(const struct gguf_model *model);

/* Owned by the model. Since: 0.1 */
GGUF_API const struct gguf_vocab *
gguf_model_vocab(const struct gguf_model *model);

/* The weight that the model uses of the i-th tensor of its file, as in
 * gguf_file_tensor, or of the tensor of that name (NUL-terminated). NULL: the
 * model does not use that tensor, or there is none. The name may be cut
 * (GGUF_TENSOR_NAME, tensor.h). gguf_tensor_get() reads its data, wherever it
 * lies; nobody may write to it. Owned by the model; functions of load.h move
 * the data and not the tensor. Since: 0.1 */
GGUF_API const struct gguf_tensor *
gguf_model_tensor(const struct gguf_model *model, size_t i);
GGUF_API const struct gguf_tensor *
gguf_model_tensor_find(const struct gguf_model *model, const char *name);

/* What number i of n_label that RANK gives is of, by classifier.output_labels:
 * *label is borrowed of the file. GGUF_E_INVALID. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_label(const struct gguf_model *model, size_t i,
                 struct gguf_str *label,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* How work on all weights is done, which takes a while. */
struct gguf_model_job {
    size_t struct_size;
    struct gguf_pool *pool;     /* NULL: the calling thread does it all */
    gguf_progress_fn *progress; /* or NULL; in bytes of the weights; called by
                                 * the calling thread, and at the end with all
                                 * of them */
    void *user;                 /* of progress */
};
#define GGUF_MODEL_JOB_INIT GGUF_INIT(struct gguf_model_job)

/* Read every weight that is used, and look for NaN and infinities.
 * (gguf_file_check looks at a file as a container.) GGUF_E_NONFINITE names the
 * first such element in the order of tensors, whatever the number of threads;
 * the offset is that of the element, or of its block. job may be NULL.
 * GGUF_E_CANCELLED (progress), GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_check_finite(const struct gguf_model *model,
                        const struct gguf_model_job *job,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* The n-th architecture that can be evaluated, or NULL after the last.
 * Since: 0.1 */
GGUF_API const char *gguf_model_arch_at(size_t n);

/* --- hyperparameters ------------------------------------------------------ */

enum gguf_hparam_kind {
    GGUF_HPARAM_UINT, /* an integer of any type */
    GGUF_HPARAM_FLOAT,
    GGUF_HPARAM_BOOL,
    GGUF_HPARAM_TEXT,
    GGUF_HPARAM_OTHER /* an array, or what nothing here computes with */
};

enum gguf_hparam_flags {
    GGUF_HPARAM_ALWAYS = 1, /* required; of the epsilons, the one for the
                              * model's kind of norm */
    GGUF_HPARAM_MEMORY = 2, /* a model with this key keeps something else than
                              * a key and a value for each token */
    GGUF_HPARAM_SUMMARY = 4 /* shown in a description of a model */
};

/* One key of a model's metadata, as evaluation and verification read it. Made
 * by the library: it may grow at its end. */
struct gguf_hparam {
    const char *key;   /* the part after "ARCH."; a leading '/' (not part of
                        * the key) means that it has no such prefix */
    const char *label; /* for people */
    const char *name;  /* for programs, if it is shown; or NULL */
    const char *hf;    /* in a config.json of Hugging Face's transformers, or
                        * NULL */
    double min, max;   /* of numbers */
    uint8_t kind;      /* enum gguf_hparam_kind */
    uint8_t flags;     /* enum gguf_hparam_flags */
    uint8_t per_layer; /* may be an array with a number for each layer */
};

/* The n-th, or NULL after the last: static. Since: 0.1 */
GGUF_API const struct gguf_hparam *gguf_hparam_at(size_t n);

#ifdef __cplusplus
}
#endif
#endif
