/* SPDX-License-Identifier: MIT */
/* model_base.h - a model: weights, hyperparameters and vocabulary of a file
 *
 * A model belongs to one open file, or to one set of shards. It holds the
 * hyperparameters, the vocabulary and the weights, all checked against each
 * other. Sessions (session.h) compute with it.
 *
 *     gguf_file_open(&file, path, NULL, &err);
 *     gguf_model_create(&model, file, NULL, &err);
 *     gguf_session_create(&session, model, &params, &err);
 *     ...
 *     gguf_session_destroy(session);
 *     gguf_model_destroy(model);
 *     gguf_file_close(file);
 *
 * The model borrows the file: the file must outlive the model and must not
 * change on disk. The model must outlive its sessions and adapters.
 *
 * Weights are used in place, in the mapping of the file. Two kinds of weights
 * are copied instead: floats that do not lie at a multiple of four bytes, and
 * weights whose byte order differs from that of tensors in memory (tensor.h).
 * The latter are all weights of a big-endian file and, on a big-endian machine,
 * the plain numbers of a little-endian file.
 *
 * A set of shards gives the same bits as the merged file.
 *
 * Threads: any thread may call a function that takes a const model. The other
 * functions are in load.h; one thread calls them before the model has sessions.
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

/* Options of gguf_model_create(). */
struct gguf_model_params {
    size_t struct_size;

    /* Allocator of the model. It must outlive the model. NULL: malloc. */
    const struct gguf_allocator *allocator;

    /* Receives warnings: about tensors that the model does not use, about keys
     * in meta that nothing reads, and those of gguf_vocab_create(). */
    struct gguf_warn_callback warn;

    /* Name of the pre-tokenizer, in place of the file's key
     * tokenizer.ggml.pre. The string must outlive the model. NULL: the
     * file's. */
    const char *pre;

    /* Key-value pairs that replace pairs of the file or add to them. Each is
     * checked as if the file had it. They must outlive the model. NULL:
     * none. */
    const struct gguf_meta *meta;
};
#define GGUF_MODEL_PARAMS_INIT GGUF_INIT(struct gguf_model_params)

/* Make a model from a file and check all of its metadata.
 *
 * out      Receives the model. NULL after a failure.
 * file     Open file or set of shards. It must outlive the model.
 * params   Options. NULL: the defaults.
 *
 * Destroy *out with gguf_model_destroy(). The values of weights are not read;
 * gguf_model_check_finite() reads them.
 *
 * GGUF_E_ARCH          The architecture cannot be evaluated.
 * GGUF_E_HPARAM        A hyperparameter has an impossible value. The message
 *                      has key and value.
 * GGUF_E_NOTFOUND      A required key is missing.
 * GGUF_E_TYPE          A key has the wrong type.
 * GGUF_E_VOCAB         The vocabulary is inconsistent, or does not fit the
 *                      embeddings.
 * GGUF_E_TENSOR        A weight is missing, or its shape or type does not fit.
 *                      The message has its name, the value that was found and
 *                      the expected one.
 * GGUF_E_UNSUPPORTED   The file is well formed, but something in it is not
 *                      evaluated; or one shard of several was opened alone.
 * GGUF_E_INVALID       params->meta has a key about the layout of files:
 *                      general.alignment or split.*.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * err->offset is a byte of the file; in a set it is a byte of the shard whose
 * name begins the message. An error about a pair of params->meta has no
 * offset.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_create(struct gguf_model **out, const struct gguf_file *file,
                  const struct gguf_model_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a model. Its sessions and adapters must have been destroyed before. NULL
 * is allowed. Since: 0.1 */
GGUF_API void gguf_model_destroy(struct gguf_model *model);

/* How the states of a sequence's tokens become one vector. */
enum gguf_pooling {
    GGUF_POOLING_MODEL, /* the file's pooling_type; NONE without that key */
    GGUF_POOLING_NONE,  /* no vector: states are results of their own */
    GGUF_POOLING_MEAN,  /* mean of the states of all tokens */
    GGUF_POOLING_CLS,   /* state of the token at the lowest position */
    GGUF_POOLING_LAST,  /* state of the token at the highest position */

    /* Scores of a classifier: the state of the first token, or of the token
     * that the architecture takes, is multiplied by the weights cls and
     * cls.output. A weight that the file lacks is left out. */
    GGUF_POOLING_RANK
};

/* Name of a pooling: "none", "mean", "cls", "last" or "rank"; "?" for all other
 * values. Any thread. Since: 0.1 */
GGUF_API const char *gguf_pooling_name(enum gguf_pooling pooling);

/* Facts about a model. Only the library makes it; later versions may add
 * members at its end. */
struct gguf_model_info {
    struct gguf_str arch; /* general.architecture; owned by the file */
    uint32_t n_layer;     /* layers: block_count of the file */
    uint32_t n_embd;      /* width of the residual stream */
    uint32_t n_vocab;     /* rows of the output matrix */
    uint32_t n_ctx_train; /* tokens of context in training */

    /* Elements of all weights that are used. A matrix that is used twice counts
     * once. */
    uint64_t n_params;

    uint64_t weight_size; /* bytes of the same weights */
    bool has_logits;      /* false: an encoder; its results are states */

    /* True: a sequence is one batch, since the model remembers nothing of
     * earlier batches. */
    bool is_whole;

    /* True: the model has an encoder and a decoder. A text is encoded first,
     * then another one is decoded (gguf_session_encode()). */
    bool encodes_first;

    /* First token of each text that a decoder behind an encoder is given.
     * GGUF_TOKEN_NONE: the model has no such token. */
    gguf_token decoder_start;

    enum gguf_pooling pooling; /* pooling of the file; never MODEL */
    uint32_t n_label;          /* labels of RANK's scores; 0: no labels */

    /* Bytes of weight_size that lie in the model's own memory and not in the
     * mapping of the file. */
    uint64_t copied_size;
};

/* Facts about the model. Owned by the model. Any thread. Since: 0.1 */
GGUF_API const struct gguf_model_info *
gguf_model_info(const struct gguf_model *model);

/* Vocabulary of the model. Owned by the model. Any thread. Since: 0.1 */
GGUF_API const struct gguf_vocab *
gguf_model_vocab(const struct gguf_model *model);

/* The weight that the model made from tensor i of its file.
 *
 * i        Number of the tensor, as for gguf_file_tensor().
 *
 * The result is owned by the model. gguf_tensor_get() reads its data, wherever
 * they lie; nobody may write to it. Functions of load.h may move the data but
 * not the tensor. The tensor's own name may be cut (GGUF_TENSOR_NAME,
 * tensor.h). For programs that read weights as evaluation does.
 *
 * Returns NULL if i is out of range or the model does not use the tensor.
 *
 * Threads: any. Since: 0.1 */
GGUF_API const struct gguf_tensor *
gguf_model_tensor(const struct gguf_model *model, size_t i);

/* The weight that the model made from a tensor of a given name.
 *
 * name     Name of the tensor in the file, NUL-terminated.
 *
 * The result is owned by the model, as that of gguf_model_tensor().
 *
 * Returns NULL if the file has no such tensor or the model does not use it.
 *
 * Threads: any. Since: 0.1 */
GGUF_API const struct gguf_tensor *
gguf_model_tensor_find(const struct gguf_model *model, const char *name);

/* Label of one score that GGUF_POOLING_RANK gives, from
 * classifier.output_labels.
 *
 * i        Number of the score, less than n_label of gguf_model_info().
 * label    Receives the text. Owned by the file.
 *
 * GGUF_E_INVALID   i is out of range.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_label(const struct gguf_model *model, size_t i,
                 struct gguf_str *label,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* Threads and progress of a function that reads or moves all weights. */
struct gguf_model_job {
    size_t struct_size;
    struct gguf_pool *pool; /* threads that work; NULL: the calling thread */

    /* Progress in bytes of weights. Called by the calling thread, and at the
     * end with done equal to total. */
    struct gguf_progress_callback progress;
};
#define GGUF_MODEL_JOB_INIT GGUF_INIT(struct gguf_model_job)

/* Read every weight of the model and look for NaN and infinities.
 *
 * job      Threads and progress. NULL: the calling thread, no progress.
 *
 * gguf_file_check() (check.h) looks at the file as a container instead.
 *
 * GGUF_E_NONFINITE   A weight has a NaN or an infinity. The message names the
 *                    first such element in the order of tensors, whatever the
 *                    number of threads; err->offset is the byte of the element
 *                    or of its block.
 * GGUF_E_CANCELLED   The progress callback returned true.
 * GGUF_E_NOMEM       An allocation failed.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_check_finite(const struct gguf_model *model,
                        const struct gguf_model_job *job,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Name of the n-th architecture that can be evaluated, in alphabetical order;
 * NULL after the last. For programs that list them. Static storage. Any thread.
 * Since: 0.1 */
GGUF_API const char *gguf_model_arch_at(size_t n);

/* --- hyperparameters ------------------------------------------------------ */

/* Kind of a hyperparameter's value. */
enum gguf_hparam_kind {
    GGUF_HPARAM_UINT,  /* integer of any type */
    GGUF_HPARAM_FLOAT, /* number of any floating-point type */
    GGUF_HPARAM_BOOL,  /* boolean */
    GGUF_HPARAM_TEXT,  /* string */
    GGUF_HPARAM_OTHER  /* array, or a key that evaluation does not use */
};

/* Properties of a hyperparameter, as bits. */
enum gguf_hparam_flags {
    /* Every model has the key. Models have one of the epsilons only: the one
     * for their kind of norm. */
    GGUF_HPARAM_ALWAYS = 1,
    /* A model with this key keeps more or less than one key and one value for
     * each token. */
    GGUF_HPARAM_MEMORY = 2,
    /* The key belongs in a short description of a model. */
    GGUF_HPARAM_SUMMARY = 4
};

/* One key of a model's metadata that evaluation and verification read. Only the
 * library makes it; later versions may add members at its end. */
struct gguf_hparam {
    /* Part of the key after "ARCH.". A leading '/' means that the rest is the
     * whole key. */
    const char *key;
    const char *label; /* name for people */
    const char *name;  /* name for programs; NULL: not in any output */
    const char *hf;    /* name in config.json of transformers; NULL: none */
    double min, max;   /* smallest and largest number that is accepted */
    uint8_t kind;      /* enum gguf_hparam_kind */
    uint8_t flags;     /* enum gguf_hparam_flags */
    bool per_layer;    /* may be an array with one number for each layer */
};

/* The n-th hyperparameter that the library knows; NULL after the last. Static
 * storage. Any thread. Since: 0.1 */
GGUF_API const struct gguf_hparam *gguf_hparam_at(size_t n);

#ifdef __cplusplus
}
#endif
#endif
