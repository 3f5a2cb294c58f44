/* SPDX-License-Identifier: MIT */
/* model_base.h - a model: weights, hyperparameters and vocabulary of a file
 *
 * A model is made from one open file, or from one set of shards. It holds the
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
 * are copied instead: weights of type F32 or I32 whose address in the mapping
 * is not a multiple of four, and weights whose byte order differs from that of
 * tensors in memory (tensor.h). On a little-endian machine these are all
 * weights of a big-endian file. On a big-endian machine they are the plain
 * numbers (F32, F16 ...) of a little-endian file and the quantized blocks of a
 * big-endian one.
 *
 * Results computed with a set of shards are bit for bit those of the merged
 * file.
 *
 * Threads: any number of threads may call functions that take a const model.
 * Functions of load.h change a model: one thread at a time may call them, while
 * no other uses the model, and before it has sessions. gguf_model_destroy() may
 * be called when no thread uses the model any more.
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

    /* Receives warnings, during gguf_model_create() only: of tensors that the
     * model does not use, of keys of meta (below) that nothing reads, and the
     * warnings of gguf_vocab_create(). */
    struct gguf_warn_callback warn;

    /* Name of the pre-tokenizer, in place of the file's key
     * tokenizer.ggml.pre. The string must outlive the model. NULL: the
     * file's. */
    const char *pre;

    /* Key-value pairs that replace pairs of the file or add to them. Each is
     * checked as if the file had it. They must outlive the model. NULL:
     * none. */
    const struct gguf_meta *meta;

    /* Architecture that evaluation uses for a file of an unknown one: a name of
     * gguf_model_arch_at(). Keys of the unknown architecture are read as keys
     * of this one. The string must outlive the call only. NULL: the file's own
     * architecture is used.
     * gguf_arch_find_nearest() (recognize.h) finds candidates.
     *
     * Each tensor must be one that models of the architecture have. A key that
     * other architectures read and this one does not is an error, since it
     * changes results there. A key that no architecture reads is left out, with
     * a warning. A file whose architecture is known is refused, unless it is
     * this one. */
    const char *as;
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
 * GGUF_E_ARCH          The architecture cannot be evaluated. If it is not
 *                      known, the message names the nearest architecture and
 *                      the differences.
 * GGUF_E_MISMATCH      The file is not a model: an adapter, importance data, or
 *                      the part of a model that sees or hears.
 * GGUF_E_HPARAM        A hyperparameter has an impossible value. The message
 *                      has key and value.
 * GGUF_E_NOTFOUND      A required key is missing.
 * GGUF_E_TYPE          A key has the wrong type.
 * GGUF_E_VOCAB         The vocabulary is inconsistent, or does not fit the
 *                      embeddings.
 * GGUF_E_TENSOR        A weight is missing, or its shape or type does not fit.
 *                      The message has its name, the value that was found and
 *                      the expected one.
 * GGUF_E_UNSUPPORTED   The file is well formed, but the model needs something
 *                      that the library cannot compute; or one shard of several
 *                      was opened alone; or params->as is set and the file has
 *                      a key that only other architectures read.
 * GGUF_E_INVALID       params->meta has a key about the layout of files:
 *                      general.alignment or split.*; or params->as is not the
 *                      name of an architecture, or the file's is known.
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

/* Free a model. Its sessions (session.h) and adapters (adapter.h) must have
 * been destroyed before. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_model_destroy(struct gguf_model *model);

/* How the states of a sequence's tokens become one vector. */
enum gguf_pooling {
    GGUF_POOLING_MODEL, /* the file's pooling_type; NONE without that key */
    GGUF_POOLING_NONE,  /* no vector: the state of each token is a result */
    GGUF_POOLING_MEAN,  /* mean of the states of all tokens */
    GGUF_POOLING_CLS,   /* state of the token at the lowest position */
    GGUF_POOLING_LAST,  /* state of the token at the highest position */

    /* Scores of a classifier. The states are pooled by CLS; in architectures
     * whose classifier reads another token or the mean, by LAST or MEAN. The
     * result is multiplied by the weight cls, then by cls.output. A weight that
     * the file lacks is left out. */
    GGUF_POOLING_RANK
};

/* Name of a pooling: "none", "mean", "cls", "last" or "rank"; "?" for all other
 * values, GGUF_POOLING_MODEL included. Static storage. Any thread.
 * Since: 0.1 */
GGUF_API const char *gguf_pooling_name(enum gguf_pooling pooling);

/* Facts about a model. Only the library makes it; later versions may add
 * members at its end. */
struct gguf_model_info {
    /* general.architecture. Valid as long as the model. */
    struct gguf_str arch;

    uint32_t n_layer; /* layers: block_count of the file */
    uint32_t n_embd;  /* width of the residual stream */

    /* Number of token ids: they are 0 to n_vocab - 1. A row of logits, if the
     * model has logits, has n_vocab floats. */
    uint32_t n_vocab;

    uint32_t n_ctx_train; /* tokens of context in training */

    /* Elements of all weights that are used. A matrix that is used twice counts
     * once. */
    uint64_t n_params;

    uint64_t weight_size; /* bytes of the same weights */
    bool has_logits;      /* false: an encoder; its results are states */

    /* True: a whole sequence must be given in one batch, since the model
     * remembers nothing of earlier batches. */
    bool is_whole;

    /* True: the model has an encoder and a decoder. A text is encoded first,
     * then another one is decoded (gguf_session_encode()). */
    bool encodes_first;

    /* Token with which each text for the decoder begins, in a model of an
     * encoder and a decoder. The program gives it to the decoder before the
     * text's other tokens. GGUF_TOKEN_NONE: the model has no such token. */
    gguf_token decoder_start;

    enum gguf_pooling pooling; /* pooling of the file; never MODEL */

    /* Number of labels of RANK's scores, one for each score. 0: scores have no
     * labels. */
    uint32_t n_label;

    /* Bytes of weights that lie in the model's own memory and not in the
     * mapping of the file. Weights of interleaved types lie there as plain
     * rows. Functions of load.h may raise it. */
    uint64_t copied_size;

    /* Name of the architecture that evaluation uses for a model of an unknown
     * one. Static storage. NULL: the model's own architecture is used. */
    const char *as;
};

/* Facts about the model. Owned by the model. Any thread. Since: 0.1 */
GGUF_API const struct gguf_model_info *
gguf_model_info(const struct gguf_model *model);

/* Vocabulary of the model. Owned by the model. Any thread. Since: 0.1 */
GGUF_API const struct gguf_vocab *
gguf_model_vocab(const struct gguf_model *model);

/* The weight that the model made from tensor i of its file.
 *
 * i        Number of the tensor, as for gguf_file_tensor(): in a set, among the
 *          tensors of all shards.
 *
 * The result is owned by the model. gguf_tensor_get() reads its data, wherever
 * they lie; nobody may write to it. Functions of load.h may move the data but
 * not the tensor. The member name is cut if the name in the file has
 * GGUF_TENSOR_NAME bytes (tensor.h) or more. For programs that need the weights
 * with which sessions compute.
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
 * label    Receives the text. Valid as long as the model. Not changed by a
 *          failure.
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

    /* Threads that work. No other call may use them at the same time. NULL: the
     * calling thread. */
    struct gguf_pool *pool;

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
 *                    first such element by the number of its tensor
 *                    (gguf_file_tensor()), for any number of threads;
 *                    err->offset is the byte of the element or of its block.
 * GGUF_E_CANCELLED   The progress callback returned true.
 * GGUF_E_NOMEM       An allocation failed.
 *
 * Threads: any. Since: 0.1 */
GGUF_API enum gguf_status
gguf_model_check_finite(const struct gguf_model *model,
                        const struct gguf_model_job *job,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* Name of the n-th architecture that can be evaluated, from 0, in alphabetical
 * order; NULL after the last. For programs that list them. Static storage. Any
 * thread. Since: 0.1 */
GGUF_API const char *gguf_model_arch_at(size_t n);

/* --- hyperparameters ------------------------------------------------------ */

/* Kind of a hyperparameter's value. */
enum gguf_hparam_kind {
    GGUF_HPARAM_UINT,  /* integer of any type */
    GGUF_HPARAM_FLOAT, /* number of any floating-point type */
    GGUF_HPARAM_BOOL,  /* boolean */
    GGUF_HPARAM_TEXT,  /* string */

    /* Another value: evaluation only asks if the key exists, or reads it in a
     * way of its own. */
    GGUF_HPARAM_OTHER
};

/* Properties of a hyperparameter, as bits. */
enum gguf_hparam_flags {
    /* Every model has the key. Exception: the two keys for the epsilon of norms
     * have this flag, and a model has the one for its kind of norm. */
    GGUF_HPARAM_ALWAYS = 1,
    /* The session of a model with this metadata key may keep something else for
     * each token than one attention key and one attention value per layer: its
     * memory cannot be computed from the numbers of heads alone. */
    GGUF_HPARAM_MEMORY = 2,
    /* The key belongs in a short description of a model. */
    GGUF_HPARAM_SUMMARY = 4
};

/* A hyperparameter: one metadata key that the library reads, to evaluate a
 * model or to verify a file (verify.h). Only the library makes it; later
 * versions may add members at its end. */
struct gguf_hparam {
    /* Part of the key after "ARCH.". A leading '/' means that the rest is the
     * whole key. */
    const char *key;
    const char *label; /* name for people */

    /* Name in output for programs, such as JSON. NULL: it is left out there. */
    const char *name;

    const char *hf; /* name in config.json of transformers; NULL: none */

    /* Smallest and largest number of a UINT or FLOAT, or of each number of its
     * array. max below min: every number from min on is accepted. */
    double min, max;

    uint8_t kind;   /* enum gguf_hparam_kind */
    uint8_t flags;  /* enum gguf_hparam_flags */
    bool per_layer; /* may be an array with one number for each layer */
};

/* The n-th hyperparameter that the library knows, from 0; NULL after the last.
 * Static storage. Any thread. Since: 0.1 */
GGUF_API const struct gguf_hparam *gguf_hparam_at(size_t n);

#ifdef __cplusplus
}
#endif
#endif
