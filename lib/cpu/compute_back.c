/* SPDX-License-Identifier: MIT */
/* compute_back.c - gradients through functions of elements and norms of rows
 *
 * Derivatives are computed in double and rounded once.
 */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

/* --- derivatives ---------------------------------------------------------- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Derivative of x * sigmoid(alpha x). */
static double swish_slope(double x, double alpha)
{
    const double s = sigmoid(alpha * x);
    return s * (1 + alpha * x * (1 - s));
}

static double gelu_slope(double x)
{
    const double c = 0.79788456080286535588, k = 0.044715; /* sqrt(2 / pi) */
    const double t = tanh(c * (x + k * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * k * x * x);
}

static double gelu_erf_slope(double x)
{
    return 0.5 * (1 + erf(x * 0.70710678118654752440)) +
           x * 0.39894228040143267794 * exp(-0.5 * x * x);
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double xielu_slope(double x, const float *p)
{
    const double beta = (double)p[2], eps = (double)p[3];
    if (x > 0)
        return 2 * softplus((double)p[1]) * x + beta;
    const double rise = x < eps ? exp(x) : 0;
    return (rise - 1) * (beta + softplus((double)p[0])) + beta;
}

/* Multiply dy by the derivative at each x; y may be x or dy. */
typedef void slope_fn(float *y, const float *x, const float *dy, size_t n,
                      const float *p);

#define SLOPE(name, expr)                                                     \
    static void name##_slopes(float *y, const float *in, const float *dy,     \
                              size_t n, const float *p)                       \
    {                                                                         \
        (void)p;                                                              \
        for (size_t i = 0; i < n; i++) {                                      \
            const double x = (double)in[i];                                   \
            (void)x;                                                          \
            y[i] = (float)((double)dy[i] * (expr));                           \
        }                                                                     \
    }

SLOPE(scale, (double)p[0])
SLOPE(silu, swish_slope(x, 1))
SLOPE(gelu, gelu_slope(x))
SLOPE(gelu_erf, gelu_erf_slope(x))
SLOPE(gelu_quick, swish_slope(x, 1.702))
SLOPE(relu, x > 0 ? 1 : 0)
SLOPE(sigmoid, sigmoid(x) * (1 - sigmoid(x)))
SLOPE(tanh, 1 - tanh(x) * tanh(x))
SLOPE(relu_sqr, x > 0 ? 2 * x : 0)
SLOPE(leaky_relu, x > 0 ? 1 : (double)p[0])
SLOPE(elu, x > 0 ? 1 : exp(x))
SLOPE(softplus, sigmoid(x))
SLOPE(neg, -1)
SLOPE(abs, x > 0 ? 1 : x < 0 ? -1 : 0)
SLOPE(sqr, 2 * x)
SLOPE(sqrt, 0.5 / sqrt(x))
SLOPE(exp, exp(x))
SLOPE(log, 1 / x)
SLOPE(sin, cos(x))
SLOPE(cos, -sin(x))
SLOPE(clamp, x<(double)p[0] || x>(double) p[1] ? 0 : 1)
SLOPE(xielu, xielu_slope(x, p))

/* In the order of the operations from GGUF_OP_SCALE on. */
static slope_fn *const slopes[] = {
    scale_slopes,      silu_slopes,       gelu_slopes,    gelu_erf_slopes,
    gelu_quick_slopes, relu_slopes,       sigmoid_slopes, tanh_slopes,
    relu_sqr_slopes,   leaky_relu_slopes, elu_slopes,     softplus_slopes,
    neg_slopes,        abs_slopes,        sqr_slopes,     sqrt_slopes,
    exp_slopes,        log_slopes,        sin_slopes,     cos_slopes,
    clamp_slopes,      xielu_slopes,
};
_Static_assert(sizeof slopes / sizeof *slopes ==
                   GGUF_OP_XIELU - GGUF_OP_SCALE + 1,
               "one row for each function of one element");

/* --- norms ---------------------------------------------------------------- */

/* y = (x - mean) / sqrt(var + eps); without mean for the RMS norm. With u = y
 * as far as it is computed in double,
 *
 *   dx = (dy - mean(dy) - u mean(u dy)) / sqrt(var + eps) */
static void norm_slopes(float *y, const float *x, const float *dy, size_t n,
                        double eps, bool centred)
{
    double mean = 0, var = 0, sum = 0, dot = 0;
    for (size_t i = 0; centred && i < n; i++)
        mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        var += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double scale = 1 / sqrt(var / (double)n + eps);
    for (size_t i = 0; i < n; i++) {
        sum += (double)dy[i];
        dot += (double)dy[i] * ((double)x[i] - mean) * scale;
    }
    sum = centred ? sum / (double)n : 0;
    dot /= (double)n;
    for (size_t i = 0; i < n; i++) {
        const double u = ((double)x[i] - mean) * scale;
        y[i] = (float)(((double)dy[i] - sum - u * dot) * scale);
    }
}

/* y = x / max(|x|, eps): below eps a multiple of x. */
static void l2_slopes(float *y, const float *x, const float *dy, size_t n,
                      double eps)
{
    double sum = 0, dot = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
        dot += (double)x[i] * (double)dy[i];
    }
    const double scale = 1 / fmax(sqrt(sum), eps);
    dot = sqrt(sum) > eps ? dot * scale * scale : 0;
    for (size_t i = 0; i < n; i++)
        y[i] = (float)(((double)dy[i] - (double)x[i] * dot) * scale);
}

/* --- rows ----------------------------------------------------------------- */

enum { TMP_X, TMP_DY, TMP_OUT, N_TMP = GG_CPU_TMP_ROWS };

static void back_row(const struct gguf_unary_back_params *p, float *y,
                     const float *x, const float *dy, size_t n)
{
    const double eps = (double)p->param[0];
    switch (p->op) {
    case GGUF_OP_NORM: norm_slopes(y, x, dy, n, eps, true); break;
    case GGUF_OP_RMS_NORM: norm_slopes(y, x, dy, n, eps, false); break;
    case GGUF_OP_L2_NORM: l2_slopes(y, x, dy, n, eps); break;
    default: slopes[p->op - GGUF_OP_SCALE](y, x, dy, n, p->param);
    }
}

static void compute_back(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *x = t->src[0], *dy = t->src[1];
    const int64_t n = t->ne[0];
    float *tmp_x = gg_row_tmp(task, n, N_TMP, TMP_X);
    float *tmp_dy = gg_row_tmp(task, n, N_TMP, TMP_DY);
    float *tmp_y = gg_row_tmp(task, n, N_TMP, TMP_OUT);
    struct gguf_unary_back_params p;
    memcpy(&p, t->op_params, sizeof p);
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos at = rows.p;
        float *y = gg_row_out(t, gg_row(t, at), tmp_y);
        back_row(&p, y, gg_row_load(task->kern, x, gg_row(x, at), tmp_x, n),
                 gg_row_load(task->kern, dy, gg_row(dy, at), tmp_dy, n),
                 (size_t)n);
        gg_row_store(task->kern, t, gg_row(t, at), y);
    }
}

GG_CPU_OP_ROWS(unary_back, compute_back);
GG_CPU_OP_ROWS(norm_back, compute_back);
