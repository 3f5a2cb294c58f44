/* SPDX-License-Identifier: MIT */
/* layer_sums.h - sums over the activations of two models */
#ifndef GG_EVAL_LAYER_SUMS_H
#define GG_EVAL_LAYER_SUMS_H

#include "gguf/layers.h"

/* Products of a vector q and a vector b. */
struct gg_layer_sums_vec {
    double qb2;        /* |q - b|^2 */
    double q2, b2, qb; /* |q|^2, |b|^2, q.b */
};

struct gg_layer_sums {
    struct gguf_layers_entry entry;
    struct gg_layer_sums_vec all;
    uint64_t n_el; /* elements that were added */
    char name[64];
};

struct gguf_layers {
    const struct gguf_allocator *allocator;
    struct gg_layer_sums **list;
    size_t n, cap;
    size_t next; /* index of the first activation that the pass has not had */
    /* [n_token], sums of the current tokens */
    struct gg_layer_sums_vec *token;
    size_t n_token;
};

/* Rows of an activation: n tokens of size floats each. */
struct gg_layer_sums_rows {
    const char *name;
    const float *q, *b;
    size_t n, size;
    size_t chunk;
    /* [n], positions in the chunk; NULL: first, first + 1, ... */
    const int32_t *pos;
    uint32_t first;
};

/* Begin a pass. Activations come in the order of earlier passes. */
void gg_layer_sums_begin(struct gguf_layers *l);

/* Add the rows of an activation. *bad receives n, or the first token for which
 * q (*bad_q) or b is not finite; nothing is added then. GGUF_E_NOMEM. */
enum gguf_status gg_layer_sums_add(struct gguf_layers *l,
                                   struct gguf_pool *pool,
                                   const struct gg_layer_sums_rows *r,
                                   size_t *bad, bool *bad_q,
                                   struct gguf_error *err);

/* Compute the entries from the sums. */
void gg_layer_sums_finish(struct gguf_layers *l);

#endif
