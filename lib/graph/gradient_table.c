/* SPDX-License-Identifier: MIT */
/* gradient_table.c - vector-Jacobian products of operations on elements, rows
 * and shapes, and the table of all
 *
 * dy is the gradient of the node t, F32 and contiguous.
 */
#include "config.h"
#include "graph/gradient_int.h"

#include <math.h>

typedef struct gguf_tensor tensor;

#define WANTS(i)     gg_gradient_wants(g, t, i)
#define ADD(i, term) gg_gradient_add(g, t, i, term)
/* Function that builds the terms of a node. */
#define TERMS(name)                                                           \
    static void name##_terms(struct gg_gradient_pass *g, const tensor *t,     \
                             tensor *dy)

tensor *gg_gradient_reduce(struct gguf_ctx *ctx, tensor *x,
                           const int64_t ne[GGUF_TENSOR_DIMS])
{
    if (!x || !memcmp(x->ne, ne, sizeof x->ne))
        return x;
    return gguf_op_repeat_back(ctx, x, ne[0], ne[1], ne[2], ne[3]);
}

static tensor *reshape_like(struct gguf_ctx *ctx, tensor *x, const tensor *a)
{
    return gguf_op_reshape_4d(ctx, x, a->ne[0], a->ne[1], a->ne[2], a->ne[3]);
}

static tensor *repeat_like(struct gguf_ctx *ctx, tensor *x, const tensor *a)
{
    return gguf_op_repeat(ctx, x, a->ne[0], a->ne[1], a->ne[2], a->ne[3]);
}

/* --- copies and views ----------------------------------------------------- */

TERMS(dup)
{
    ADD(0, dy);
}

/* The old content of b has no effect. */
TERMS(cpy)
{
    if (WANTS(0))
        ADD(0, reshape_like(g->ctx, dy, t->src[0]));
}

TERMS(reshape)
{
    ADD(0, reshape_like(g->ctx, dy, t->src[0]));
}

TERMS(view)
{
    ADD(0, gguf_op_view_back(g->ctx, t, dy));
}

/* Axis i of the source became axis op_params[i]. */
TERMS(permute)
{
    unsigned axes[GGUF_TENSOR_DIMS];
    for (unsigned i = 0; i < GGUF_TENSOR_DIMS; i++)
        axes[t->op_params[i]] = i;
    ADD(0, gguf_op_cont(g->ctx, gguf_op_permute(g->ctx, dy, axes[0], axes[1],
                                                axes[2], axes[3])));
}

TERMS(get_rows)
{
    ADD(0, gguf_op_get_rows_back(g->ctx, dy, t->src[1], t->src[0]->ne[1]));
}

/* Rows that are stored hide those of the destination. */
TERMS(set_rows)
{
    tensor *rows = gguf_op_get_rows(g->ctx, dy, t->src[2]);
    if (WANTS(1))
        ADD(1, rows);
    if (WANTS(0))
        ADD(0, gguf_op_cont(g->ctx,
                            gguf_op_set_rows(g->ctx, gguf_op_dup(g->ctx, dy),
                                             gguf_op_scale(g->ctx, rows, 0),
                                             t->src[2])));
}

TERMS(concat)
{
    const int32_t dim = t->op_params[0];
    uint64_t off = 0;
    for (int i = 0; i < 2; i++) {
        const tensor *s = t->src[i];
        if (WANTS(i))
            ADD(i, gguf_op_cont(g->ctx,
                                gguf_op_view_4d(g->ctx, dy, s->ne[0], s->ne[1],
                                                s->ne[2], s->ne[3], dy->nb[1],
                                                dy->nb[2], dy->nb[3], off)));
        off += (uint64_t)(s->ne[dim] * dy->nb[dim]);
    }
}

TERMS(repeat)
{
    ADD(0, gg_gradient_reduce(g->ctx, dy, t->src[0]->ne));
}

TERMS(pad)
{
    const tensor *a = t->src[0];
    ADD(0, gguf_op_cont(g->ctx, gguf_op_view_4d(g->ctx, dy, a->ne[0], a->ne[1],
                                                a->ne[2], a->ne[3], dy->nb[1],
                                                dy->nb[2], dy->nb[3], 0)));
}

TERMS(roll)
{
    ADD(0, gguf_op_roll(g->ctx, dy, -t->op_params[0], -t->op_params[1],
                        -t->op_params[2], -t->op_params[3]));
}

/* --- arithmetic, gates ---------------------------------------------------- */

TERMS(add)
{
    if (WANTS(0))
        ADD(0, dy);
    if (WANTS(1))
        ADD(1, gg_gradient_reduce(g->ctx, dy, t->src[1]->ne));
}

TERMS(sub)
{
    if (WANTS(0))
        ADD(0, dy);
    if (WANTS(1))
        ADD(1, gguf_op_neg(g->ctx,
                           gg_gradient_reduce(g->ctx, dy, t->src[1]->ne)));
}

TERMS(mul)
{
    if (WANTS(0))
        ADD(0, gguf_op_mul(g->ctx, dy, t->src[1]));
    if (WANTS(1))
        ADD(1, gg_gradient_reduce(g->ctx, gguf_op_mul(g->ctx, dy, t->src[0]),
                                  t->src[1]->ne));
}

/* d (a / b) = da / b - a / b^2 db */
TERMS(div)
{
    tensor *part = gguf_op_div(g->ctx, dy, t->src[1]);
    if (WANTS(0))
        ADD(0, part);
    if (!WANTS(1))
        return;
    part =
        gguf_op_div(g->ctx, gguf_op_mul(g->ctx, part, t->src[0]), t->src[1]);
    ADD(1,
        gguf_op_neg(g->ctx, gg_gradient_reduce(g->ctx, part, t->src[1]->ne)));
}

TERMS(unary)
{
    ADD(0, gguf_op_unary_back(g->ctx, t, dy));
}

/* act(a) * b */
static void gate_terms(struct gg_gradient_pass *g, const tensor *t, tensor *dy,
                       tensor *act)
{
    if (WANTS(0))
        ADD(0, gguf_op_unary_back(g->ctx, act,
                                  gguf_op_mul(g->ctx, dy, t->src[1])));
    if (WANTS(1))
        ADD(1, gguf_op_mul(g->ctx, dy, act));
}

#define GATE(name, act)                                                       \
    TERMS(name)                                                               \
    {                                                                         \
        gate_terms(g, t, dy, act(g->ctx, t->src[0]));                         \
    }
GATE(swiglu, gguf_op_silu)
GATE(geglu, gguf_op_gelu)
GATE(geglu_erf, gguf_op_gelu_erf)
GATE(geglu_quick, gguf_op_gelu_quick)
GATE(reglu, gguf_op_relu)

/* y = c s (u + 1) with c = min(a, limit), s = sigmoid(alpha c), u = clamp(b).
 * dc = dy (u + 1) (s + alpha c s'). */
TERMS(swiglu_oai)
{
    struct gguf_ctx *ctx = g->ctx;
    float p[2]; /* alpha, limit */
    gg_op_params_get(t, p, sizeof p);
    tensor *c = gguf_op_clamp(ctx, t->src[0], -INFINITY, p[1]);
    tensor *s = gguf_op_sigmoid(ctx, gguf_op_scale(ctx, c, p[0]));
    tensor *u = gguf_op_clamp(ctx, t->src[1], -p[1], p[1]);
    if (WANTS(0)) {
        tensor *by = gguf_op_add(ctx, dy, gguf_op_mul(ctx, dy, u));
        tensor *in_s = gguf_op_unary_back(ctx, s, gguf_op_mul(ctx, by, c));
        tensor *dc = gguf_op_add(ctx, gguf_op_mul(ctx, by, s),
                                 gguf_op_scale(ctx, in_s, p[0]));
        ADD(0, gguf_op_unary_back(ctx, c, dc));
    }
    if (WANTS(1)) {
        tensor *act = gguf_op_mul(ctx, s, c);
        ADD(1, gguf_op_unary_back(ctx, u, gguf_op_mul(ctx, dy, act)));
    }
}

/* --- rows ----------------------------------------------------------------- */

TERMS(sum)
{
    ADD(0, repeat_like(g->ctx, dy, t->src[0]));
}

TERMS(mean)
{
    const float n = (float)t->src[0]->ne[0];
    ADD(0, repeat_like(g->ctx, gguf_op_scale(g->ctx, dy, 1 / n), t->src[0]));
}

/* Each element is in the sums from its place on: all less those before. */
TERMS(cumsum)
{
    tensor *from = gguf_op_sub(g->ctx, dy, gguf_op_cumsum(g->ctx, dy));
    ADD(0, gguf_op_add(g->ctx, from, gguf_op_sum_rows(g->ctx, dy)));
}

TERMS(norm)
{
    ADD(0, gguf_op_norm_back(g->ctx, t, dy));
}

TERMS(diag_mask)
{
    ADD(0, gguf_op_diag_mask_zero(g->ctx, dy, t->op_params[0]));
}

TERMS(rope)
{
    ADD(0, gguf_op_rope_back(g->ctx, t, dy));
}

/* --- the table ------------------------------------------------------------ */

static const struct gg_gradient_row rows[GGUF_N_OPS] = {
    [GGUF_OP_DUP] = { dup_terms, 1 },
    [GGUF_OP_CPY] = { cpy_terms, 3 },
    [GGUF_OP_RESHAPE] = { reshape_terms, 1 },
    [GGUF_OP_VIEW] = { view_terms, 1 },
    [GGUF_OP_PERMUTE] = { permute_terms, 1 },
    [GGUF_OP_TRANSPOSE] = { permute_terms, 1 },
    [GGUF_OP_GET_ROWS] = { get_rows_terms, 1 },
    [GGUF_OP_SET_ROWS] = { set_rows_terms, 3 },
    [GGUF_OP_ADD] = { add_terms, 3 },
    [GGUF_OP_SUB] = { sub_terms, 3 },
    [GGUF_OP_MUL] = { mul_terms, 3 },
    [GGUF_OP_DIV] = { div_terms, 3 },
    [GGUF_OP_SCALE] = { unary_terms, 1 },
    [GGUF_OP_SILU] = { unary_terms, 1 },
    [GGUF_OP_GELU] = { unary_terms, 1 },
    [GGUF_OP_GELU_ERF] = { unary_terms, 1 },
    [GGUF_OP_GELU_QUICK] = { unary_terms, 1 },
    [GGUF_OP_RELU] = { unary_terms, 1 },
    [GGUF_OP_SIGMOID] = { unary_terms, 1 },
    [GGUF_OP_TANH] = { unary_terms, 1 },
    [GGUF_OP_RELU_SQR] = { unary_terms, 1 },
    [GGUF_OP_LEAKY_RELU] = { unary_terms, 1 },
    [GGUF_OP_ELU] = { unary_terms, 1 },
    [GGUF_OP_SOFTPLUS] = { unary_terms, 1 },
    [GGUF_OP_NEG] = { unary_terms, 1 },
    [GGUF_OP_ABS] = { unary_terms, 1 },
    [GGUF_OP_SQR] = { unary_terms, 1 },
    [GGUF_OP_SQRT] = { unary_terms, 1 },
    [GGUF_OP_EXP] = { unary_terms, 1 },
    [GGUF_OP_LOG] = { unary_terms, 1 },
    [GGUF_OP_SIN] = { unary_terms, 1 },
    [GGUF_OP_COS] = { unary_terms, 1 },
    [GGUF_OP_CLAMP] = { unary_terms, 1 },
    [GGUF_OP_XIELU] = { unary_terms, 1 },
    [GGUF_OP_SWIGLU] = { swiglu_terms, 3 },
    [GGUF_OP_GEGLU] = { geglu_terms, 3 },
    [GGUF_OP_GEGLU_ERF] = { geglu_erf_terms, 3 },
    [GGUF_OP_GEGLU_QUICK] = { geglu_quick_terms, 3 },
    [GGUF_OP_REGLU] = { reglu_terms, 3 },
    [GGUF_OP_SWIGLU_OAI] = { swiglu_oai_terms, 3 },
    [GGUF_OP_CONCAT] = { concat_terms, 3 },
    [GGUF_OP_REPEAT] = { repeat_terms, 1 },
    [GGUF_OP_PAD] = { pad_terms, 1 },
    [GGUF_OP_ROLL] = { roll_terms, 1 },
    [GGUF_OP_SUM] = { sum_terms, 1 },
    [GGUF_OP_SUM_ROWS] = { sum_terms, 1 },
    [GGUF_OP_MEAN] = { mean_terms, 1 },
    [GGUF_OP_CUMSUM] = { cumsum_terms, 1 },
    [GGUF_OP_NORM] = { norm_terms, 1 },
    [GGUF_OP_RMS_NORM] = { norm_terms, 1 },
    [GGUF_OP_L2_NORM] = { norm_terms, 1 },
    [GGUF_OP_DIAG_MASK_INF] = { diag_mask_terms, 1 },
    [GGUF_OP_DIAG_MASK_ZERO] = { diag_mask_terms, 1 },
    [GGUF_OP_SOFT_MAX] = { gg_gradient_soft_max, 1 },
    [GGUF_OP_ROPE] = { rope_terms, 1 },
    [GGUF_OP_MATMUL] = { gg_gradient_matmul, 3 },
    [GGUF_OP_MATMUL_ID] = { gg_gradient_matmul_id, 2 },
    [GGUF_OP_OUT_PROD] = { gg_gradient_out_prod, 3 },
    [GGUF_OP_ATTENTION] = { gg_gradient_attention, 7 },
};

const struct gg_gradient_row *gg_gradient_row(uint32_t op)
{
    return &rows[op];
}
