/* op_elem.c - elementwise operations: rows through a function of the table */
#include "config.h"
#include "cpu/optab.h"
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

/* --- two sources ---------------------------------------------------------- */

/* Element by element; y may be a or b. p: the operation's parameters. */
typedef void binary_fn(float *y, const float *a, const float *b, size_t n,
                       const struct gg_vec_kern *k, const float *p);

/* A row of b as long as a's: repeated into tmp where it is shorter. */
static const float *repeated(const float *b, int64_t nb, float *tmp, int64_t n)
{
    if (nb == n)
        return b;
    if (b != tmp)
        memcpy(tmp, b, (size_t)nb * sizeof *tmp);
    for (int64_t i = nb; i < n; i++)
        tmp[i] = tmp[i - nb];
    return tmp;
}

static void binary(struct gguf_tensor *t, const struct gg_cpu_task *task,
                   binary_fn *fn)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    const int64_t n = t->ne[0];
    float *tmp_a = gg_row_tmp(task, n, N_TMP, TMP_A);
    float *tmp_b = gg_row_tmp(task, n, N_TMP, TMP_B);
    float *tmp_y = gg_row_tmp(task, n, N_TMP, TMP_OUT);
    float params[GG_LEN(t->op_params)];
    memcpy(params, t->op_params, sizeof params);
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos p = rows.p;
        const float *xa = gg_row_load(task->kern, a, gg_row(a, p), tmp_a, n);
        const float *xb =
            gg_row_load(task->kern, b, gg_row_mod(b, p), tmp_b, b->ne[0]);
        xb = repeated(xb, b->ne[0], tmp_b, n);
        float *y = gg_row_out(t, gg_row(t, p), tmp_y);
        fn(y, xa, xb, (size_t)n, &task->kern->vec, params);
        gg_row_store(task->kern, t, gg_row(t, p), y);
    }
}

#define RUN(name, walk)                                                       \
    static void name##_run(struct gguf_tensor *t,                             \
                           const struct gg_cpu_task *task)                    \
    {                                                                         \
        walk(t, task, name##_row);                                            \
    }                                                                         \
    GG_CPU_OP_ROWS(name, name##_run);
#define BINARY(name, body)                                                    \
    static void name##_row(float *y, const float *a, const float *b,          \
                           size_t n, const struct gg_vec_kern *k,             \
                           const float *p)                                    \
    {                                                                         \
        (void)k;                                                              \
        (void)p;                                                              \
        body;                                                                 \
    }                                                                         \
    RUN(name, binary)
#define PAIRS(expr)                                                           \
    for (size_t i = 0; i < n; i++) {                                          \
        float u = a[i], v = b[i];                                             \
        y[i] = (expr);                                                        \
    }

BINARY(add, k->add(y, a, b, n))
BINARY(sub, PAIRS(u - v))
BINARY(mul, k->mul(y, a, b, n))
BINARY(div, PAIRS(u / v))
BINARY(swiglu, k->swiglu(y, a, b, n))
BINARY(geglu, PAIRS(gelu1(u) * v))
BINARY(geglu_erf, PAIRS(gelu_erf1(u) * v))
BINARY(geglu_quick, PAIRS(swish1(u, 1.702f) * v))
BINARY(reglu, PAIRS(relu1(u) * v))
BINARY(swiglu_oai, PAIRS(swish1(u > p[1] ? p[1] : u, p[0]) *
                         (clamp1(v, -p[1], p[1]) + 1.0f)))

/* --- one source ----------------------------------------------------------- */

/* Element by element; y may be x. p: the operation's parameters. */
typedef void unary_fn(float *y, const float *x, size_t n,
                      const struct gg_vec_kern *v, const float *p);

static void unary(struct gguf_tensor *t, const struct gg_cpu_task *task,
                  unary_fn *fn)
{
    const struct gguf_tensor *a = t->src[0];
    const int64_t n = t->ne[0];
    float *tmp_a = gg_row_tmp(task, n, N_TMP, TMP_A);
    float *tmp_y = gg_row_tmp(task, n, N_TMP, TMP_OUT);
    float params[GG_LEN(t->op_params)];
    memcpy(params, t->op_params, sizeof params);
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos p = rows.p;
        const float *x = gg_row_load(task->kern, a, gg_row(a, p), tmp_a, n);
        float *y = gg_row_out(t, gg_row(t, p), tmp_y);
        fn(y, x, (size_t)n, &task->kern->vec, params);
        gg_row_store(task->kern, t, gg_row(t, p), y);
    }
}

#define UNARY(name, body)                                                     \
    static void name##_row(float *y, const float *v, size_t n,                \
                           const struct gg_vec_kern *k, const float *p)       \
    {                                                                         \
        (void)k;                                                              \
        (void)p;                                                              \
        body;                                                                 \
    }                                                                         \
    RUN(name, unary)
#define EACH(expr)                                                            \
    for (size_t i = 0; i < n; i++) {                                          \
        float x = v[i];                                                       \
        y[i] = (expr);                                                        \
    }

UNARY(scale, k->scale(y, v, n, p[0], 0.0f))
UNARY(silu, k->silu(y, v, n))
UNARY(gelu, EACH(gelu1(x)))
UNARY(gelu_erf, EACH(gelu_erf1(x)))
UNARY(gelu_quick, EACH(swish1(x, 1.702f)))
UNARY(relu, EACH(relu1(x)))
UNARY(sigmoid, EACH(1.0f / (1.0f + expf(-x))))
UNARY(tanh, EACH(tanhf(x)))
UNARY(relu_sqr, EACH(relu1(x) * relu1(x)))
UNARY(leaky_relu, EACH(x > 0.0f ? x : x * p[0]))
UNARY(elu, EACH(x > 0.0f ? x : expm1f(x)))
UNARY(softplus, EACH(softplus1(x)))
UNARY(neg, EACH(-x))
UNARY(abs, EACH(fabsf(x)))
UNARY(sqr, EACH((x)*x))
UNARY(sqrt, EACH(sqrtf(x)))
UNARY(exp, EACH(expf(x)))
UNARY(log, EACH(logf(x)))
UNARY(sin, EACH(sinf(x)))
UNARY(cos, EACH(cosf(x)))
UNARY(clamp, EACH(clamp1(x, p[0], p[1])))
UNARY(xielu, EACH(xielu1(x, p)))
