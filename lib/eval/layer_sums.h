/* SPDX-License-Identifier: MIT */
/* layer_sums.h - activations of two models, and sums of them */
#ifndef GG_EVAL_LAYER_SUMS_H
#define GG_EVAL_LAYER_SUMS_H

#include "gguf/layers.h"

/* Of a vector q and a vector b. */
struct gg_layer_sums_vec {
    double qb2;        /* |q - b|^2 */
    double q2, b2, qb; /* |q|^2, |b|^2, q.b */
};

struct gg_layer_sums {
    struct gguf_layers_entry entry;
    struct gg_layer_sums_vec all;
    uint64_t n_el; /* elements so far */
    char name[64];
};

struct gguf_layers {
    const struct gguf_allocator *allocator;
    struct gg_layer_sums **list;
    size_t n, cap;
    size_t next; /* the first one that a pass has not had yet */
    struct gg_layer_sums_vec *token; /* of each token at hand */
    size_t n_token;
};

/* Rows of an activation: n tokens of size floats each. */
struct gg_layer_sums_rows {
    const char *name;
    const float *q, *b;
    size_t n, size;
    size_t chunk;
    const int32_t *pos; /* [n] in the chunk; NULL: first, first + 1 .. */
    uint32_t first;
};

/* A pass begins: its activations come in the order of those of before. */
void gg_layer_sums_begin(struct gguf_layers *l);

/* Add them. *bad: the first token where q (bad_q) or b is not finite: then
 * nothing was added; or n. GGUF_E_NOMEM. */
enum gguf_status gg_layer_sums_add(struct gguf_layers *l,
                                   struct gguf_pool *pool,
                                   const struct gg_layer_sums_rows *r,
                                   size_t *bad, bool *bad_q,
                                   struct gguf_error *err);

/* What entries have, of the sums. */
void gg_layer_sums_finish(struct gguf_layers *l);

#endif
