/* SPDX-License-Identifier: MIT */
/* op_conv.h - convolution, pooling, embedding of time steps
 *
 * Conventions: op.h. Data are [w, h, channels, n] in two dimensions and
 * [w, channels, n] in one. Elements outside of the data are zeros.
 */
#ifndef GGUF_OP_CONV_H
#define GGUF_OP_CONV_H

#include <gguf/op_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A window of size elements that lie dilation apart moves over data in steps
 * of stride, beginning pad elements before them. [0] is along w, [1] along h.
 * Over n elements there are
 *
 *   o(n) = floor((n + 2 pad - dilation (size - 1) - 1) / stride) + 1
 *
 * windows; window o has its element k on element o stride + k dilation - pad.
 * sizes, strides and dilations are at least 1, pads at least 0, and one
 * window must fit. NULL in its place: GGUF_WINDOW_INIT. A value: it never
 * grows. */
struct gguf_window {
    int32_t size[2]; /* convolutions take the kernel's and ignore this */
    int32_t stride[2];
    int32_t pad[2];
    int32_t dilation[2];
};
#define GGUF_WINDOW_INIT                                                      \
    {                                                                         \
        { 1, 1 }, { 1, 1 }, { 0, 0 },                                         \
        {                                                                     \
            1, 1                                                              \
        }                                                                     \
    }

/* Windows as columns: data [w, h, c, n] -> dtype (f32, f16 or bf16) [kw kh c,
 * o(w), o(h), n], in a column kw fastest, then kh, then channels. Product with
 * a kernel [kw kh c, oc]: a convolution, and for many channels the faster one.
 */
GGUF_API struct gguf_tensor *gguf_op_im2col(struct gguf_ctx *ctx,
                                            struct gguf_tensor *data,
                                            const struct gguf_window *window,
                                            uint32_t dtype);
/* data [w, c, n] -> [k c, o(w), n]. */
GGUF_API struct gguf_tensor *gguf_op_im2col_1d(struct gguf_ctx *ctx,
                                               struct gguf_tensor *data,
                                               int32_t size, int32_t stride,
                                               int32_t pad, int32_t dilation,
                                               uint32_t dtype);

/* Sum over channels and the window's elements of kernel times data, the kernel
 * not mirrored (what learning libraries call a convolution). Kernel and data
 * of any float type.
 *   conv_2d    kernel [kw, kh, c, oc], data [w, h, c, n]
 *              -> [o(w), o(h), oc, n]
 *   conv_2d_dw kernel [kw, kh, 1, oc], oc a multiple of c: result channel j
 *              reads data channel j / (oc / c) alone
 *   conv_1d    kernel [k, c, oc], data [w, c, n] -> [o(w), oc, n]
 *   conv_1d_dw kernel [k, 1, oc] */
GGUF_API struct gguf_tensor *gguf_op_conv_2d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *kernel,
                                             struct gguf_tensor *data,
                                             const struct gguf_window *window);
GGUF_API struct gguf_tensor *
gguf_op_conv_2d_dw(struct gguf_ctx *ctx, struct gguf_tensor *kernel,
                   struct gguf_tensor *data, const struct gguf_window *window);
GGUF_API struct gguf_tensor *gguf_op_conv_1d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *kernel,
                                             struct gguf_tensor *data,
                                             int32_t stride, int32_t pad,
                                             int32_t dilation);
GGUF_API struct gguf_tensor *gguf_op_conv_1d_dw(struct gguf_ctx *ctx,
                                                struct gguf_tensor *kernel,
                                                struct gguf_tensor *data,
                                                int32_t stride, int32_t pad,
                                                int32_t dilation);

/* Transposed: each element of data adds kernel times itself where a
 * convolution of that window would read: element i to i stride + k dilation -
 * pad, of (w - 1) stride - 2 pad + dilation (k - 1) + 1 elements.
 *   2d  kernel [kw, kh, oc, c], data [w, h, c, n] -> [.., .., oc, n]
 *   1d  kernel [k, oc, c], data [w, c, n] -> [.., oc, n] */
GGUF_API struct gguf_tensor *
gguf_op_conv_transpose_2d(struct gguf_ctx *ctx, struct gguf_tensor *kernel,
                          struct gguf_tensor *data,
                          const struct gguf_window *window);
GGUF_API struct gguf_tensor *
gguf_op_conv_transpose_1d(struct gguf_ctx *ctx, struct gguf_tensor *kernel,
                          struct gguf_tensor *data, int32_t stride,
                          int32_t pad, int32_t dilation);

enum gguf_pool_kind {
    GGUF_POOL_MAX,       /* largest, -infinity if all are outside */
    GGUF_POOL_AVG,       /* sum / the window's size */
    GGUF_POOL_AVG_INSIDE /* sum / how many are inside; 0 for none */
};
/* Each channel by itself: a [w, h, ...] -> [o(w), o(h), ...]; in one dimension
 * [w, ...] -> [o(w), ...]. f32. */
GGUF_API struct gguf_tensor *gguf_op_pool_2d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             enum gguf_pool_kind kind,
                                             const struct gguf_window *window);
GGUF_API struct gguf_tensor *gguf_op_pool_1d(struct gguf_ctx *ctx,
                                             struct gguf_tensor *a,
                                             enum gguf_pool_kind kind,
                                             int32_t size, int32_t stride,
                                             int32_t pad);

/* Sinusoids of a diffusion model's time steps (Vaswani et al., arXiv
 * 1706.03762, in the form of Dhariwal and Nichol, arXiv 2105.05233): steps [n]
 * of a float type -> [dim, n]. With half = dim / 2 and f_j =
 * max_period^(-j / half), elements j and half + j of a column are
 * cos(step f_j) and sin(step f_j); the last of an odd dim is 0. dim and
 * max_period are at least 1. */
GGUF_API struct gguf_tensor *gguf_op_timestep_embedding(struct gguf_ctx *ctx,
                                                        struct gguf_tensor *t,
                                                        int32_t dim,
                                                        int32_t max_period);

/* Parameters as the builders store them in op_params, for backends: of
 * im2col, conv, conv_transpose, pool. Made by the library: it may grow at its
 * end (gguf_tensor_op_params). */
struct gguf_conv_params {
    struct gguf_window window; /* with the size */
    int32_t depthwise;         /* conv: each channel by itself */
    int32_t kind;              /* GGUF_POOL_... */
};

#ifdef __cplusplus
}
#endif
#endif
