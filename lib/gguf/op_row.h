/* SPDX-License-Identifier: MIT */
/* op_row.h - operations along rows: sums, sorting, norms, masks, softmax
 *
 * op.h explains the notation and the failures that all builders have.
 */
#ifndef GGUF_OP_ROW_H
#define GGUF_OP_ROW_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- sums ----------------------------------------------------------------- */

/* Sum of all elements, in double, rounded once.
 *
 *   a   float, any shape
 *   ->  f32 [1] */
GGUF_BUILDER_1(gguf_op_sum);

/* Sum of each row, in double, rounded once.
 *
 *   a   float [n, ne1, ne2, ne3]
 *   ->  f32 [1, ne1, ne2, ne3] */
GGUF_BUILDER_1(gguf_op_sum_rows);

/* Mean of each row, summed in double, rounded once. NaN for empty rows.
 *
 *   a   float [n, ne1, ne2, ne3]
 *   ->  f32 [1, ne1, ne2, ne3] */
GGUF_BUILDER_1(gguf_op_mean);

/* Cumulative sum along each row, in double, rounded once per element:
 * y[i] = a[0] + ... + a[i].
 *
 *   a   float, any shape
 *   ->  shape and type of a */
GGUF_BUILDER_1(gguf_op_cumsum);

/* --- sorting -------------------------------------------------------------- */

/* Index of the largest element of each row. Of equal elements the first counts.
 *
 *   a   float [n, ne1, ne2, ne3], n >= 1
 *   ->  i32 [ne1, ne2, ne3] */
GGUF_BUILDER_1(gguf_op_argmax);

/* Indices that sort each row. Equal elements keep their order; NaN comes last.
 *
 *   a            float, any shape with ne0 below 2^31
 *   descending   largest first, instead of smallest first
 *   ->           i32, shape of a */
GGUF_API struct gguf_tensor *
gguf_op_argsort(struct gguf_ctx *ctx, struct gguf_tensor *a, bool descending);

/* Indices of the k largest elements of each row, the largest first. Equal
 * elements keep their order.
 *
 *   a   float [n, ne1, ne2, ne3]
 *   k   1 to n
 *   ->  i32 [k, ne1, ne2, ne3], a view of gguf_op_argsort()'s result */
GGUF_API struct gguf_tensor *gguf_op_top_k(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a, int64_t k);

/* --- norms ---------------------------------------------------------------- */

/* Layer norm of each row x, without weight and bias (Ba, Kiros and Hinton,
 * arXiv 1607.06450):
 *
 *     (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps)
 *
 *   a     float, any shape
 *   eps   >= 0
 *   ->    shape and type of a */
GGUF_API struct gguf_tensor *gguf_op_norm(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a, float eps);

/* RMS norm of each row x, without weight (Zhang and Sennrich,
 * arXiv 1910.07467):
 *
 *     x / sqrt(mean(x^2) + eps)
 *
 *   a     float, any shape
 *   eps   >= 0
 *   ->    shape and type of a */
GGUF_API struct gguf_tensor *
gguf_op_rms_norm(struct gguf_ctx *ctx, struct gguf_tensor *a, float eps);

/* L2 norm of each row x:
 *
 *     x / max(sqrt(sum(x^2)), eps)
 *
 *   a     float, any shape
 *   eps   >= 0
 *   ->    shape and type of a */
GGUF_API struct gguf_tensor *gguf_op_l2_norm(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a, float eps);

/* Group norm (Wu and He, arXiv 1803.08494): the layer norm over all elements of
 * each group of channels.
 *
 *   a          float [w, h, channels, s]
 *   n_groups   groups of adjacent channels; it divides channels
 *   eps        >= 0
 *   ->         shape and type of a */
GGUF_API struct gguf_tensor *gguf_op_group_norm(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                int32_t n_groups, float eps);

/* --- masks ---------------------------------------------------------------- */

/* Causal mask: element (i, j) becomes -infinity where i > n_past + j.
 *
 *   a        float [n, m, ...]: i counts keys, j counts tokens
 *   n_past   keys before the first token, >= 0
 *   ->       shape and type of a */
GGUF_API struct gguf_tensor *gguf_op_diag_mask_inf(struct gguf_ctx *ctx,
                                                   struct gguf_tensor *a,
                                                   int32_t n_past);

/* Causal mask of zeros: element (i, j) becomes 0 where i > n_past + j.
 *
 *   a        float [n, m, ...]: i counts keys, j counts tokens
 *   n_past   keys before the first token, >= 0
 *   ->       shape and type of a */
GGUF_API struct gguf_tensor *gguf_op_diag_mask_zero(struct gguf_ctx *ctx,
                                                    struct gguf_tensor *a,
                                                    int32_t n_past);

/* --- softmax -------------------------------------------------------------- */

/* Softmax of each row: softmax(scale * x + slope * mask).
 *
 *   x          float [n, m, h, s]
 *   mask       f32 or f16 [n, >= m, b2, b3], b2 divides h and b3 divides s.
 *              NULL: no mask
 *   scale      factor of x
 *   max_bias   ALiBi (Press et al., arXiv 2108.12409): above 0, slope is
 *              that of the row's head among h heads, which needs a mask. 0:
 *              slope is 1
 *   ->         shape and type of x
 *
 * A row that is -infinity throughout gives zeros. Slopes of head counts that
 * are not powers of two are those of the authors' code. */
GGUF_API struct gguf_tensor *gguf_op_soft_max(struct gguf_ctx *ctx,
                                              struct gguf_tensor *x,
                                              struct gguf_tensor *mask,
                                              float scale, float max_bias);

/* Softmax with attention sinks: each row has one more score, the sink of its
 * head, whose weight is not in the result (Xiao et al., arXiv 2309.17453, in
 * the learned form of OpenAI's gpt-oss).
 *
 *   x          float [n, m, h, s]
 *   mask       f32 or f16 [n, >= m, b2, b3], b2 divides h and b3 divides s.
 *              NULL: no mask
 *   sinks      f32 [h], neither scaled nor masked. NULL: no sinks
 *   scale      factor of x
 *   max_bias   ALiBi as in gguf_op_soft_max(). 0: slope is 1
 *   ->         shape and type of x
 *
 * A row that is -infinity throughout gives zeros. */
GGUF_API struct gguf_tensor *
gguf_op_soft_max_sinks(struct gguf_ctx *ctx, struct gguf_tensor *x,
                       struct gguf_tensor *mask, struct gguf_tensor *sinks,
                       float scale, float max_bias);

/* --- hyper-connections ---------------------------------------------------- */

/* Mixing coefficients of manifold-constrained hyper-connections (Xie et al.,
 * mHC, arXiv 2512.24880; DeepSeek-V4), which connect n residual streams with a
 * layer. From each row of z, h = 0 to n - 1:
 *
 *     pre[h]      = sigmoid(z[h] * scale[0] + base[h]) + eps
 *     post[h]     = 2 * sigmoid(z[n + h] * scale[1] + base[n + h])
 *     c[dst, src] = z[2n + dst + n*src] * scale[2] + base[2n + dst + n*src]
 *
 * c is then made nearly doubly stochastic (Sinkhorn and Knopp 1967): for each
 * src, the softmax over dst plus eps; for each dst, division by the sum over
 * src plus eps; then n_iter - 1 times, division by the sums over dst and by the
 * sums over src, plus eps each.
 *
 *   z        float [(2 + n) * n, ...], or [n, ...] for pre alone
 *   base     f32, one offset for each element of a row of z
 *   scale    f32 [3], or [1] for pre alone
 *   n        number of streams, 1 to GGUF_HYPER_MAX
 *   n_iter   Sinkhorn iterations, >= 0
 *   eps      >= 0
 *   ->       shape and type of z: pre, post, c
 *
 * To use the result: gguf_op_out_prod() of streams x [d, n, ...] and a view of
 * pre as [1, n, ...] is the layer's input; of x and a view of c as [n, n, ...]
 * it is the mixed streams. */
GGUF_API struct gguf_tensor *
gguf_op_hyper(struct gguf_ctx *ctx, struct gguf_tensor *z,
              struct gguf_tensor *base, struct gguf_tensor *scale, int32_t n,
              int32_t n_iter, float eps);
enum { GGUF_HYPER_MAX = 64 };

/* --- parameters, for backends --------------------------------------------- */

/* The builders store these structs as parameters of their results; a backend
 * reads them with gguf_tensor_op_params(). */

/* GGUF_OP_SOFT_MAX, from gguf_op_soft_max_sinks()'s parameters. Only the
 * library makes it; later versions may add members at its end. */
struct gguf_soft_max_params {
    float scale;    /* factor of x */
    float max_bias; /* ALiBi; 0: slope is 1 */
};

/* GGUF_OP_GROUP_NORM, from gguf_op_group_norm()'s parameters. Only the library
 * makes it; later versions may add members at its end. */
struct gguf_group_norm_params {
    float eps;        /* added to the variance */
    int32_t n_groups; /* groups of channels */
};

/* GGUF_OP_HYPER, from gguf_op_hyper()'s parameters. Only the library makes it;
 * later versions may add members at its end. */
struct gguf_hyper_params {
    int32_t n;      /* streams */
    int32_t n_iter; /* Sinkhorn iterations */
    float eps;      /* added to pre and to sums */
};

#ifdef __cplusplus
}
#endif
#endif
