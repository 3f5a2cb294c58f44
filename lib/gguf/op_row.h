/* SPDX-License-Identifier: MIT */
/* op_row.h - operations along rows: sums, orders, norms, masks, soft-max
 *
 * Conventions: op.h.
 */
#ifndef GGUF_OP_ROW_H
#define GGUF_OP_ROW_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- sums and orders ------------------------------------------------------ */

/* Sums are computed in double, in order, and rounded once. */
GGUF_BUILDER_1(gguf_op_sum);      /* of all elements -> f32 [1] */
GGUF_BUILDER_1(gguf_op_sum_rows); /* of each row -> f32 [1, ne1, ne2, ne3] */
GGUF_BUILDER_1(gguf_op_mean);     /* of each row, NaN for none -> likewise */
GGUF_BUILDER_1(gguf_op_cumsum);   /* up to an element -> a's shape and type */
/* Number of the first largest of each row -> i32 [ne1, ne2, ne3]. */
GGUF_BUILDER_1(gguf_op_argmax);

/* Numbers of each row's elements in the order of their values: i32 in a's
 * shape. Equal values keep their order; NaN comes last. */
GGUF_API struct gguf_tensor *
gguf_op_argsort(struct gguf_ctx *ctx, struct gguf_tensor *a, bool descending);
/* The first k of the descending order: a view i32 [k, ne1, ne2, ne3]. */
GGUF_API struct gguf_tensor *gguf_op_top_k(struct gguf_ctx *ctx,
                                           struct gguf_tensor *a, int64_t k);

/* --- norms ---------------------------------------------------------------- */

/* Each row x; the result has a's shape and type. eps >= 0. Weights and biases
 * are a mul and an add after it.
 *   norm      (x - mean x) / sqrt(mean (x - mean x)^2 + eps)
 *             Ba, Kiros and Hinton, arXiv 1607.06450
 *   rms_norm  x / sqrt(mean x^2 + eps)
 *             Zhang and Sennrich, arXiv 1910.07467
 *   l2_norm   x / max(sqrt(sum x^2), eps) */
GGUF_API struct gguf_tensor *gguf_op_norm(struct gguf_ctx *ctx,
                                          struct gguf_tensor *a, float eps);
GGUF_API struct gguf_tensor *
gguf_op_rms_norm(struct gguf_ctx *ctx, struct gguf_tensor *a, float eps);
GGUF_API struct gguf_tensor *gguf_op_l2_norm(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a, float eps);
/* As norm, over the elements of n / n_groups channels together: a [w, h, n,
 * s], n a multiple of n_groups (Wu and He, arXiv 1803.08494). */
GGUF_API struct gguf_tensor *gguf_op_group_norm(struct gguf_ctx *ctx,
                                                struct gguf_tensor *a,
                                                int32_t n_groups, float eps);

/* --- masks and soft-max --------------------------------------------------- */

/* Element (i, j) becomes -infinity, or 0, where i > n_past + j; others stay.
 * a [n, m, ...]; the result has its shape and type. n_past >= 0. */
GGUF_API struct gguf_tensor *gguf_op_diag_mask_inf(struct gguf_ctx *ctx,
                                                   struct gguf_tensor *a,
                                                   int32_t n_past);
GGUF_API struct gguf_tensor *gguf_op_diag_mask_zero(struct gguf_ctx *ctx,
                                                    struct gguf_tensor *a,
                                                    int32_t n_past);

/* Each row of x [n, m, h, s]: softmax(x * scale + slope * mask). mask (may be
 * NULL) f32 or f16 [n, >= m, b2, b3], broadcast over h and s. slope is 1, or
 * with max_bias > 0 that of head h (Press et al., ALiBi, arXiv 2108.12409,
 * for head counts that are not a power of two as its authors do). A row that
 * is -infinity throughout gives zeros. */
GGUF_API struct gguf_tensor *gguf_op_soft_max(struct gguf_ctx *ctx,
                                              struct gguf_tensor *x,
                                              struct gguf_tensor *mask,
                                              float scale, float max_bias);
/* The same with one more score in each row that is not in the result: sinks
 * f32 [h], one for each head, neither scaled nor masked (Xiao et al., arXiv
 * 2309.17453, in the learned form of OpenAI's gpt-oss). sinks may be NULL. */
GGUF_API struct gguf_tensor *
gguf_op_soft_max_sinks(struct gguf_ctx *ctx, struct gguf_tensor *x,
                       struct gguf_tensor *mask, struct gguf_tensor *sinks,
                       float scale, float max_bias);

/* Parameters as the builders store them in op_params, for backends. Made by the
 * library: they may grow at their end (gguf_tensor_op_params). */
struct gguf_soft_max_params {
    float scale, max_bias;
};
/* Likewise. Made by the library: they may grow at their end. */
struct gguf_group_norm_params {
    float eps;
    int32_t n_groups;
};

/* --- hyper-connected streams ---------------------------------------------- */

/* How n streams meet around a part of a layer (Xie et al., mHC, arXiv
 * 2512.24880; DeepSeek-V4): of each row of z [n, ..] or [(2 + n) n, ..], of
 * which base f32 [as many] are the offsets and scale f32 [1 or 3] the factors
 *
 *   pre[h]      = sigmoid(z[h] scale[0] + base[h]) + eps
 *   post[h]     = 2 sigmoid(z[n + h] scale[1] + base[n + h])
 *   c[dst, src] = z[2n + dst + n src] scale[2] + base[2n + dst + n src]
 *
 * in that order, z's shape and type; with n elements pre alone. c becomes
 * nearly doubly stochastic: for each src the softmax over dst plus eps, then
 * for each dst divided by its sum over src plus eps, and n_iter - 1 times more
 * by the sums over dst and over src, plus eps each (Sinkhorn and Knopp 1967).
 * Streams x [d, n, ..] times pre are gguf_op_out_prod of them and a view of
 * pre as [1, n, ..]; of c as [n, n, ..] it is what each stream takes of all. n
 * is 1 to 64, eps >= 0. Since: 0.1 */
GGUF_API struct gguf_tensor *
gguf_op_hyper(struct gguf_ctx *ctx, struct gguf_tensor *z,
              struct gguf_tensor *base, struct gguf_tensor *scale, int32_t n,
              int32_t n_iter, float eps);
/* Parameters, as above. Made by the library: they may grow at their end. */
struct gguf_hyper_params {
    int32_t n, n_iter;
    float eps;
};
enum { GGUF_HYPER_MAX = 64 };

#ifdef __cplusplus
}
#endif
#endif
