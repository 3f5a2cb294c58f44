/* SPDX-License-Identifier: MIT */
/* op_conv.h - convolution, pooling, time-step embedding
 *
 * Data is [w, h, channels, n] in two dimensions and [w, channels, n] in one.
 * Elements outside of the data count as zeros. op.h explains the notation and
 * the failures that all builders have.
 */
#ifndef GGUF_OP_CONV_H
#define GGUF_OP_CONV_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- windows -------------------------------------------------------------- */

/* Sliding window over data: index [0] is along w, [1] along h.
 *
 * Element k of window o lies on element o * stride + k * dilation - pad of the
 * data. Over n elements there are
 *
 *   o(n) = floor((n + 2 * pad - dilation * (size - 1) - 1) / stride) + 1
 *
 * windows; at least one must fit. A builder takes NULL for a window of all
 * defaults. Later versions add no members to this struct. */
struct gguf_window {
    int32_t size[2];     /* elements of a window; 0: 1. Convolutions ignore it:
                            they take the size of the kernel */
    int32_t stride[2];   /* elements from a window to the next; 0: 1 */
    int32_t pad[2];      /* zeros before and after the data, >= 0 */
    int32_t dilation[2]; /* distance of a window's elements; 0: 1 */
};
/* Window of all defaults: size 1, stride 1, no padding, dilation 1. */
#define GGUF_WINDOW_INIT                                                      \
    {                                                                         \
        { 0, 0 }, { 0, 0 }, { 0, 0 },                                         \
        {                                                                     \
            0, 0                                                              \
        }                                                                     \
    }

/* Copy each window of the data to a column. A product of a kernel
 * [kw * kh * channels, oc] with the columns is a convolution; for many channels
 * it is the fastest way.
 *
 *   data     float [w, h, channels, n]
 *   window   [kw, kh] and its steps. NULL: the defaults
 *   dtype    f32, f16 or bf16
 *   ->       dtype [kw * kh * channels, o(w), o(h), n]: in a column, kw is
 *            the fastest, then kh, then channels */
GGUF_API struct gguf_tensor *gguf_op_im2col(struct gguf_ctx *ctx,
                                            struct gguf_tensor *data,
                                            const struct gguf_window *window,
                                            uint32_t dtype);

/* Copy each window of one-dimensional data to a column.
 *
 *   data       float [w, channels, n]
 *   size       elements of a window; 0: 1
 *   stride     elements from a window to the next; 0: 1
 *   pad        zeros before and after the data, >= 0
 *   dilation   distance of a window's elements; 0: 1
 *   dtype      f32, f16 or bf16
 *   ->         dtype [size * channels, o(w), n] */
GGUF_API struct gguf_tensor *gguf_op_im2col_1d(struct gguf_ctx *ctx,
                                               struct gguf_tensor *data,
                                               int32_t size, int32_t stride,
                                               int32_t pad, int32_t dilation,
                                               uint32_t dtype);

/* --- convolution ---------------------------------------------------------- */

/* Convolution in two dimensions, as learning libraries define it (the kernel is
 * not mirrored): the sum over channels and over the window of kernel times
 * data.
 *
 *   kernel   float [kw, kh, channels, oc]
 *   data     float [w, h, channels, n]
 *   window   steps; its size is ignored. NULL: the defaults
 *   ->       [o(w), o(h), oc, n] */
GGUF_API struct gguf_tensor *gguf_op_conv_2d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *kernel,
                                             struct gguf_tensor *data,
                                             const struct gguf_window *window);

/* Depthwise convolution in two dimensions: channel j of the result reads
 * channel j / (oc / channels) of the data alone.
 *
 *   kernel   float [kw, kh, 1, oc]; oc is a multiple of channels
 *   data     float [w, h, channels, n]
 *   window   steps; its size is ignored. NULL: the defaults
 *   ->       [o(w), o(h), oc, n] */
GGUF_API struct gguf_tensor *
gguf_op_conv_2d_dw(struct gguf_ctx *ctx, struct gguf_tensor *kernel,
                   struct gguf_tensor *data, const struct gguf_window *window);

/* Convolution in one dimension (the kernel is not mirrored).
 *
 *   kernel     float [k, channels, oc]
 *   data       float [w, channels, n]
 *   stride     elements from a window to the next; 0: 1
 *   pad        zeros before and after the data, >= 0
 *   dilation   distance of a window's elements; 0: 1
 *   ->         [o(w), oc, n] */
GGUF_API struct gguf_tensor *gguf_op_conv_1d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *kernel,
                                             struct gguf_tensor *data,
                                             int32_t stride, int32_t pad,
                                             int32_t dilation);

/* Depthwise convolution in one dimension: channel j of the result reads channel
 * j / (oc / channels) of the data alone.
 *
 *   kernel     float [k, 1, oc]; oc is a multiple of channels
 *   data       float [w, channels, n]
 *   stride     elements from a window to the next; 0: 1
 *   pad        zeros before and after the data, >= 0
 *   dilation   distance of a window's elements; 0: 1
 *   ->         [o(w), oc, n] */
GGUF_API struct gguf_tensor *gguf_op_conv_1d_dw(struct gguf_ctx *ctx,
                                                struct gguf_tensor *kernel,
                                                struct gguf_tensor *data,
                                                int32_t stride, int32_t pad,
                                                int32_t dilation);

/* Transposed convolution in two dimensions: element i of the data adds kernel
 * element k times itself to element i * stride + k * dilation - pad of the
 * result.
 *
 *   kernel   float [kw, kh, oc, channels]
 *   data     float [w, h, channels, n]
 *   window   steps; its size is ignored. NULL: the defaults
 *   ->       [t(w), t(h), oc, n] with t(w) = (w - 1) * stride - 2 * pad +
 *            dilation * (kw - 1) + 1, at least 1 */
GGUF_API struct gguf_tensor *
gguf_op_conv_transpose_2d(struct gguf_ctx *ctx, struct gguf_tensor *kernel,
                          struct gguf_tensor *data,
                          const struct gguf_window *window);

/* Transposed convolution in one dimension: element i of the data adds kernel
 * element k times itself to element i * stride + k * dilation - pad of the
 * result.
 *
 *   kernel     float [k, oc, channels]
 *   data       float [w, channels, n]
 *   stride     elements of the result for each element of the data;
 *              0: 1
 *   pad        elements cut from both ends of the result, >= 0
 *   dilation   distance of a kernel's elements; 0: 1
 *   ->         [t(w), oc, n] with t(w) = (w - 1) * stride - 2 * pad +
 *              dilation * (k - 1) + 1, at least 1 */
GGUF_API struct gguf_tensor *
gguf_op_conv_transpose_1d(struct gguf_ctx *ctx, struct gguf_tensor *kernel,
                          struct gguf_tensor *data, int32_t stride,
                          int32_t pad, int32_t dilation);

/* --- pooling -------------------------------------------------------------- */

enum gguf_pool_kind {
    GGUF_POOL_MAX,       /* largest element; -infinity if all are outside */
    GGUF_POOL_AVG,       /* sum divided by the size of the window */
    GGUF_POOL_AVG_INSIDE /* mean of the elements inside the data; 0 if all are
                            outside */
};

/* Pooling in two dimensions, of each channel by itself.
 *
 *   a        float [w, h, ...]
 *   kind     GGUF_POOL_...
 *   window   size and steps. NULL: the defaults
 *   ->       [o(w), o(h), ...] */
GGUF_API struct gguf_tensor *gguf_op_pool_2d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             enum gguf_pool_kind kind,
                                             const struct gguf_window *window);

/* Pooling of each row.
 *
 *   a        float [w, ...]
 *   kind     GGUF_POOL_...
 *   size     elements of a window; 0: 1
 *   stride   elements from a window to the next; 0: 1
 *   pad      elements before and after the data, >= 0
 *   ->       [o(w), ...] */
GGUF_API struct gguf_tensor *gguf_op_pool_1d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             enum gguf_pool_kind kind,
                                             int32_t size, int32_t stride,
                                             int32_t pad);

/* --- time steps ----------------------------------------------------------- */

/* Sinusoidal embedding of a diffusion model's time steps (Vaswani et al.,
 * arXiv 1706.03762, in the form of Dhariwal and Nichol, arXiv 2105.05233). With
 * half = dim / 2, for j below half:
 *
 *     y[j]        = cos(t * max_period^(-j / half))
 *     y[half + j] = sin(t * max_period^(-j / half))
 *
 *   t            float [n]
 *   dim          elements of a column, >= 1. The last element of an odd dim
 *                is 0
 *   max_period   longest period, >= 1
 *   ->           [dim, n] */
GGUF_API struct gguf_tensor *gguf_op_timestep_embedding(struct gguf_ctx *ctx,
                                                        struct gguf_tensor *t,
                                                        int32_t dim,
                                                        int32_t max_period);

/* --- parameters, for backends --------------------------------------------- */

/* Parameters of GGUF_OP_IM2COL, GGUF_OP_CONV, GGUF_OP_CONV_TRANSPOSE and
 * GGUF_OP_POOL, as the builders store them; a backend reads them with
 * gguf_tensor_op_params(). Only the library makes it; later versions may add
 * members at its end. */
struct gguf_conv_params {
    struct gguf_window window; /* size and steps, without zeros for defaults */
    int32_t depthwise; /* CONV: 1 for a depthwise convolution, else 0 */
    int32_t kind;      /* POOL: GGUF_POOL_... */
};

#ifdef __cplusplus
}
#endif
#endif
