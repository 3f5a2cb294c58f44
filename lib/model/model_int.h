/* SPDX-License-Identifier: MIT */
/* model_int.h - a model inside: hyperparameters and weights as tensors */
#ifndef GG_MODEL_MODEL_INT_H
#define GG_MODEL_MODEL_INT_H

#include "gguf/backend.h"
#include "gguf/model_base.h"
#include "model/arch.h"
#include "model/hparam/hparams.h"

/* Weights by enum gg_weight; NULL where the file has none. */
struct gg_weights {
    struct gguf_tensor *w[GG_N_WEIGHTS];
    /* NAME.scale beside a matrix NAME.weight: what its products are multiplied
     * by, one number or one for each of its upper dimension. */
    struct gguf_tensor *scale[GG_N_WEIGHTS];
};

struct gguf_model {
    const struct gguf_allocator *allocator;
    struct gg_source src;
    struct gguf_file *altered; /* src.meta, if pairs were given; or NULL */
    struct gguf_warn_callback warn;
    const char *vocab_pre; /* instead of tokenizer.ggml.pre, or NULL */
    const struct gg_arch *arch;
    struct gguf_str arch_name;
    struct gguf_vocab *vocab;
    struct gg_hparams hp;

    struct gguf_ctx *ctx;        /* descriptions of the weights */
    struct gguf_buffer **buffer; /* round the mapping of each file */
    void *copy; /* weights that are not used in their mapping */
    size_t copy_used, copy_size;
    struct gguf_buffer *copy_buffer;
    struct gg_weights top, *layer; /* hp.n_layer_all of them */

    uint8_t *used; /* per tensor of all files: a weight of the model */
    struct gguf_tensor **of; /* and which, or NULL */
    struct gguf_buffer *
        *moved; /* of weights that lie elsewhere (weight_move.h) */
    size_t n_moved;
    bool locked; /* gguf_model_lock_weights */
    uint64_t n_params, weight_size;
    struct gguf_model_info info;
};

/* weights.c: fill the weights from the files. GGUF_E_TENSOR,
 * GGUF_E_UNSUPPORTED, GGUF_E_NOMEM. */
enum gguf_status gg_weights_load(struct gguf_model *m, struct gguf_error *err);

/* model_load.c: undo gguf_model_lock_weights, if it was called. */
void gg_weights_unlock(struct gguf_model *m);

/* override.c: let the pairs of meta count. GGUF_E_INVALID, GGUF_E_NOMEM. */
enum gguf_status gg_model_override(struct gguf_model *m,
                                   const struct gguf_meta *meta,
                                   struct gguf_error *err);
/* Once the architecture is known: warn of those that nothing reads. */
void gg_model_override_warn(const struct gguf_model *m,
                            const struct gguf_meta *meta);

/* model_digest.c: what is computed with, but for the weights' values. */
uint64_t gg_model_digest(const struct gguf_model *m);

/* variant.c: like, whose weights and vocabulary it uses, as if its file had the
 * pairs of meta; both are kept. Fails as opening such a file does. */
enum gguf_status gg_model_variant(struct gguf_model **out,
                                  const struct gguf_model *like,
                                  const struct gguf_meta *meta,
                                  const struct gguf_allocator *a,
                                  struct gguf_error *err);
void gg_model_variant_destroy(struct gguf_model *m);

/* model.c: GGUF_E_MISMATCH if general.type says that the file is no model, but
 * an adapter, importance data or a part that sees or hears. */
enum gguf_status gg_model_check_type(const struct gguf_file *file,
                                     struct gguf_error *err);

/* model.c: gguf_model_create of what may be a set, as an architecture that need
 * not be in the table; arch NULL: the one that the file names. */
enum gguf_status gg_model_open(struct gguf_model **out,
                               const struct gg_source *src,
                               const struct gg_arch *arch,
                               const struct gguf_model_params *params,
                               struct gguf_error *err);

#endif
