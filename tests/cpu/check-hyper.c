/* SPDX-License-Identifier: MIT */
/* check-hyper.c - hyper-connections: by their formulas in double precision,
 * and by their properties: sums of 1, and streams combined by out_prod */
#include "config.h"
#include "tests/cpu/ops.h"

enum { Z, BASE, SCALE };

static struct gguf_hyper_params params_of(const tensor *t)
{
    struct gguf_hyper_params p;
    memcpy(&p, t->op_params, sizeof p);
    return p;
}

/* Element i of z after scale and base. */
static double moved_value(const tensor *t, int64_t i, int which, int64_t i1,
                          int64_t i2, int64_t i3)
{
    return at(t->src[Z], i, i1, i2, i3) * at(t->src[SCALE], which, 0, 0, 0) +
           at(t->src[BASE], i, 0, 0, 0);
}

/* c[dst][src] of the row that i0 = 0 began. */
static double c[GGUF_HYPER_MAX][GGUF_HYPER_MAX];

static void over_src(int n, double eps)
{
    for (int dst = 0; dst < n; dst++) {
        double sum = 0;
        for (int src = 0; src < n; src++)
            sum += c[dst][src];
        for (int src = 0; src < n; src++)
            c[dst][src] /= sum + eps;
    }
}

static void over_dst(int n, double eps)
{
    for (int src = 0; src < n; src++) {
        double sum = 0;
        for (int dst = 0; dst < n; dst++)
            sum += c[dst][src];
        for (int dst = 0; dst < n; dst++)
            c[dst][src] /= sum + eps;
    }
}

static void make_c(const tensor *t, int64_t i1, int64_t i2, int64_t i3)
{
    const struct gguf_hyper_params p = params_of(t);
    const double eps = (double)p.eps;
    for (int src = 0; src < p.n; src++) {
        double sum = 0;
        for (int dst = 0; dst < p.n; dst++)
            sum += c[dst][src] =
                exp(moved_value(t, 2 * p.n + dst + p.n * src, 2, i1, i2, i3));
        for (int dst = 0; dst < p.n; dst++)
            c[dst][src] = c[dst][src] / sum + eps;
    }
    over_src(p.n, eps);
    for (int k = 1; k < p.n_iter; k++) {
        over_dst(p.n, eps);
        over_src(p.n, eps);
    }
}

static double f_hyper(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                      int64_t i3, double *tol)
{
    const struct gguf_hyper_params p = params_of(t);
    double v;
    if (i0 == 0 && t->ne[0] > p.n)
        make_c(t, i1, i2, i3);
    if (i0 < p.n)
        v = 1 / (1 + exp(-moved_value(t, i0, 0, i1, i2, i3))) + (double)p.eps;
    else if (i0 < 2 * p.n)
        v = 2 / (1 + exp(-moved_value(t, i0, 1, i1, i2, i3)));
    else
        v = c[(i0 - 2 * p.n) % p.n][(i0 - 2 * p.n) / p.n];
    *tol = 1.01 * ulp(t, v);
    return v;
}

static void check_rows(void)
{
    static const int32_t streams[] = { 1, 2, 4, 7, 64 };
    static const int32_t iterations[] = { 0, 1, 2, 3, 20 };
    for (size_t i = 0; i < GG_LEN(streams); i++)
        for (size_t k = 0; k < GG_LEN(iterations); k++) {
            const int32_t n = streams[i];
            const int64_t all = (2 + (int64_t)n) * n;
            const enum layout layout = (enum layout)(k % N_LAYOUTS);
            const uint32_t type = float_types[(i + k) % N_FLOATS];
            const float eps = k % 2 ? 1e-6f : 1e-2f;
            ctx_t *x = new_ctx();
            tensor *z = source(x, type, layout, all, 5, 3, 2);
            tensor *b = source(x, GGUF_DTYPE_F32, PLAIN, all, 1, 1, 1);
            tensor *s = source(x, GGUF_DTYPE_F32, PLAIN, 3, 1, 1, 1);
            run_case(x, gguf_op_hyper(x, z, b, s, n, iterations[k], eps),
                     f_hyper, "hyper of %d streams, %d iterations, %s", (int)n,
                     (int)iterations[k], layout_names[layout]);
            if (n > 1) { /* a single stream has no other case */
                z = source(x, type, layout, n, 40, 1, 1);
                b = source(x, GGUF_DTYPE_F32, PLAIN, n, 1, 1, 1);
                s = source(x, GGUF_DTYPE_F32, PLAIN, 1, 1, 1, 1);
                run_case(x, gguf_op_hyper(x, z, b, s, n, 3, eps), f_hyper,
                         "hyper of %d streams, the first alone", (int)n);
            }
            gguf_ctx_destroy(x);
        }
}

/* Rows and columns of c have sums near 1, nearer with more iterations. */
static void check_sums(void)
{
    enum { N = 4, ALL = (2 + N) * N };
    double worst[2] = { 0, 0 };
    for (int k = 0; k < 2; k++) {
        ctx_t *x = new_ctx();
        tensor *z = source(x, GGUF_DTYPE_F32, PLAIN, ALL, 30, 1, 1);
        tensor *b = source(x, GGUF_DTYPE_F32, PLAIN, ALL, 1, 1, 1);
        tensor *s = source(x, GGUF_DTYPE_F32, PLAIN, 3, 1, 1, 1);
        tensor *y = gguf_op_hyper(x, z, b, s, N, k ? 400 : 1, 0);
        struct gguf_graph *g = gguf_graph_create(x, 8);
        gguf_graph_add(g, y);
        if (gguf_backend_compute(ops_backends[0], g, NULL) != GGUF_OK)
            worst[1] = 9;
        for (int64_t r = 0; r < 30; r++)
            for (int i = 0; i < N; i++) {
                double col = 0;
                for (int j = 0; j < N; j++)
                    col += at(y, 2 * N + j + N * i, r, 0, 0);
                worst[k] = fmax(worst[k], fabs(col - 1));
            }
        gguf_ctx_destroy(x);
    }
    ok(worst[0] > 0.1 && worst[1] < 1e-3,
       "columns add to 1 after many iterations: %.2g, %.2g", worst[0],
       worst[1]);
}

static void check_refused(void)
{
    ctx_t *x = new_ctx();
#define F32(n0, n1) gguf_tensor_create_2d(x, GGUF_DTYPE_F32, n0, n1)
    refused(x, gguf_op_hyper(x, F32(23, 2), F32(23, 1), F32(3, 1), 4, 3, 0),
            GGUF_E_SHAPE, "hyper", "4 or 24 elements", "[23, 2]");
    refused(x, gguf_op_hyper(x, F32(24, 2), F32(23, 1), F32(3, 1), 4, 3, 0),
            GGUF_E_SHAPE, "base must have 24");
    refused(x, gguf_op_hyper(x, F32(24, 2), F32(24, 2), F32(3, 1), 4, 3, 0),
            GGUF_E_SHAPE, "base must have 24");
    refused(x, gguf_op_hyper(x, F32(24, 2), F32(24, 1), F32(1, 1), 4, 3, 0),
            GGUF_E_SHAPE, "scale 3");
    refused(x, gguf_op_hyper(x, F32(4, 2), F32(4, 1), F32(3, 1), 4, 3, 0),
            GGUF_E_SHAPE, "scale 1");
    refused(x, gguf_op_hyper(x, F32(0, 2), F32(0, 1), F32(3, 1), 0, 3, 0),
            GGUF_E_INVALID, "0 streams");
    refused(x, gguf_op_hyper(x, F32(65, 2), F32(65, 1), F32(1, 1), 65, 3, 0),
            GGUF_E_INVALID, "65 streams");
    refused(x, gguf_op_hyper(x, F32(4, 2), F32(4, 1), F32(1, 1), 4, 3, -1),
            GGUF_E_INVALID, "epsilon -1");
    refused(x, gguf_op_hyper(x, F32(4, 2), F32(4, 1), F32(1, 1), 4, -1, 0),
            GGUF_E_INVALID, "-1 iterations");
    refused(x,
            gguf_op_hyper(x, F32(4, 2),
                          gguf_tensor_create_1d(x, GGUF_DTYPE_F16, 4),
                          F32(1, 1), 4, 3, 0),
            GGUF_E_TYPE, "base and scale must be f32");
#undef F32
    gguf_ctx_destroy(x);
}

int main(void)
{
    ops_begin();
    check_rows();
    check_sums();
    check_refused();
    ops_end();
    return done_testing();
}
