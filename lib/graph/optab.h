/* optab.h - the table of operations
 *
 * One row says what an operation is to the layers that only describe, lay out
 * and split graphs. What computes it is a row of a backend's own table.
 */
#ifndef GG_GRAPH_OPTAB_H
#define GG_GRAPH_OPTAB_H

#include "graph/ctx.h"
#include "gguf/op.h"

#include <string.h>

/* Check t's sources and parameters, and set type, ne and nb of the result; a
 * view also has view_src and view_off set here or by its builder. Fails with
 * gg_op_fail. */
typedef enum gguf_status gg_shape_fn(struct gguf_tensor *t,
                                     struct gguf_error *err);

#define GG_OP_VIEW (1u << 0) /* no work: another look at the source's memory */
#define GG_OP_DEST (1u << 1) /* writes into a source; the result is a view */

/* Steps that t takes, about: a multiplication and addition, or a function of
 * one element, is one. Does not overflow: UINT64_MAX at most. */
typedef uint64_t gg_cost_fn(const struct gguf_tensor *t);

/* GG_OP_LIST(X)  X(ID, NAME, SRC, OPT, INPLACE, FLAGS, SHAPE, COST)
 *   SRC      sources that must be there
 *   OPT      sources after them that may be NULL
 *   INPLACE  bit i: the result may lie where source i lies if both have the
 *            same layout: each element (row, for operations along rows) is
 *            read before it is written, by the same thread
 *   SHAPE    rule, gg_shape_... of shape*.c
 *   COST     gg_cost_... of cost.c */
#define GG_OP_LIST(X)                                                         \
    X(NONE, "none", 0, 0, 0, 0, none, none)                                   \
    X(DUP, "dup", 1, 0, 1, 0, dup, out)                                       \
    X(CPY, "cpy", 2, 0, 0, GG_OP_DEST, cpy, in)                               \
    X(RESHAPE, "reshape", 1, 0, 0, GG_OP_VIEW, reshape, none)                 \
    X(VIEW, "view", 1, 0, 0, GG_OP_VIEW, view, none)                          \
    X(PERMUTE, "permute", 1, 0, 0, GG_OP_VIEW, permute, none)                 \
    X(TRANSPOSE, "transpose", 1, 0, 0, GG_OP_VIEW, permute, none)             \
    X(GET_ROWS, "get_rows", 2, 0, 0, 0, get_rows, out)                        \
    X(SET_ROWS, "set_rows", 3, 0, 0, GG_OP_DEST, set_rows, in1)               \
    X(ADD, "add", 2, 0, 3, 0, binary, out)                                    \
    X(SUB, "sub", 2, 0, 3, 0, binary, out)                                    \
    X(MUL, "mul", 2, 0, 3, 0, binary, out)                                    \
    X(DIV, "div", 2, 0, 3, 0, binary, out)                                    \
    X(SCALE, "scale", 1, 0, 1, 0, unary, out)                                 \
    X(SILU, "silu", 1, 0, 1, 0, unary, out)                                   \
    X(GELU, "gelu", 1, 0, 1, 0, unary, out)                                   \
    X(GELU_ERF, "gelu_erf", 1, 0, 1, 0, unary, out)                           \
    X(GELU_QUICK, "gelu_quick", 1, 0, 1, 0, unary, out)                       \
    X(RELU, "relu", 1, 0, 1, 0, unary, out)                                   \
    X(SIGMOID, "sigmoid", 1, 0, 1, 0, unary, out)                             \
    X(TANH, "tanh", 1, 0, 1, 0, unary, out)                                   \
    X(RELU_SQR, "relu_sqr", 1, 0, 1, 0, unary, out)                           \
    X(LEAKY_RELU, "leaky_relu", 1, 0, 1, 0, unary, out)                       \
    X(ELU, "elu", 1, 0, 1, 0, unary, out)                                     \
    X(SOFTPLUS, "softplus", 1, 0, 1, 0, unary, out)                           \
    X(NEG, "neg", 1, 0, 1, 0, unary, out)                                     \
    X(ABS, "abs", 1, 0, 1, 0, unary, out)                                     \
    X(SQR, "sqr", 1, 0, 1, 0, unary, out)                                     \
    X(SQRT, "sqrt", 1, 0, 1, 0, unary, out)                                   \
    X(EXP, "exp", 1, 0, 1, 0, unary, out)                                     \
    X(LOG, "log", 1, 0, 1, 0, unary, out)                                     \
    X(SIN, "sin", 1, 0, 1, 0, unary, out)                                     \
    X(COS, "cos", 1, 0, 1, 0, unary, out)                                     \
    X(CLAMP, "clamp", 1, 0, 1, 0, unary, out)                                 \
    X(XIELU, "xielu", 1, 0, 1, 0, unary, out)                                 \
    X(SWIGLU, "swiglu", 2, 0, 3, 0, gated, out)                               \
    X(GEGLU, "geglu", 2, 0, 3, 0, gated, out)                                 \
    X(GEGLU_ERF, "geglu_erf", 2, 0, 3, 0, gated, out)                         \
    X(GEGLU_QUICK, "geglu_quick", 2, 0, 3, 0, gated, out)                     \
    X(REGLU, "reglu", 2, 0, 3, 0, gated, out)                                 \
    X(SWIGLU_OAI, "swiglu_oai", 2, 0, 3, 0, gated, out)                       \
    X(CONCAT, "concat", 2, 0, 0, 0, concat, out)                              \
    X(REPEAT, "repeat", 1, 0, 0, 0, repeat, out)                              \
    X(PAD, "pad", 1, 0, 0, 0, pad, out)                                       \
    X(ROLL, "roll", 1, 0, 0, 0, roll, out)                                    \
    X(SUM, "sum", 1, 0, 0, 0, sum, in)                                        \
    X(SUM_ROWS, "sum_rows", 1, 0, 0, 0, sum_rows, in)                         \
    X(MEAN, "mean", 1, 0, 0, 0, sum_rows, in)                                 \
    X(ARGMAX, "argmax", 1, 0, 0, 0, argmax, in)                               \
    X(ARGSORT, "argsort", 1, 0, 0, 0, argsort, sort)                          \
    X(CUMSUM, "cumsum", 1, 0, 1, 0, unary, out)                               \
    X(NORM, "norm", 1, 0, 1, 0, unary, out)                                   \
    X(RMS_NORM, "rms_norm", 1, 0, 1, 0, unary, out)                           \
    X(L2_NORM, "l2_norm", 1, 0, 1, 0, unary, out)                             \
    X(GROUP_NORM, "group_norm", 1, 0, 1, 0, group_norm, out)                  \
    X(DIAG_MASK_INF, "diag_mask_inf", 1, 0, 1, 0, diag_mask, out)             \
    X(DIAG_MASK_ZERO, "diag_mask_zero", 1, 0, 1, 0, diag_mask, out)           \
    X(SOFT_MAX, "soft_max", 1, 2, 1, 0, soft_max, out)                        \
    X(ROPE, "rope", 2, 1, 1, 0, rope, out)                                    \
    X(MATMUL, "matmul", 2, 0, 0, 0, matmul, dot)                              \
    X(MATMUL_ID, "matmul_id", 3, 0, 0, 0, matmul_id, dot)                     \
    X(OUT_PROD, "out_prod", 2, 0, 0, 0, out_prod, outer)                      \
    X(ATTENTION, "attention", 3, 2, 0, 0, attention, attention)               \
    X(IM2COL, "im2col", 1, 0, 0, 0, im2col, out)                              \
    X(CONV, "conv", 2, 0, 0, 0, conv, conv)                                   \
    X(CONV_TRANSPOSE, "conv_transpose", 2, 0, 0, 0, conv_transpose, spread)   \
    X(POOL, "pool", 1, 0, 0, 0, pool, pool)                                   \
    X(TIMESTEP_EMBEDDING, "timestep_embedding", 1, 0, 0, 0, timestep, out)    \
    X(SSM_CONV, "ssm_conv", 2, 0, 0, 0, ssm_conv, columns)                    \
    X(SSM_SCAN, "ssm_scan", 7, 0, 0, 0, ssm_scan, scan)                       \
    X(RWKV_WKV6, "rwkv_wkv6", 6, 0, 0, 0, wkv6, states)                       \
    X(RWKV_WKV7, "rwkv_wkv7", 7, 0, 0, 0, wkv7, states)                       \
    X(GATED_LINEAR_ATTN, "gated_linear_attn", 5, 0, 0, 0, gla, states)        \
    X(GATED_DELTA, "gated_delta", 6, 0, 0, 0, delta, states)                  \
    X(CUSTOM, "custom", 0, 10, 0, 0, custom, unknown)

struct gg_op_row {
    const char *name;
    uint8_t n_src, n_opt;
    uint8_t inplace;
    uint8_t flags; /* GG_OP_... */
    gg_shape_fn *shape;
    gg_cost_fn *cost;
};

extern const struct gg_op_row gg_op_rows[GGUF_N_OPS];

/* op < GGUF_N_OPS. */
static inline const struct gg_op_row *gg_op_row(uint32_t op)
{
    return &gg_op_rows[op];
}

/* Sources that t can have: those after are NULL. */
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
struct gguf_tensor *gg_op_name_after(struct gguf_tensor *t,
                                     const struct gguf_tensor *src,
                                     const char *what,
                                     const struct gguf_tensor *other);

/* gg_op_build with params_size bytes of parameters, and sources in order. */
struct gguf_tensor *gg_op_make(struct gguf_ctx *ctx, enum gguf_op op,
                               const void *params, size_t params_size,
                               unsigned n_src,
                               struct gguf_tensor *const *src);

#define X(ID, NAME, SRC, OPT, INPLACE, FLAGS, SHAPE, COST)                    \
    gg_shape_fn gg_shape_##SHAPE;                                             \
    gg_cost_fn gg_cost_##COST;
GG_OP_LIST(X)
#undef X

#endif
