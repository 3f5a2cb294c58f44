/* SPDX-License-Identifier: MIT */
/* gradient_int.h - vector-Jacobian products of operations */
#ifndef GG_GRAPH_GRADIENT_INT_H
#define GG_GRAPH_GRADIENT_INT_H

#include "gguf/gradient.h"
#include "graph/cgraph.h"

/* State of an extension. Arrays are indexed by the number of a tensor in the
 * graph (cgraph.h). */
struct gg_gradient_pass {
    struct gguf_ctx *ctx; /* context of new tensors */
    struct gguf_graph *graph;
    size_t n_nodes;             /* nodes of the forward graph */
    bool *needs;                /* does it depend on a wanted tensor? */
    bool *reaches;              /* does a result depend on it? */
    struct gguf_tensor **total; /* its gradient so far; NULL: none */
};

/* Should the gradient of source i of t be computed? */
bool gg_gradient_wants(const struct gg_gradient_pass *g,
                       const struct gguf_tensor *t, int i);

/* Add a term to the gradient of source i of t: F32, contiguous, of the source's
 * shape. NULL, after a failure, is ignored. */
void gg_gradient_add(struct gg_gradient_pass *g, const struct gguf_tensor *t,
                     int i, struct gguf_tensor *term);

/* Build the terms that node t, whose gradient is dy, adds to the gradients of
 * the wanted ones of its sources. */
typedef void gg_gradient_fn(struct gg_gradient_pass *g,
                            const struct gguf_tensor *t,
                            struct gguf_tensor *dy);

/* Row of an operation. */
struct gg_gradient_row {
    gg_gradient_fn *fn; /* NULL: no vector-Jacobian product */
    uint32_t sources;   /* bit i: fn adds the gradient of source i, or the
                           result does not depend on this source */
};

/* Row of an operation below GGUF_N_OPS. */
const struct gg_gradient_row *gg_gradient_row(uint32_t op);

/* Sum x over its copies of a tensor with the dimensions ne. */
struct gguf_tensor *gg_gradient_reduce(struct gguf_ctx *ctx,
                                       struct gguf_tensor *x,
                                       const int64_t ne[GGUF_TENSOR_DIMS]);

/* Products, in gradient_mat.c. */
gg_gradient_fn gg_gradient_matmul, gg_gradient_matmul_id, gg_gradient_out_prod,
    gg_gradient_soft_max, gg_gradient_attention;

#endif
