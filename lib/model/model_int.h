/* SPDX-License-Identifier: MIT */
/* model_int.h - struct gguf_model: hyperparameters, and weights as tensors */
#ifndef GG_MODEL_MODEL_INT_H
#define GG_MODEL_MODEL_INT_H

#include "gguf/backend.h"
#include "gguf/model_base.h"
#include "model/arch.h"
#include "model/hparam/hparams.h"

/* Weights by enum gg_weight. NULL: the file lacks the weight. */
struct gg_weights {
    struct gguf_tensor *w[GG_N_WEIGHTS];
    /* NAME.scale beside the matrix NAME.weight: factor of its products, one
     * number or one for each element of its last dimension. NULL: none. */
    struct gguf_tensor *scale[GG_N_WEIGHTS];
};

struct gguf_model {
    const struct gguf_allocator *allocator;
    struct gg_source src;
    /* copy of src.meta with overridden keys; NULL: no key is overridden */
    struct gguf_file *altered;
    struct gguf_warn_callback warn;
    const char *vocab_pre; /* replaces tokenizer.ggml.pre; NULL: the file's */
    const struct gg_arch *arch;
    struct gguf_str arch_name; /* general.architecture */
    struct gguf_str prefix; /* begin of the architecture's keys, without dot */
    /* name of arch if the program chose it for a file of an unknown
     * architecture; NULL: arch is that of the file */
    const char *as;
    struct gguf_vocab *vocab;
    struct gg_hparams hp;

    struct gguf_ctx *ctx;        /* descriptions of the weights */
    struct gguf_buffer **buffer; /* buffer around the mapping of each file */
    void *copy; /* copies of weights that cannot be used in the mapping */
    size_t copy_used, copy_size;
    struct gguf_buffer *copy_buffer;
    /* weights of the model; of layers [hp.n_layer_all] */
    struct gg_weights top, *layer;

    uint8_t *used;           /* per tensor of all files: the model uses it */
    struct gguf_tensor **of; /* per tensor of all files: its weight, or NULL */
    struct gguf_buffer **moved; /* buffers of moved weights (weight_move.h) */
    size_t n_moved;
    bool locked; /* gguf_model_lock_weights() was called */
    uint64_t n_params, weight_size;
    struct gguf_model_info info;
};

/* weights.c: set the weights from the files.
 *
 * GGUF_E_TENSOR        A weight is missing, or has a wrong shape or type.
 * GGUF_E_UNSUPPORTED   A weight is valid but cannot be used.
 * GGUF_E_NOMEM */
enum gguf_status gg_weights_load(struct gguf_model *m, struct gguf_error *err);

/* Bytes of a key's name, enough for every key of gguf_hparam_at(). */
enum { GG_MODEL_KEY = 160 };

/* model.c: write the name of the architecture's key, such as "block_count", in
 * this model. A key that begins with '/' has no prefix. */
void gg_model_key(const struct gguf_model *m, const char *key, char *out,
                  size_t size);

/* model_load.c: undo gguf_model_lock_weights(), if it was called. */
void gg_weights_unlock(struct gguf_model *m);

/* key_override.c: replace or add the keys in meta.
 *
 * GGUF_E_INVALID   meta has a key about the layout of files.
 * GGUF_E_NOMEM */
enum gguf_status gg_model_override(struct gguf_model *m,
                                   const struct gguf_meta *meta,
                                   struct gguf_error *err);
/* key_override.c: warn of keys in meta that nothing reads. Called once the
 * architecture is known. */
void gg_model_override_warn(const struct gguf_model *m,
                            const struct gguf_meta *meta);

/* model_digest.c: digest of everything that determines results, except the
 * values of weights. */
uint64_t gg_model_digest(const struct gguf_model *m);

/* model_variant.c: create a model that uses the weights and vocabulary of like,
 * with the keys in meta overridden. like and meta must outlive it. Fails as
 * opening such a file does. Free it with gg_model_variant_destroy(). */
enum gguf_status gg_model_variant(struct gguf_model **out,
                                  const struct gguf_model *like,
                                  const struct gguf_meta *meta,
                                  const struct gguf_allocator *a,
                                  struct gguf_error *err);
void gg_model_variant_destroy(struct gguf_model *m);

/* model.c: check general.type. GGUF_E_MISMATCH: the file is not a model but an
 * adapter, importance data, or the vision or audio part of one. */
enum gguf_status gg_model_check_type(const struct gguf_file *file,
                                     struct gguf_error *err);

/* model.c: open a model from a file or a set of files. arch: the architecture
 * to use, which need not be in the table; NULL: the one that the file names.
 * Statuses of gguf_model_create(). */
enum gguf_status gg_model_open(struct gguf_model **out,
                               const struct gg_source *src,
                               const struct gg_arch *arch,
                               const struct gguf_model_params *params,
                               struct gguf_error *err);

#endif
