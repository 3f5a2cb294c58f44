/* SPDX-License-Identifier: MIT */
/* op_back.h - vector-Jacobian products of operations
 *
 * Let y = f(x) be a result of an operation, and dy the gradient of a number by
 * y. An operation here computes dx, the gradient of this number by x, or a part
 * of it. gguf_gradients_build() (gradient.h) makes them; programs need them
 * only for gradients of their own. op.h explains the notation and the failures
 * that all builders have.
 */
#ifndef GGUF_OP_BACK_H
#define GGUF_OP_BACK_H

#include <gguf/op_mat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gradient through a function of one element: dy * f'(x).
 *
 *   y    result y = f(x) of gguf_op_scale(), gguf_op_silu() or another
 *        function of one source in op_elem.h
 *   dy   float, shape of y
 *   ->   shape and type of dy
 *
 * Where f has a corner, f' is that of the side that is computed there: 0 for
 * relu and abs at 0, 1 for clamp at its bounds. */
GGUF_API struct gguf_tensor *gguf_op_unary_back(struct gguf_ctx *ctx,
                                                const struct gguf_tensor *y,
                                                struct gguf_tensor *dy);

/* Gradient through a norm of rows, from the source of the norm.
 *
 *   y    result of gguf_op_norm(), gguf_op_rms_norm() or gguf_op_l2_norm()
 *   dy   float, shape of y
 *   ->   shape and type of dy */
GGUF_API struct gguf_tensor *gguf_op_norm_back(struct gguf_ctx *ctx,
                                               const struct gguf_tensor *y,
                                               struct gguf_tensor *dy);

/* Gradient through a rotary embedding: rotation by the negative angles, with
 * the same factor of the magnitude.
 *
 *   y    result of gguf_op_rope()
 *   dy   float, shape of y
 *   ->   shape and type of dy */
GGUF_API struct gguf_tensor *gguf_op_rope_back(struct gguf_ctx *ctx,
                                               const struct gguf_tensor *y,
                                               struct gguf_tensor *dy);

/* Gradient through a repetition: y[i] = sum of the a[j] whose index j is i
 * modulo ne in each dimension.
 *
 *   a     float; its dimensions are multiples of those of the result
 *   ne0, ne1, ne2, ne3
 *         dimensions of the result
 *   ->    [ne0, ne1, ne2, ne3] */
GGUF_API struct gguf_tensor *gguf_op_repeat_back(struct gguf_ctx *ctx,
                                                 struct gguf_tensor *a,
                                                 int64_t ne0, int64_t ne1,
                                                 int64_t ne2, int64_t ne3);

/* Gradient through a look-up of rows: row k of the result is the sum of the
 * rows of a whose index is k.
 *
 *   a        float [n, r, b2, b3]
 *   ids      i32 [r, b2, b3], each in 0 to n_rows - 1
 *   n_rows   rows of the result, >= 0
 *   ->       [n, n_rows, b2, b3]
 *
 * An index out of range makes the computation fail with GGUF_E_INVALID. */
GGUF_API struct gguf_tensor *gguf_op_get_rows_back(struct gguf_ctx *ctx,
                                                   struct gguf_tensor *a,
                                                   struct gguf_tensor *ids,
                                                   int64_t n_rows);

/* Gradient through a view: zeros, and dy added at the elements that the view
 * shows.
 *
 *   y    view made by gguf_op_view_1d() to gguf_op_view_4d()
 *   dy   float, shape of y
 *   ->   shape of the tensor that was viewed, contiguous
 *
 * GGUF_E_SHAPE also if the strides of the view are not sums of strides of the
 * tensor that was viewed. */
GGUF_API struct gguf_tensor *gguf_op_view_back(struct gguf_ctx *ctx,
                                               const struct gguf_tensor *y,
                                               struct gguf_tensor *dy);

/* --- parameters, for backends --------------------------------------------- */

/* The builders store these structs as parameters of their results; a backend
 * reads them with gguf_tensor_op_params(). GGUF_OP_ROPE_BACK has a struct
 * gguf_rope. */

/* GGUF_OP_UNARY_BACK and GGUF_OP_NORM_BACK, whose sources are x and dy. Only
 * the library makes it; later versions may add members at its end. */
struct gguf_unary_back_params {
    float param[4]; /* parameters of y */
    uint32_t op;    /* operation of y */
};

/* GGUF_OP_VIEW_BACK: element (i0, i1, i2, i3) of dy is added to element off +
 * sum of i_k step[k] of the result, in memory order. Only the library makes it;
 * later versions may add members at its end. */
struct gguf_view_back_params {
    int64_t off;
    int64_t step[GGUF_TENSOR_DIMS];
};

#ifdef __cplusplus
}
#endif
#endif
