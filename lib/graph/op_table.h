/* SPDX-License-Identifier: MIT */
/* op_table.h - the table of operations
 *
 * A row, made from op_list.h, describes an operation for the layers that build,
 * place and split graphs. A backend has a table of its own with the functions
 * that compute.
 */
#ifndef GG_GRAPH_OP_TABLE_H
#define GG_GRAPH_OP_TABLE_H

#include "graph/ctx.h"
#include "graph/op_list.h"
#include "gguf/op.h"

#include <string.h>

/* Shape rule: check the sources and parameters of t, and set its type, ne and
 * nb. For a view, the rule or its builder also sets view_src and view_off.
 * Fails with gg_op_fail(). */
typedef enum gguf_status gg_graph_shape_fn(struct gguf_tensor *t,
                                           struct gguf_error *err);

/* Flags of a row for its KIND in op_list.h. */
#define GG_OP_LEAF 0u
#define GG_OP_WORK 0u
#define GG_OP_VIEW (1u << 0)
#define GG_OP_DEST (1u << 1)

/* Estimated cost of t in steps: a multiplication with its addition, or a
 * function of one element, is a step. At most UINT64_MAX. */
typedef uint64_t gg_graph_cost_fn(const struct gguf_tensor *t);

/* Floating-point operations and bytes of t, as gguf/profile.h defines them. At
 * most UINT64_MAX. */
uint64_t gg_graph_flops(const struct gguf_tensor *t);
uint64_t gg_graph_bytes(const struct gguf_tensor *t);

/* Row of the table: columns of op_list.h. */
struct gg_op_row {
    const char *name;
    uint8_t n_src;   /* required sources */
    uint8_t n_opt;   /* optional sources after them */
    uint8_t inplace; /* bit i: the result may overwrite source i */
    uint8_t flags;   /* GG_OP_... */
    gg_graph_shape_fn *shape;
    gg_graph_cost_fn *cost;
};

extern const struct gg_op_row gg_op_rows[GGUF_N_OPS];

/* Row of an operation, which must be below GGUF_N_OPS. */
static inline const struct gg_op_row *gg_op_row(uint32_t op)
{
    return &gg_op_rows[op];
}

/* Number of sources that t can have, optional ones included. */
static inline int gg_op_n_src(const struct gguf_tensor *t)
{
    return t->op < GGUF_N_OPS
               ? gg_op_rows[t->op].n_src + gg_op_rows[t->op].n_opt
               : GGUF_TENSOR_SRC;
}

/* Fail with status and a message: the operation, the printf text, and t's
 * sources with their shapes. */
enum gguf_status gg_op_fail(const struct gguf_tensor *t,
                            struct gguf_error *err, enum gguf_status status,
                            const char *fmt, ...) GGUF_PRINTF(4, 5);

/* Build the tensor that proto describes by op, op_params and src. Returns NULL
 * with a sticky failure if a required source is NULL or the rule fails. */
struct gguf_tensor *gg_op_build(struct gguf_ctx *ctx,
                                struct gg_tensor_storage *proto);

/* Copy the first size bytes of an operation's parameters to p. */
static inline void gg_op_params_get(const struct gguf_tensor *t, void *p,
                                    size_t size)
{
    memcpy(p, t->op_params, size);
}

/* Replace zeros in the members of rope whose default is not 0. */
void gg_op_rope_set_defaults(struct gguf_rope *rope);

/* Name t after a source, if the source has a name: "NAME (what)", or
 * "NAME (whatOTHER)" with the name of `other`. Names are cut after a whole code
 * point where the text is too long. t may be NULL. Returns t. */
struct gguf_tensor *gg_op_name_from_source(struct gguf_tensor *t,
                                           const struct gguf_tensor *src,
                                           const char *what,
                                           const struct gguf_tensor *other);

/* Build the result of op with params_size bytes of parameters and n_src
 * sources. Fails as gg_op_build() does. */
struct gguf_tensor *gg_op_make(struct gguf_ctx *ctx, enum gguf_op op,
                               const void *params, size_t params_size,
                               unsigned n_src, struct gguf_tensor *const *src);

#define X(ID, NAME, SRC, OPT, INPLACE, KIND, BUILD, SHAPE, COST)              \
    gg_graph_shape_fn gg_graph_shape_##SHAPE;                                 \
    gg_graph_cost_fn gg_graph_cost_##COST;
GG_OP_LIST(X)
#undef X

#endif
