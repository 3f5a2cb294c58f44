/* SPDX-License-Identifier: MIT */
/* op_conv.c - convolution, pooling, time steps: builders and rules */
#include "config.h"
#include "graph/shape_rule.h"

/* --- rules ---------------------------------------------------------------- */

static enum gguf_status window_is_good(const struct gguf_tensor *t,
                                       const struct gguf_window *w,
                                       struct gguf_error *err)
{
    for (int d = 0; d < 2; d++)
        if (w->size[d] < 1 || w->stride[d] < 1 || w->pad[d] < 0 ||
            w->dilation[d] < 1)
            FAIL_SHAPE("a window of %" PRId32 ", stride %" PRId32
                       ", padding %" PRId32 ", dilation %" PRId32,
                       w->size[d], w->stride[d], w->pad[d], w->dilation[d]);
    return GGUF_OK;
}

/* Count the windows along dimension d of n elements, in *out. The members of a
 * window have 32 bits, so no sum below 2^62 overflows. */
static enum gguf_status count_windows(const struct gguf_tensor *t,
                                      const struct gguf_window *w, int d,
                                      int64_t n, int64_t *out,
                                      struct gguf_error *err)
{
    const int64_t reach = (int64_t)w->dilation[d] * (w->size[d] - 1) + 1;
    if (n > INT64_MAX / 4)
        FAIL_SHAPE("dimension %d is too large", d);
    if (n + 2 * (int64_t)w->pad[d] < reach)
        FAIL_SHAPE("a window over %" PRId64 " elements of dimension %d does "
                   "not fit",
                   reach, d);
    *out = (n + 2 * (int64_t)w->pad[d] - reach) / w->stride[d] + 1;
    return GGUF_OK;
}

static enum gguf_status conv_begin(const struct gguf_tensor *t,
                                   struct gguf_conv_params *p,
                                   struct gguf_error *err)
{
    gg_op_params_get(t, p, sizeof *p);
    for (int i = 0; i < 2; i++)
        if (t->src[i] && !gg_graph_is_float(t->src[i]))
            FAIL_TYPE("the types must be floats");
    return window_is_good(t, &p->window, err);
}

enum gguf_status gg_graph_shape_conv(struct gguf_tensor *t,
                                     struct gguf_error *err)
{
    const struct gguf_tensor *k = t->src[0], *data = t->src[1];
    struct gguf_conv_params p;
    int64_t ne[] = { 0, 0, k->ne[3], data->ne[3] };
    GG_TRY(conv_begin(t, &p, err));
    if (p.depthwise ? k->ne[2] != 1 || !data->ne[2] || k->ne[3] % data->ne[2]
                    : k->ne[2] != data->ne[2])
        FAIL_SHAPE("the channels do not match");
    for (int d = 0; d < 2; d++)
        GG_TRY(count_windows(t, &p.window, d, data->ne[d], &ne[d], err));
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}

enum gguf_status gg_graph_shape_conv_transpose(struct gguf_tensor *t,
                                               struct gguf_error *err)
{
    const struct gguf_tensor *k = t->src[0], *data = t->src[1];
    struct gguf_conv_params p;
    int64_t ne[] = { 0, 0, k->ne[2], data->ne[3] };
    GG_TRY(conv_begin(t, &p, err));
    if (k->ne[3] != data->ne[2])
        FAIL_SHAPE("the channels do not match");
    for (int d = 0; d < 2; d++) {
        const struct gguf_window *w = &p.window;
        if (data->ne[d] < 1 || data->ne[d] > INT32_MAX)
            FAIL_SHAPE("dimension %d is nothing, or too large", d);
        ne[d] = (data->ne[d] - 1) * w->stride[d] - 2 * (int64_t)w->pad[d] +
                (int64_t)w->dilation[d] * (w->size[d] - 1) + 1;
        if (ne[d] < 1)
            FAIL_SHAPE("a padding of %" PRId32 " leaves nothing of dimension "
                       "%d",
                       w->pad[d], d);
    }
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}

/* The builder says the type. */
enum gguf_status gg_graph_shape_im2col(struct gguf_tensor *t,
                                       struct gguf_error *err)
{
    const struct gguf_tensor *data = t->src[0];
    struct gguf_conv_params p;
    int64_t ne[] = { 0, 0, 0, data->ne[3] };
    uint64_t n;
    GG_TRY(conv_begin(t, &p, err));
    if (!gg_graph_is_float(t))
        FAIL_TYPE("the result must be a float");
    for (int d = 0; d < 2; d++)
        GG_TRY(count_windows(t, &p.window, d, data->ne[d], &ne[d + 1], err));
    if (gg_ckd_mul(&n, (uint64_t)p.window.size[0] * (uint64_t)p.window.size[1],
                   (uint64_t)data->ne[2]) ||
        gg_ckd_exceeds_cap(n))
        FAIL_SHAPE("a column is too long");
    ne[0] = (int64_t)n;
    return gg_tensor_set_shape(t, t->dtype, ne, err);
}

enum gguf_status gg_graph_shape_pool(struct gguf_tensor *t,
                                     struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0];
    struct gguf_conv_params p;
    int64_t ne[] = { 0, 0, a->ne[2], a->ne[3] };
    GG_TRY(conv_begin(t, &p, err));
    if (p.kind < GGUF_POOL_MAX || p.kind > GGUF_POOL_AVG_INSIDE)
        return gg_op_fail(t, err, GGUF_E_INVALID,
                          "pooling %" PRId32 " is unknown", p.kind);
    for (int d = 0; d < 2; d++)
        GG_TRY(count_windows(t, &p.window, d, a->ne[d], &ne[d], err));
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32, ne, err);
}

/* op_params: dimension, longest period. */
enum gguf_status gg_graph_shape_timestep(struct gguf_tensor *t,
                                         struct gguf_error *err)
{
    const struct gguf_tensor *a = t->src[0];
    if (!gg_graph_is_float(a))
        FAIL_TYPE("the type must be a float");
    if (t->op_params[0] < 1 || t->op_params[1] < 1)
        FAIL_SHAPE("dimension %" PRId32 ", period %" PRId32, t->op_params[0],
                   t->op_params[1]);
    if (gguf_tensor_n_rows(a) != 1)
        FAIL_SHAPE("the steps must be one row");
    return gg_tensor_set_shape(t, GGUF_DTYPE_F32,
                               (int64_t[]){ t->op_params[0], a->ne[0], 1, 1 },
                               err);
}

/* --- builders ------------------------------------------------------------- */

/* One dimension as two, the second of one element: [a, b, c] to [a, 1, b, c].
 * NULL, with a failure, for four dimensions. */
static struct gguf_tensor *
flatten_source(struct gguf_ctx *ctx, enum gguf_op op, struct gguf_tensor *a)
{
    if (!a || gg_ctx_failed(ctx))
        return NULL;
    if (a->ne[3] == 1)
        return gguf_op_permute(ctx, a, 0, 2, 3, 1);
    struct gg_tensor_storage s = GG_TENSOR_STORAGE_INIT(s, .op = op);
    s.src[0] = a;
    gg_op_fail(&s.t, gg_ctx_err(ctx), GGUF_E_SHAPE, "more than 3 dimensions");
    return NULL;
}

/* And back: [a, 1, b, c] to [a, b, c]. */
static struct gguf_tensor *unflatten_result(struct gguf_ctx *ctx,
                                            struct gguf_tensor *t)
{
    return t ? gguf_op_reshape_3d(ctx, t, t->ne[0], t->ne[2], t->ne[3]) : NULL;
}

static struct gguf_window window_1d(int32_t size, int32_t stride, int32_t pad,
                                    int32_t dilation)
{
    return (struct gguf_window){
        { size, 1 }, { stride, 1 }, { pad, 0 }, { dilation, 1 }
    };
}

static struct gguf_window given_window(const struct gguf_window *window)
{
    struct gguf_window w =
        window ? *window : (struct gguf_window)GGUF_WINDOW_INIT;
    for (int d = 0; d < 2; d++) {
        w.size[d] += !w.size[d];
        w.stride[d] += !w.stride[d];
        w.dilation[d] += !w.dilation[d];
    }
    return w;
}

static struct gguf_tensor *build_conv(struct gguf_ctx *ctx, enum gguf_op op,
                                      struct gguf_tensor *kernel,
                                      struct gguf_tensor *data,
                                      const struct gguf_window *window,
                                      bool depthwise)
{
    struct gguf_conv_params p = { .window = given_window(window),
                                  .depthwise = depthwise };
    /* a kernel that is too large for 32 bits does not fit either */
    for (int d = 0; d < 2 && kernel; d++)
        p.window.size[d] = (int32_t)GG_MIN(kernel->ne[d], INT32_MAX);
    return gg_op_make(ctx, op, &p, sizeof p, SRC(kernel, data));
}

static struct gguf_tensor *conv_1d(struct gguf_ctx *ctx, enum gguf_op op,
                                   struct gguf_tensor *kernel,
                                   struct gguf_tensor *data, int32_t stride,
                                   int32_t pad, int32_t dilation,
                                   bool depthwise)
{
    const struct gguf_window w = window_1d(1, stride, pad, dilation);
    return unflatten_result(
        ctx, build_conv(ctx, op, flatten_source(ctx, op, kernel),
                        flatten_source(ctx, op, data), &w, depthwise));
}

struct gguf_tensor *gguf_op_conv_2d(struct gguf_ctx *ctx,
                                    struct gguf_tensor *kernel,
                                    struct gguf_tensor *data,
                                    const struct gguf_window *window)
{
    return build_conv(ctx, GGUF_OP_CONV, kernel, data, window, false);
}

struct gguf_tensor *gguf_op_conv_2d_dw(struct gguf_ctx *ctx,
                                       struct gguf_tensor *kernel,
                                       struct gguf_tensor *data,
                                       const struct gguf_window *window)
{
    return build_conv(ctx, GGUF_OP_CONV, kernel, data, window, true);
}

struct gguf_tensor *gguf_op_conv_1d(struct gguf_ctx *ctx,
                                    struct gguf_tensor *kernel,
                                    struct gguf_tensor *data, int32_t stride,
                                    int32_t pad, int32_t dilation)
{
    return conv_1d(ctx, GGUF_OP_CONV, kernel, data, stride, pad, dilation,
                   false);
}

struct gguf_tensor *gguf_op_conv_1d_dw(struct gguf_ctx *ctx,
                                       struct gguf_tensor *kernel,
                                       struct gguf_tensor *data,
                                       int32_t stride, int32_t pad,
                                       int32_t dilation)
{
    return conv_1d(ctx, GGUF_OP_CONV, kernel, data, stride, pad, dilation,
                   true);
}

struct gguf_tensor *gguf_op_conv_transpose_2d(struct gguf_ctx *ctx,
                                              struct gguf_tensor *kernel,
                                              struct gguf_tensor *data,
                                              const struct gguf_window *window)
{
    return build_conv(ctx, GGUF_OP_CONV_TRANSPOSE, kernel, data, window,
                      false);
}

struct gguf_tensor *gguf_op_conv_transpose_1d(struct gguf_ctx *ctx,
                                              struct gguf_tensor *kernel,
                                              struct gguf_tensor *data,
                                              int32_t stride, int32_t pad,
                                              int32_t dilation)
{
    return conv_1d(ctx, GGUF_OP_CONV_TRANSPOSE, kernel, data, stride, pad,
                   dilation, false);
}

struct gguf_tensor *gguf_op_im2col(struct gguf_ctx *ctx,
                                   struct gguf_tensor *data,
                                   const struct gguf_window *window,
                                   uint32_t dtype)
{
    struct gguf_conv_params p = { .window = given_window(window) };
    struct gg_tensor_storage proto =
        GG_TENSOR_STORAGE_INIT(proto, .op = GGUF_OP_IM2COL, .dtype = dtype);
    proto.src[0] = data;
    memcpy(proto.op_params, &p, sizeof p);
    return gg_op_build(ctx, &proto);
}

struct gguf_tensor *gguf_op_im2col_1d(struct gguf_ctx *ctx,
                                      struct gguf_tensor *data, int32_t size,
                                      int32_t stride, int32_t pad,
                                      int32_t dilation, uint32_t dtype)
{
    const struct gguf_window w = window_1d(size, stride, pad, dilation);
    struct gguf_tensor *t = gguf_op_im2col(
        ctx, flatten_source(ctx, GGUF_OP_IM2COL, data), &w, dtype);
    return t ? gguf_op_reshape_3d(ctx, t, t->ne[0], t->ne[1], t->ne[3]) : NULL;
}

struct gguf_tensor *gguf_op_pool_2d(struct gguf_ctx *ctx,
                                    struct gguf_tensor *a,
                                    enum gguf_pool_kind kind,
                                    const struct gguf_window *window)
{
    struct gguf_conv_params p = { .window = given_window(window),
                                  .kind = (int32_t)kind };
    return gg_op_make(ctx, GGUF_OP_POOL, &p, sizeof p, SRC(a));
}

struct gguf_tensor *gguf_op_pool_1d(struct gguf_ctx *ctx,
                                    struct gguf_tensor *a,
                                    enum gguf_pool_kind kind, int32_t size,
                                    int32_t stride, int32_t pad)
{
    const struct gguf_window w = window_1d(size, stride, pad, 1);
    return gguf_op_pool_2d(ctx, a, kind, &w);
}

struct gguf_tensor *gguf_op_timestep_embedding(struct gguf_ctx *ctx,
                                               struct gguf_tensor *t,
                                               int32_t dim, int32_t max_period)
{
    return gg_op_make(ctx, GGUF_OP_TIMESTEP_EMBEDDING,
                      (int32_t[]){ dim, max_period }, 2 * sizeof dim, SRC(t));
}
