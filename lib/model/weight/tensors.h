/* SPDX-License-Identifier: MIT */
/* tensors.h - tensors of files against the weights of an architecture */
#ifndef GG_MODEL_WEIGHT_TENSORS_H
#define GG_MODEL_WEIGHT_TENSORS_H

#include "kern/kern.h"
#include "model/weight/needs.h"

/* State of look-ups: it keeps the last layer that was asked for. */
struct gg_model_lookup {
    const struct gg_source *src;
    const struct gg_arch *arch;
    const struct gg_hparams *hp;
    struct gg_needs needs; /* of scope and layer il */
    struct gg_model_sizes sizes;
    uint64_t il;
    enum gg_model_scope scope;
    bool is_set;
};

/* The weight that a tensor is, or GG_W_NONE: its layer is *il. It is GG_W_NONE
 * also for a layer that does not exist; l->needs and l->sizes are those of the
 * tensor's place. */
enum gg_weight gg_model_lookup(struct gg_model_lookup *l, struct gguf_str name,
                               uint64_t *il);

/* The matrix NAME.weight beside which a tensor, whose name is NAME and that
 * end, is a scale and no weight of its own; or GG_W_NONE. The end is ".scale"
 * or, about activations and not used, ".input_scale". */
enum gg_weight gg_model_lookup_scale(struct gg_model_lookup *l,
                                     struct gguf_str name, const char *end,
                                     uint64_t *il);

/* Layers of a scope; 1 for the model. */
uint32_t gg_model_lookup_layers(const struct gg_model_lookup *l,
                                enum gg_model_scope scope);

/* Check each tensor of all files, then what is missing. A tensor that the
 * architecture does not have is a finding; gguf_model_create finds it with
 * gg_model_lookup. GGUF_E_TENSOR, GGUF_E_UNSUPPORTED, GGUF_E_NOMEM,
 * GGUF_E_CANCELLED. */
enum gguf_status gg_tensors_check(struct gg_model_lookup *l,
                                  const struct gg_finding *report,
                                  const struct gg_kern *kern,
                                  const struct gguf_allocator *allocator);

#endif
