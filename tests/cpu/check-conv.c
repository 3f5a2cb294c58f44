/* SPDX-License-Identifier: MIT */
/* check-conv.c - convolution, pooling, im2col, time step embedding */
#include "config.h"
#include "tests/cpu/ops.h"

static const struct gguf_window windows[] = {
    /* sizes (of kernels too), stride, padding, dilation */
    { { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 } },
    { { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 } },
    { { 3, 2 }, { 2, 3 }, { 0, 1 }, { 1, 1 } },
    { { 4, 3 }, { 1, 2 }, { 3, 2 }, { 2, 1 } },
    /* windows may lie in the padding */
    { { 2, 4 }, { 3, 1 }, { 4, 3 }, { 3, 2 } },
    { { 7, 5 }, { 4, 4 }, { 3, 2 }, { 1, 1 } },
    { { 4, 4 }, { 4, 4 }, { 0, 0 }, { 1, 1 } },
};
enum { N_WINDOWS = sizeof windows / sizeof *windows };

/* Parameters of the current case. Formulas read these and not the node, which
 * the 1-D builders expand. */
static struct {
    const tensor *kernel, *data;
    struct gguf_window w;
    bool depthwise;
} now;

/* Element of the data; 0 in the padding. */
static double data_at(int64_t i0, int64_t i1, int64_t c, int64_t n)
{
    const tensor *d = now.data;
    return i0 < 0 || i1 < 0 || i0 >= d->ne[0] || i1 >= d->ne[1]
               ? 0
               : at(d, i0, i1, c, n);
}

static int64_t pos_of(int d, int64_t o, int64_t k)
{
    return o * now.w.stride[d] + k * now.w.dilation[d] - now.w.pad[d];
}

static double f_conv(const tensor *t, int64_t i0, int64_t i1, int64_t oc,
                     int64_t n, double *tol)
{
    const tensor *k = now.kernel;
    double v = 0, sum = 0, terms = 1;
    (void)t;
    for (int64_t c = 0; c < k->ne[2]; c++)
        for (int64_t b = 0; b < k->ne[1]; b++)
            for (int64_t a = 0; a < k->ne[0]; a++, terms++) {
                int64_t dc =
                    now.depthwise ? oc / (k->ne[3] / now.data->ne[2]) : c;
                double x = at(k, a, b, c, oc) *
                           data_at(pos_of(0, i0, a), pos_of(1, i1, b), dc, n);
                v += x;
                sum += fabs(x);
            }
    *tol = terms * 0x1p-24 * sum;
    return v;
}

/* Transposed convolution by its definition: sum over the elements of data that
 * reach this one. */
static double f_transpose(const tensor *t, int64_t i0, int64_t i1, int64_t oc,
                          int64_t n, double *tol)
{
    const tensor *k = now.kernel, *d = now.data;
    double v = 0, sum = 0, terms = 1;
    (void)t;
    for (int64_t c = 0; c < d->ne[2]; c++)
        for (int64_t y = 0; y < d->ne[1]; y++)
            for (int64_t x = 0; x < d->ne[0]; x++)
                for (int64_t b = 0; b < k->ne[1]; b++)
                    for (int64_t a = 0; a < k->ne[0]; a++) {
                        if (pos_of(0, x, a) != i0 || pos_of(1, y, b) != i1)
                            continue;
                        double p = at(k, a, b, oc, c) * at(d, x, y, c, n);
                        v += p;
                        sum += fabs(p);
                        terms++;
                    }
    *tol = terms * 0x1p-24 * sum;
    return v;
}

static double f_im2col(const tensor *t, int64_t i, int64_t i1, int64_t i2,
                       int64_t n, double *tol)
{
    int64_t w = now.w.size[0], h = now.w.size[1];
    double v =
        data_at(pos_of(0, i1, i % w), pos_of(1, i2, i / w % h), i / w / h, n);
    *tol = ulp(t, v);
    return v;
}

static double f_pool(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3, double *tol)
{
    struct gguf_conv_params p;
    const tensor *d = now.data;
    double max = -INFINITY, sum = 0, inside = 0;
    memcpy(&p, t->op_params, sizeof p);
    for (int64_t b = 0; b < now.w.size[1]; b++)
        for (int64_t a = 0; a < now.w.size[0]; a++) {
            int64_t x = pos_of(0, i0, a), y = pos_of(1, i1, b);
            if (x < 0 || y < 0 || x >= d->ne[0] || y >= d->ne[1])
                continue;
            max = fmax(max, at(d, x, y, i2, i3));
            sum += at(d, x, y, i2, i3);
            inside++;
        }
    double v = p.kind == GGUF_POOL_MAX   ? max
               : p.kind == GGUF_POOL_AVG ? sum / now.w.size[0] / now.w.size[1]
               : inside > 0              ? sum / inside
                                         : 0;
    *tol = v == -INFINITY ? 0 : ulp(t, v);
    return v;
}

/* --- two dimensions ------------------------------------------------------- */

static void check_2d(void)
{
    for (int v = 0; v < N_WINDOWS * N_LAYOUTS * N_FLOATS; v++) {
        ctx_t *c = new_ctx();
        enum layout l = (enum layout)(v % N_LAYOUTS);
        uint32_t type = float_types[v / N_LAYOUTS % N_FLOATS];
        uint32_t other = float_types[v / 2 % N_FLOATS];
        const struct gguf_window *w = &windows[v / N_LAYOUTS / N_FLOATS];
        tensor *data = source(c, type, l, 13, 11, 4, 2);
        tensor *k = source(c, other, (enum layout)(N_LAYOUTS - 1 - l),
                           w->size[0], w->size[1], 4, 3);
        tensor *dw = source(c, other, l, w->size[0], w->size[1], 1, 8);
        tensor *back = source(c, other, l, w->size[0], w->size[1], 3, 4);
        tensor *few = source(c, type, l, 5, 7, 4, 2);
        char name[100];
        snprintf(name, sizeof name, "%s %s, kernel %s, window %d",
                 layout_names[l], type_name(data), type_name(k),
                 v / N_LAYOUTS / N_FLOATS);
        now.w = *w;
        now.data = data;
        now.kernel = k;
        now.depthwise = false;
        run_case(c, gguf_op_conv_2d(c, k, data, w), f_conv, "conv_2d %s",
                 name);
        run_case(c, gguf_op_im2col(c, data, w, other), f_im2col,
                 "im2col %s to %s", name, type_name(k));
        for (int kind = GGUF_POOL_MAX; kind <= GGUF_POOL_AVG_INSIDE; kind++)
            run_case(c, gguf_op_pool_2d(c, data, (enum gguf_pool_kind)kind, w),
                     f_pool, "pool_2d %d %s", kind, name);
        now.kernel = dw;
        now.depthwise = true;
        run_case(c, gguf_op_conv_2d_dw(c, dw, data, w), f_conv,
                 "conv_2d_dw %s", name);
        now.kernel = back;
        now.data = few;
        for (int d = 0; d < 2; d++) /* keeps the result from being empty */
            now.w.pad[d] = (int32_t)GG_MIN(now.w.pad[d], now.w.size[d] / 2);
        run_case(c, gguf_op_conv_transpose_2d(c, back, few, &now.w),
                 f_transpose, "conv_transpose_2d %s", name);
        gguf_ctx_destroy(c);
    }
}

/* --- one dimension -------------------------------------------------------- */

/* The result [w, 1, c, n] as [w, c, n]. */
static double f_conv_1d(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                        int64_t i3, double *tol)
{
    (void)i3;
    return f_conv(t->src[0], i0, 0, i1, i2, tol);
}

static double f_transpose_1d(const tensor *t, int64_t i0, int64_t i1,
                             int64_t i2, int64_t i3, double *tol)
{
    (void)i3;
    return f_transpose(t->src[0], i0, 0, i1, i2, tol);
}

static double f_im2col_1d(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                          int64_t i3, double *tol)
{
    (void)i3;
    return f_im2col(t->src[0], i0, i1, 0, i2, tol);
}

/* Copy a [w, c, n] to [w, 1, c, n] element by element. */
static const tensor *widen_2d(ctx_t *c, const tensor *a)
{
    tensor *t = gguf_tensor_create_4d(c, GGUF_DTYPE_F32, a->ne[0], 1, a->ne[1],
                                      a->ne[2]);
    for (int64_t i = 0; i < gguf_tensor_n_elements(t); i++)
        ((float *)t->data)[i] = (float)linear(a, i);
    return t;
}

static void check_1d(void)
{
    for (int v = 0; v < N_WINDOWS * N_LAYOUTS * N_FLOATS; v++) {
        ctx_t *c = new_ctx();
        enum layout l = (enum layout)(v % N_LAYOUTS);
        uint32_t type = float_types[v / N_LAYOUTS % N_FLOATS];
        const struct gguf_window *w = &windows[v / N_LAYOUTS / N_FLOATS];
        const int32_t s = w->stride[0], d = w->dilation[0], k = w->size[0];
        const int32_t p = w->pad[0];
        tensor *data = source(c, type, l, 29, 6, 3, 1);
        tensor *full = source(c, GGUF_DTYPE_F32, l, k, 6, 5, 1);
        tensor *dw = source(c, GGUF_DTYPE_F16, l, k, 1, 6, 1);
        tensor *back = source(c, type, l, k, 5, 6, 1);
        char name[100];
        snprintf(name, sizeof name, "%s %s, window %d", layout_names[l],
                 type_name(data), v / N_LAYOUTS / N_FLOATS);
        now.w = (struct gguf_window){ { k, 1 }, { s, 1 }, { p, 0 }, { d, 1 } };
        now.data = widen_2d(c, data);
        now.kernel = widen_2d(c, full);
        now.depthwise = false;
        run_case(c, gguf_op_conv_1d(c, full, data, s, p, d), f_conv_1d,
                 "conv_1d %s", name);
        run_case(c, gguf_op_im2col_1d(c, data, k, s, p, d, GGUF_DTYPE_F32),
                 f_im2col_1d, "im2col_1d %s", name);
        now.kernel = widen_2d(c, dw);
        now.depthwise = true;
        run_case(c, gguf_op_conv_1d_dw(c, dw, data, s, p, d), f_conv_1d,
                 "conv_1d_dw %s", name);
        now.kernel = widen_2d(c, back);
        now.w.pad[0] = GG_MIN(p, k / 2);
        run_case(c,
                 gguf_op_conv_transpose_1d(c, back, data, s, now.w.pad[0], d),
                 f_transpose_1d, "conv_transpose_1d %s", name);
        now.data = data;
        now.w.pad[0] = p;
        now.w.dilation[0] = 1;
        run_case(c, gguf_op_pool_1d(c, data, GGUF_POOL_AVG_INSIDE, k, s, p),
                 f_pool, "pool_1d %s", name);
        gguf_ctx_destroy(c);
    }
}

/* A convolution is the matrix product of kernels and im2col columns. */
static void check_columns(void)
{
    struct gguf_error err;
    ctx_t *c = new_ctx();
    const struct gguf_window *w = &windows[3];
    tensor *data = source(c, GGUF_DTYPE_F32, PLAIN, 13, 11, 4, 1);
    tensor *k = source(c, GGUF_DTYPE_F32, PLAIN, 4, 3, 4, 5);
    tensor *conv = gguf_op_conv_2d(c, k, data, w);
    tensor *cols = gguf_op_im2col(c, data, w, GGUF_DTYPE_F32);
    tensor *flat =
        gguf_op_reshape_2d(c, cols, cols->ne[0], cols->ne[1] * cols->ne[2]);
    tensor *prod = gguf_op_matmul(c, flat, gguf_op_reshape_2d(c, k, 48, 5));
    struct gguf_graph *g = gguf_graph_create(c, 16);
    gguf_graph_add(g, conv);
    bool good = gguf_graph_finish(c, g, prod, &err) == GGUF_OK &&
                gguf_backend_compute(ops_backends[1], g, &err) == GGUF_OK;
    for (int64_t i = 0; good && i < gguf_tensor_n_elements(conv); i++)
        good = fabs(linear(conv, i) - linear(prod, i)) < 1e-4;
    ok(good && gguf_tensor_n_elements(conv) == gguf_tensor_n_elements(prod),
       "conv_2d is matmul of im2col and the kernel");
    gguf_ctx_destroy(c);
}

static double f_timestep(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                         int64_t i3, double *tol)
{
    int64_t half = t->op_params[0] / 2;
    (void)i2;
    (void)i3;
    *tol = 0;
    if (i0 == 2 * half)
        return 0;
    double f = pow(t->op_params[1], -(double)(i0 % half) / (double)half);
    double angle = at(t->src[0], i1, 0, 0, 0) * f;
    *tol = 0x1p-23;
    return i0 < half ? cos(angle) : sin(angle);
}

static void check_timesteps(void)
{
    static const int32_t dims[] = { 320, 7, 2, 1 };
    for (int k = 0; k < 4 * N_FLOATS; k++) {
        ctx_t *c = new_ctx();
        tensor *steps = gguf_op_cast(c, between(c, PLAIN, 9, 1, 1, 1, 0, 1000),
                                     float_types[k / 4]);
        run_case(c,
                 gguf_op_timestep_embedding(c, steps, dims[k % 4],
                                            k & 1 ? 10000 : 100),
                 f_timestep, "timestep_embedding of %s, %d", type_name(steps),
                 dims[k % 4]);
        gguf_ctx_destroy(c);
    }
}

/* Batches and channels of size 0, and parameters that give no valid shape. */
static void check_edges(void)
{
    ctx_t *c = new_ctx();
    struct gguf_window w = windows[1];
#define F32(...) gguf_tensor_create_4d(c, GGUF_DTYPE_F32, __VA_ARGS__)
    now.w = w;
    now.depthwise = false;
    for (int k = 0; k < 3; k++) {
        now.data = F32(5, 5, k ? 2 : 0, k == 1 ? 0 : 1);
        now.kernel = F32(3, 3, k ? 2 : 0, k == 2 ? 0 : 2);
        run_case(
            c,
            gguf_op_conv_2d(c, (tensor *)now.kernel, (tensor *)now.data, &w),
            f_conv, "conv_2d of nothing, %d", k);
    }
    now.data = F32(5, 5, 0, 1);
    now.kernel = F32(3, 3, 2, 0);
    run_case(c,
             gguf_op_conv_transpose_2d(c, (tensor *)now.kernel,
                                       (tensor *)now.data, &w),
             f_transpose, "conv_transpose_2d of nothing");
    run_case(c, gguf_op_im2col(c, (tensor *)now.data, &w, GGUF_DTYPE_F32),
             f_im2col, "im2col of nothing");
    run_case(c, gguf_op_timestep_embedding(c, F32(0, 1, 1, 1), 4, 100),
             f_timestep, "timestep_embedding of nothing");
    refused(c, gguf_op_conv_2d(c, F32(3, 3, 4, 1), F32(9, 9, 5, 1), &w),
            GGUF_E_SHAPE, "conv", "channels", "[3, 3, 4]", "[9, 9, 5]");
    refused(c, gguf_op_conv_2d_dw(c, F32(3, 3, 1, 7), F32(9, 9, 5, 1), &w),
            GGUF_E_SHAPE, "channels");
    refused(c, gguf_op_conv_2d(c, F32(9, 3, 4, 1), F32(6, 9, 4, 1), &w),
            GGUF_E_SHAPE, "over 9 elements of dimension 0 does not fit");
    refused(c, gguf_op_conv_1d(c, F32(3, 2, 2, 2), F32(6, 2, 1, 1), 1, 0, 1),
            GGUF_E_SHAPE, "conv", "more than 3 dimensions", "[3, 2, 2, 2]");
    refused(c,
            gguf_op_conv_transpose_1d(c, F32(3, 2, 2, 1), F32(2, 2, 1, 1), 1,
                                      2, 1),
            GGUF_E_SHAPE, "conv_transpose", "a padding of 2 leaves nothing");
    refused(c, gguf_op_conv_1d(c, F32(3, 2, 2, 1), F32(6, 2, 1, 1), -1, 0, 1),
            GGUF_E_SHAPE, "stride -1");
    w.dilation[0] = INT32_MAX;
    w.pad[0] = INT32_MAX;
    refused(c, gguf_op_conv_2d(c, F32(9, 3, 4, 1), F32(6, 9, 4, 1), &w),
            GGUF_E_SHAPE, "does not fit");
    refused(
        c,
        gguf_op_pool_1d(c, F32(9, 3, 4, 1), (enum gguf_pool_kind)5, 1, 1, 0),
        GGUF_E_INVALID, "pooling 5");
    refused(c,
            gguf_op_im2col(c, F32(9, 3, 4, 1), &windows[0], GGUF_DTYPE_Q8_0),
            GGUF_E_TYPE, "im2col", "float");
    refused(c, gguf_op_timestep_embedding(c, F32(3, 1, 1, 1), 0, 100),
            GGUF_E_SHAPE, "timestep_embedding", "dimension 0");
#undef F32
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_2d();
    check_1d();
    check_columns();
    check_timesteps();
    check_edges();
    ops_end();
    return done_testing();
}
