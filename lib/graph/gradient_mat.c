/* SPDX-License-Identifier: MIT */
/* gradient_mat.c - vector-Jacobian products of products and attention
 *
 * dy is the gradient of the node t, F32 and contiguous. Transposed matrices are
 * copied, so that all products are those of gguf_op_matmul().
 */
#include "config.h"
#include "graph/gradient_int.h"

typedef struct gguf_tensor tensor;

#define WANTS(i)     gg_gradient_wants(g, t, i)
#define ADD(i, term) gg_gradient_add(g, t, i, term)

/* Contiguous copy of a with its first two dimensions exchanged. Quantized rows
 * are decoded. */
static tensor *copy_transposed(struct gguf_ctx *ctx, tensor *a)
{
    if (a && gguf_dtype_find(a->dtype)->block_len > 1)
        a = gguf_op_cast(ctx, a, GGUF_DTYPE_F32);
    return gguf_op_cont(ctx, gguf_op_transpose(ctx, a));
}

/* y[i, j] = sum over p of a[i, p] b[j, p], slice by slice. */
static tensor *multiply_columns(struct gguf_ctx *ctx, tensor *a, tensor *b)
{
    return gguf_op_matmul(ctx, copy_transposed(ctx, a),
                          copy_transposed(ctx, b));
}

/* Sum the slices of x [n0, n1, b2, b3] that meet one slice of a matrix with n2
 * by n3 slices: those of adjacent indices. */
static tensor *sum_slices(struct gguf_ctx *ctx, tensor *x, int64_t n2,
                          int64_t n3)
{
    if (!x)
        return NULL;
    const int64_t n0 = x->ne[0], n1 = x->ne[1], n = n0 * n1, b3 = x->ne[3];
    const int64_t r2 = x->ne[2] / n2, r3 = b3 / n3;
    if (r2 > 1) {
        x = gguf_op_reshape_4d(ctx, x, n, r2, n2, b3);
        x = gguf_op_repeat_back(ctx, x, n, 1, n2, b3);
    }
    if (r3 > 1) {
        x = gguf_op_reshape_4d(ctx, x, n * n2, r3, n3, 1);
        x = gguf_op_repeat_back(ctx, x, n * n2, 1, n3, 1);
    }
    return r2 > 1 || r3 > 1 ? gguf_op_reshape_4d(ctx, x, n0, n1, n2, n3) : x;
}

/* y[i, j] = sum over p of a[p, i] b[p, j]. */
void gg_gradient_matmul(struct gg_gradient_pass *g, const tensor *t,
                        tensor *dy)
{
    tensor *a = t->src[0], *b = t->src[1];
    if (WANTS(0))
        ADD(0, sum_slices(g->ctx, multiply_columns(g->ctx, b, dy), a->ne[2],
                          a->ne[3]));
    if (WANTS(1))
        ADD(1, gguf_op_matmul(g->ctx, copy_transposed(g->ctx, a), dy));
}

/* Column u of dy [m, n_used, n_tok] goes back through the matrix that it came
 * from. */
void gg_gradient_matmul_id(struct gg_gradient_pass *g, const tensor *t,
                           tensor *dy)
{
    tensor *back = gguf_op_matmul_id(
        g->ctx, copy_transposed(g->ctx, t->src[0]), dy, t->src[2]);
    ADD(1, gg_gradient_reduce(g->ctx, back, t->src[1]->ne));
}

/* y[i, j] = sum over p of a[i, p] b[j, p]. */
void gg_gradient_out_prod(struct gg_gradient_pass *g, const tensor *t,
                          tensor *dy)
{
    struct gguf_ctx *ctx = g->ctx;
    tensor *a = t->src[0], *b = t->src[1];
    if (WANTS(0))
        ADD(0, sum_slices(ctx,
                          gguf_op_matmul(ctx, copy_transposed(ctx, dy),
                                         gguf_op_cast(ctx, b, GGUF_DTYPE_F32)),
                          a->ne[2], a->ne[3]));
    if (WANTS(1)) /* a first: it may have fewer slices */
        ADD(1, copy_transposed(ctx,
                               gguf_op_matmul(ctx, gguf_op_cont(ctx, a), dy)));
}

/* --- soft-max, attention -------------------------------------------------- */

/* Gradient of scores from the soft-max p of them: p (dp - sum(p dp)). */
static tensor *soft_max_back(struct gguf_ctx *ctx, tensor *p, tensor *dp)
{
    tensor *dot = gguf_op_sum_rows(ctx, gguf_op_mul(ctx, dp, p));
    return gguf_op_mul(ctx, gguf_op_sub(ctx, dp, dot), p);
}

void gg_gradient_soft_max(struct gg_gradient_pass *g, const tensor *t,
                          tensor *dy)
{
    struct gguf_soft_max_params p;
    gg_op_params_get(t, &p, sizeof p);
    tensor *y = (tensor *)(uintptr_t)t;
    ADD(0, gguf_op_scale(g->ctx, soft_max_back(g->ctx, y, dy), p.scale));
}

/* Mask of each head, from a mask of each head of keys. */
static tensor *spread_mask(struct gguf_ctx *ctx, tensor *mask, int64_t n_head)
{
    if (!mask || mask->ne[2] == 1 || mask->ne[2] == n_head)
        return mask;
    const int64_t n0 = mask->ne[0], n1 = mask->ne[1], n2 = mask->ne[2];
    const int64_t n3 = mask->ne[3];
    mask =
        gguf_op_reshape_4d(ctx, gguf_op_cont(ctx, mask), n0 * n1, 1, n2, n3);
    mask = gguf_op_repeat(ctx, mask, n0 * n1, n_head / n2, n2, n3);
    return gguf_op_reshape_4d(ctx, mask, n0, n1, n_head, n3);
}

/* Attention weights are computed again, with the operations that
 * gguf_op_attention() stands for: scores [n_kv, n_tok, n_head, n_seq]. */
void gg_gradient_attention(struct gg_gradient_pass *g, const tensor *t,
                           tensor *dy)
{
    struct gguf_ctx *ctx = g->ctx;
    struct gguf_attn_params par;
    gg_op_params_get(t, &par, sizeof par);
    tensor *q = t->src[0], *k = t->src[1], *v = t->src[2];
    const float cap = par.softcap;
    tensor *bent = NULL, *x = gguf_op_matmul(ctx, k, q);
    if (cap != 0) {
        bent = gguf_op_tanh(ctx, gguf_op_scale(ctx, x, par.scale / cap));
        x = gguf_op_scale(ctx, bent, cap);
    }
    tensor *p = gguf_op_soft_max_sinks(
        ctx, x, spread_mask(ctx, t->src[3], q->ne[2]), t->src[4],
        cap != 0 ? 1 : par.scale, par.max_bias);
    dy = gguf_op_cont(ctx, gguf_op_permute(ctx, dy, 0, 2, 1, 3));
    if (WANTS(2))
        ADD(2,
            sum_slices(ctx, multiply_columns(ctx, dy, p), v->ne[2], v->ne[3]));
    if (!WANTS(0) && !WANTS(1))
        return;
    tensor *dx = soft_max_back(ctx, p, gguf_op_matmul(ctx, v, dy));
    if (bent)
        dx = gguf_op_unary_back(ctx, bent, dx);
    dx = gguf_op_scale(ctx, dx, par.scale);
    if (WANTS(0))
        ADD(0, gguf_op_matmul(ctx, copy_transposed(ctx, k), dx));
    if (WANTS(1))
        ADD(1,
            sum_slices(ctx, multiply_columns(ctx, q, dx), k->ne[2], k->ne[3]));
}
