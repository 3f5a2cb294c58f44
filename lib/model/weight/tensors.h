/* SPDX-License-Identifier: MIT */
/* tensors.h - check tensors of files against the weights of an architecture */
#ifndef GG_MODEL_WEIGHT_TENSORS_H
#define GG_MODEL_WEIGHT_TENSORS_H

#include "kern/kern.h"
#include "model/weight/needs.h"

/* State of look-ups. It caches the last layer that was looked up. */
struct gg_model_lookup {
    const struct gg_source *src;
    const struct gg_arch *arch;
    const struct gg_hparams *hp;
    struct gg_needs needs; /* weights of scope, layer il */
    struct gg_model_sizes sizes;
    uint64_t il;
    enum gg_model_scope scope;
    bool is_set;
    /* opening a model also refuses tensors that the architecture lacks */
    bool strict;
};

/* Find the weight that a tensor is, by name. Sets *il to its layer and l->needs
 * and l->sizes to those of that layer. GG_W_NONE: no weight, or a layer that
 * does not exist. */
enum gg_weight gg_model_lookup(struct gg_model_lookup *l, struct gguf_str name,
                               uint64_t *il);

/* Find the matrix NAME.weight whose scale a tensor named NAME and end is. end
 * is ".scale", or ".input_scale" for scales of activations, which are not used.
 * GG_W_NONE: the tensor is not a scale. */
enum gg_weight gg_model_lookup_scale(struct gg_model_lookup *l,
                                     struct gguf_str name, const char *end,
                                     uint64_t *il);

/* Number of layers of a scope; 1 for GG_MODEL. */
uint32_t gg_model_lookup_layers(const struct gg_model_lookup *l,
                                enum gg_model_scope scope);

/* Check each tensor of all files, then report missing weights. A tensor that
 * the architecture does not have is a finding. Opening a model refuses it if
 * l->strict is set; otherwise gguf_model_create() finds it with
 * gg_model_lookup() and warns. GGUF_E_TENSOR, GGUF_E_UNSUPPORTED, GGUF_E_NOMEM,
 * GGUF_E_CANCELLED. */
enum gguf_status gg_tensors_check(struct gg_model_lookup *l,
                                  const struct gg_finding *report,
                                  const struct gg_kern *kern,
                                  const struct gguf_allocator *allocator);

#endif
