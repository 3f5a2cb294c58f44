/* SPDX-License-Identifier: MIT */
/* compute_elem.c - elementwise operations, by functions on rows */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

/* Scratch of these operations: two sources and the result. */
enum { TMP_A, TMP_B, TMP_OUT, N_TMP = GG_CPU_TMP_ROWS };

size_t gg_cpu_elem_work(const struct gguf_tensor *t, unsigned nth,
                        const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(t->ne[0], N_TMP, nth);
}

/* Floats in, floats out; index tensors are sources that are not floats. */
bool gg_cpu_elem_supports(const struct gguf_tensor *t,
                          const struct gg_kern *kern)
{
    for (int i = 0; i < GGUF_TENSOR_SRC; i++)
        if (t->src[i] && !gg_row_can_load(kern, t->src[i]))
            return false;
    return gg_row_can_store(kern, t);
}

/* --- functions of one element --------------------------------------------- */

static float gelu1(float x)
{
    const float c = 0.797884560802865356f; /* sqrt(2 / pi) */
    return 0.5f * x * (1.0f + tanhf(c * (x + 0.044715f * x * x * x)));
}

static float gelu_erf1(float x)
{
    return 0.5f * x * (1.0f + erff(x * 0.707106781186547524f));
}

/* x / (1 + exp(-alpha x)). */
static float swish1(float x, float alpha)
{
    return x / (1.0f + expf(-alpha * x));
}

/* NaN stays NaN. */
static float relu1(float x)
{
    return x < 0.0f ? 0.0f : x;
}

static float clamp1(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static float softplus1(float x)
{
    return x > 0.0f ? x + log1pf(expf(-x)) : log1pf(expf(x));
}

/* p: the numbers before the curves' constraints. */
static float xielu1(float x, const float *p)
{
    const float beta = p[2], eps = p[3];
    if (x > 0.0f)
        return softplus1(p[1]) * x * x + beta * x;
    return (expm1f(x < eps ? x : eps) - x) * (beta + softplus1(p[0])) +
           beta * x;
}

/* --- rows ----------------------------------------------------------------- */

/* Element by element; y may be a or b, which is NULL of operations of one
 * source. p: the operation's parameters. */
typedef void row_fn(float *y, const float *a, const float *b, size_t n,
                    const struct gg_vec_kern *k, const float *p);

/* A row of b as long as a's: repeated into tmp where it is shorter. */
static const float *repeat_row(const float *b, int64_t nb, float *tmp,
                               int64_t n)
{
    if (nb == n)
        return b;
    if (b != tmp)
        memcpy(tmp, b, (size_t)nb * sizeof *tmp);
    /* copies double each time, in whole copies of b while they fit */
    for (int64_t i = nb, k; i < n; i += k) {
        k = GG_MIN(i, n - i);
        memcpy(tmp + i, tmp, (size_t)k * sizeof *tmp);
    }
    return tmp;
}

static void each_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                     row_fn *fn)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    const int64_t n = t->ne[0];
    float *tmp_a = gg_row_tmp(task, n, N_TMP, TMP_A);
    float *tmp_b = gg_row_tmp(task, n, N_TMP, TMP_B);
    float *tmp_y = gg_row_tmp(task, n, N_TMP, TMP_OUT);
    float params[GGUF_TENSOR_PARAMS / sizeof(float)];
    memcpy(params, t->op_params, sizeof params);
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos p = rows.p;
        const float *xa = gg_row_load(task->kern, a, gg_row(a, p), tmp_a, n);
        const float *xb = NULL;
        if (b) {
            xb = gg_row_load(task->kern, b, gg_row_mod(b, p), tmp_b, b->ne[0]);
            xb = repeat_row(xb, b->ne[0], tmp_b, n);
        }
        float *y = gg_row_out(t, gg_row(t, p), tmp_y);
        fn(y, xa, xb, (size_t)n, &task->kern->vec, params);
        gg_row_store(task->kern, t, gg_row(t, p), y);
    }
}

#define ROW(name, body)                                                       \
    static void name##_row(float *y, const float *a, const float *b,          \
                           size_t n, const struct gg_vec_kern *k,             \
                           const float *p)                                    \
    {                                                                         \
        (void)b;                                                              \
        (void)k;                                                              \
        (void)p;                                                              \
        body;                                                                 \
    }                                                                         \
    GG_CPU_OP_EACH_ROW(name);

/* --- two sources ---------------------------------------------------------- */

#define PAIRS(expr)                                                           \
    for (size_t i = 0; i < n; i++) {                                          \
        float u = a[i], v = b[i];                                             \
        y[i] = (expr);                                                        \
    }

ROW(add, k->add(y, a, b, n))
ROW(sub, PAIRS(u - v))
ROW(mul, k->mul(y, a, b, n))
ROW(div, PAIRS(u / v))
ROW(swiglu, k->swiglu(y, a, b, n))
ROW(geglu, PAIRS(gelu1(u) * v))
ROW(geglu_erf, PAIRS(gelu_erf1(u) * v))
ROW(geglu_quick, PAIRS(swish1(u, 1.702f) * v))
ROW(reglu, PAIRS(relu1(u) * v))
ROW(swiglu_oai,
    PAIRS(swish1(u > p[1] ? p[1] : u, p[0]) * (clamp1(v, -p[1], p[1]) + 1.0f)))

/* --- one source ----------------------------------------------------------- */

#define EACH(expr)                                                            \
    for (size_t i = 0; i < n; i++) {                                          \
        float x = a[i];                                                       \
        y[i] = (expr);                                                        \
    }

ROW(scale, k->scale(y, a, n, p[0], 0.0f))
ROW(silu, k->silu(y, a, n))
ROW(gelu, EACH(gelu1(x)))
ROW(gelu_erf, EACH(gelu_erf1(x)))
ROW(gelu_quick, EACH(swish1(x, 1.702f)))
ROW(relu, EACH(relu1(x)))
ROW(sigmoid, EACH(1.0f / (1.0f + expf(-x))))
ROW(tanh, EACH(tanhf(x)))
ROW(relu_sqr, EACH(relu1(x) * relu1(x)))
ROW(leaky_relu, EACH(x > 0.0f ? x : x * p[0]))
ROW(elu, EACH(x > 0.0f ? x : expm1f(x)))
ROW(softplus, EACH(softplus1(x)))
ROW(neg, EACH(-x))
ROW(abs, EACH(fabsf(x)))
ROW(sqr, EACH((x)*x))
ROW(sqrt, EACH(sqrtf(x)))
ROW(exp, EACH(expf(x)))
ROW(log, EACH(logf(x)))
ROW(sin, EACH(sinf(x)))
ROW(cos, EACH(cosf(x)))
ROW(clamp, EACH(clamp1(x, p[0], p[1])))
ROW(xielu, EACH(xielu1(x, p)))
