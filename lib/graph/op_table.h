/* SPDX-License-Identifier: MIT */
/* op_table.h - the table of operations
 *
 * A row, made from that of op_list.h, says what an operation is to the layers
 * that only describe, lay out and split graphs. What computes it is a row of
 * a backend's own table.
 */
#ifndef GG_GRAPH_OP_TABLE_H
#define GG_GRAPH_OP_TABLE_H

#include "graph/ctx.h"
#include "graph/op_list.h"
#include "gguf/op.h"

#include <string.h>

/* Check t's sources and parameters, and set type, ne and nb of the result; a
 * view also has view_src and view_off set here or by its builder. Fails with
 * gg_op_fail. */
typedef enum gguf_status gg_graph_shape_fn(struct gguf_tensor *t,
                                           struct gguf_error *err);

/* Kinds of rows, as op_list.h says. */
#define GG_OP_LEAF 0u
#define GG_OP_WORK 0u
#define GG_OP_VIEW (1u << 0)
#define GG_OP_DEST (1u << 1)

/* Steps that t takes, about: a multiplication and addition, or a function of
 * one element, is one. Does not overflow: UINT64_MAX at most. */
typedef uint64_t gg_graph_cost_fn(const struct gguf_tensor *t);

/* Floating-point operations and bytes of t as gguf/profile.h defines them; at
 * most UINT64_MAX. */
uint64_t gg_graph_flops(const struct gguf_tensor *t);
uint64_t gg_graph_bytes(const struct gguf_tensor *t);

struct gg_op_row {
    const char *name;
    uint8_t n_src, n_opt;
    uint8_t inplace;
    uint8_t flags; /* GG_OP_... */
    gg_graph_shape_fn *shape;
    gg_graph_cost_fn *cost;
};

extern const struct gg_op_row gg_op_rows[GGUF_N_OPS];

/* op < GGUF_N_OPS. */
static inline const struct gg_op_row *gg_op_row(uint32_t op)
{
    return &gg_op_rows[op];
}

/* Number of sources that t can have: those after them are NULL. */
static inline int gg_op_n_src(const struct gguf_tensor *t)
{
    return t->op < GGUF_N_OPS
               ? gg_op_rows[t->op].n_src + gg_op_rows[t->op].n_opt
               : GGUF_TENSOR_SRC;
}

/* Status with a message: operation, reason, and t's sources with shapes. */
enum gguf_status gg_op_fail(const struct gguf_tensor *t,
                            struct gguf_error *err, enum gguf_status status,
                            const char *fmt, ...) GG_PRINTF(4, 5);

/* Make the tensor that proto (op, op_params, src) describes: NULL if a source
 * that must be there is NULL or the rule says no. */
struct gguf_tensor *gg_op_build(struct gguf_ctx *ctx,
                                struct gguf_tensor *proto);

/* Parameters of an operation as a struct. */
static inline void gg_op_params_get(const struct gguf_tensor *t, void *p,
                                    size_t size)
{
    memcpy(p, t->op_params, size);
}

/* Name t (NULL: nothing) after a source, if that has a name: "NAME (what)", or
 * "NAME (whatOTHER)" with the name of another one; names are cut, at a code
 * point, where all is too long. Returns t. */
struct gguf_tensor *gg_op_name_from_source(struct gguf_tensor *t,
                                           const struct gguf_tensor *src,
                                           const char *what,
                                           const struct gguf_tensor *other);

/* gg_op_build with params_size bytes of parameters, and sources in order. */
struct gguf_tensor *gg_op_make(struct gguf_ctx *ctx, enum gguf_op op,
                               const void *params, size_t params_size,
                               unsigned n_src, struct gguf_tensor *const *src);

#define X(ID, NAME, SRC, OPT, INPLACE, KIND, BUILD, SHAPE, COST)              \
    gg_graph_shape_fn gg_graph_shape_##SHAPE;                                 \
    gg_graph_cost_fn gg_graph_cost_##COST;
GG_OP_LIST(X)
#undef X

#endif
