/* SPDX-License-Identifier: MIT */
/* check-elem.c - elementwise operations */
#include "config.h"
#include "tests/cpu/ops.h"

static double gelu(double x)
{
    return x / 2 *
           (1 + tanh(sqrt(2 / 3.14159265358979323846) *
                     (x + 0.044715 * x * x * x)));
}

FORMULA(add, 1, A + B)
FORMULA(sub, 1, A - B)
FORMULA(mul, 1, (A)*B)
FORMULA(div, 1, A / B)
FORMULA(swiglu, 6, A / (1 + exp(-A)) * B)
FORMULA(reglu, 1, fmax(A, 0) * B)
FORMULA(scale, 1, A * 0.37f)
FORMULA(silu, 5, A / (1 + exp(-A)))
FORMULA(gelu_quick, 8, A / (1 + exp(-1.702 * A)))
FORMULA(relu, 0, fmax(A, 0))
FORMULA(sigmoid, 4, 1 / (1 + exp(-A)))
FORMULA(tanh, 4, tanh(A))
FORMULA(copy, 1, A)

FORMULA(relu_sqr, 1, pow(fmax(A, 0), 2))
FORMULA(leaky_relu, 1, A > 0 ? A : A * 0.1f)
FORMULA(elu, 2, A > 0 ? A : expm1(A))
FORMULA(softplus, 4, log1p(exp(A)))
FORMULA(neg, 0, -A)
FORMULA(abs, 0, fabs(A))
FORMULA(sqr, 1, (A)*A)
FORMULA(sqrt, 1, sqrt(A))
FORMULA(exp, 2, exp(A))
FORMULA(log, 2, log(A))
FORMULA(sin, 2, sin(A))
FORMULA(cos, 2, cos(A))
FORMULA(clamp, 1, fmin(fmax(A, -0.5), 1.25))

/* 1 + tanh and 1 + erf cancel for negative x: the tolerance is relative to x.
 */
#define CANCELS(name, expr, part)                                             \
    static double f_##name(const tensor *t, int64_t i0, int64_t i1,           \
                           int64_t i2, int64_t i3, double *tol)               \
    {                                                                         \
        *tol = 4 * ulp(t, part);                                              \
        return expr;                                                          \
    }
CANCELS(gelu, gelu(A), A)
CANCELS(gelu_erf, A / 2 * (1 + erf(A / sqrt(2))), A)
CANCELS(geglu, gelu(A) * B, (A)*B)
CANCELS(geglu_erf, A / 2 * (1 + erf(A / sqrt(2))) * B, (A)*B)
FORMULA(geglu_quick, 8, A / (1 + exp(-1.702 * A)) * B)

/* Parameters of gpt-oss. */
#define OAI_ALPHA 1.702f
#define OAI_LIMIT 2.0f /* 7 in gpt-oss; 2 so that some values exceed it */

static double f_swiglu_oai(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                           int64_t i3, double *tol)
{
    double g = fmin(A, OAI_LIMIT);
    double u = fmax(-OAI_LIMIT, fmin(B, OAI_LIMIT));
    double act = g / (1 + exp(-(double)OAI_ALPHA * g));
    *tol = 8 * ulp(t, act * (fabs(u) + 1)); /* u + 1 cancels */
    return act * (u + 1);
}

static double f_xielu(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                      int64_t i3, double *tol)
{
    double x = A, beta = 0.5, p = log1p(exp(0.8f)), n = log1p(exp(-0.3f));
    n += beta;
    *tol = 4 * ulp(t, p * x * x + fabs(n * x) + fabs(beta * x));
    return x > 0 ? p * x * x + beta * x
                 : n * (expm1(fmin(x, -1e-6)) - x) + beta * x;
}

typedef tensor *unary_fn(ctx_t *, tensor *);
typedef tensor *binary_fn(ctx_t *, tensor *, tensor *);

static tensor *scale_037(ctx_t *c, tensor *a)
{
    return gguf_op_scale(c, a, 0.37f);
}

static tensor *leaky(ctx_t *c, tensor *a)
{
    return gguf_op_leaky_relu(c, a, 0.1f);
}

static tensor *clamp(ctx_t *c, tensor *a)
{
    return gguf_op_clamp(c, a, -0.5f, 1.25f);
}

/* Square root of the magnitude. */
static tensor *root(ctx_t *c, tensor *a)
{
    return gguf_op_sqrt(c, gguf_op_abs(c, a));
}

static tensor *logarithm(ctx_t *c, tensor *a)
{
    return gguf_op_log(c, gguf_op_exp(c, a));
}

static tensor *xielu(ctx_t *c, tensor *a)
{
    return gguf_op_xielu(c, a, -0.3f, 0.8f, 0.5f, -1e-6f);
}

static tensor *swiglu_oai(ctx_t *c, tensor *a, tensor *b)
{
    return gguf_op_swiglu_oai(c, a, b, OAI_ALPHA, OAI_LIMIT);
}

static const struct {
    const char *name;
    unary_fn *build;
    formula *f;
} unaries[] = {
    { "scale", scale_037, f_scale },
    { "silu", gguf_op_silu, f_silu },
    { "gelu", gguf_op_gelu, f_gelu },
    { "gelu_erf", gguf_op_gelu_erf, f_gelu_erf },
    { "gelu_quick", gguf_op_gelu_quick, f_gelu_quick },
    { "relu", gguf_op_relu, f_relu },
    { "sigmoid", gguf_op_sigmoid, f_sigmoid },
    { "tanh", gguf_op_tanh, f_tanh },
    { "dup", gguf_op_dup, f_copy },
    { "relu_sqr", gguf_op_relu_sqr, f_relu_sqr },
    { "leaky_relu", leaky, f_leaky_relu },
    { "elu", gguf_op_elu, f_elu },
    { "softplus", gguf_op_softplus, f_softplus },
    { "neg", gguf_op_neg, f_neg },
    { "abs", gguf_op_abs, f_abs },
    { "sqr", gguf_op_sqr, f_sqr },
    { "sqrt", root, f_sqrt },
    { "exp", gguf_op_exp, f_exp },
    { "log", logarithm, f_log },
    { "sin", gguf_op_sin, f_sin },
    { "cos", gguf_op_cos, f_cos },
    { "clamp", clamp, f_clamp },
    { "xielu", xielu, f_xielu },
};

static const struct {
    const char *name;
    binary_fn *build;
    formula *f;
    bool gated;
} binaries[] = {
    { "add", gguf_op_add, f_add, false },
    { "sub", gguf_op_sub, f_sub, false },
    { "mul", gguf_op_mul, f_mul, false },
    { "div", gguf_op_div, f_div, false },
    { "swiglu", gguf_op_swiglu, f_swiglu, true },
    { "geglu", gguf_op_geglu, f_geglu, true },
    { "geglu_erf", gguf_op_geglu_erf, f_geglu_erf, true },
    { "geglu_quick", gguf_op_geglu_quick, f_geglu_quick, true },
    { "reglu", gguf_op_reglu, f_reglu, true },
    { "swiglu_oai", swiglu_oai, f_swiglu_oai, true },
};

static void check_unary(void)
{
    for (size_t k = 0; k < sizeof unaries / sizeof *unaries; k++)
        for (int l = 0; l < N_LAYOUTS; l++)
            for (int d = 0; d < 3; d++)
                for (int s = 0; s < N_SHAPES; s++) {
                    const int64_t *n = shapes[s];
                    ctx_t *c = new_ctx();
                    tensor *a = source(c, float_types[d], (enum layout)l, n[0],
                                       n[1], n[2], n[3]);
                    run_case(c, unaries[k].build(c, a), unaries[k].f,
                             "%s %s %s shape %d", unaries[k].name,
                             layout_names[l],
                             gguf_dtype_find(float_types[d])->name, s);
                    gguf_ctx_destroy(c);
                }
}

static void check_binary(void)
{
    /* divisors of b's dimensions, to broadcast */
    static const int64_t shrink[][4] = {
        { 1, 1, 1, 1 }, { 1, 12, 1, 1 }, { 11, 1, 6, 2 }, { 33, 4, 3, 2 }
    };
    for (size_t k = 0; k < sizeof binaries / sizeof *binaries; k++)
        for (int la = 0; la < N_LAYOUTS; la++)
            for (int lb = 0; lb < N_LAYOUTS; lb++)
                for (int s = 0; s < (binaries[k].gated ? 1 : 4); s++) {
                    const int64_t *n = shapes[3];
                    uint32_t da = float_types[(la + lb) % 3];
                    uint32_t db = float_types[(la + 2 * lb + s) % 3];
                    ctx_t *c = new_ctx();
                    tensor *a =
                        source(c, da, (enum layout)la, n[0], n[1], n[2], n[3]);
                    tensor *b =
                        source(c, db, (enum layout)lb, n[0] / shrink[s][0],
                               n[1] / shrink[s][1], n[2] / shrink[s][2],
                               n[3] / shrink[s][3]);
                    run_case(c, binaries[k].build(c, a, b), binaries[k].f,
                             "%s %s %s, %s %s, %d", binaries[k].name,
                             layout_names[la], gguf_dtype_find(da)->name,
                             layout_names[lb], gguf_dtype_find(db)->name, s);
                    gguf_ctx_destroy(c);
                }
    ctx_t *c = new_ctx();
    tensor *a = source(c, GGUF_DTYPE_F32, PLAIN, 0, 3, 1, 1);
    tensor *b = source(c, GGUF_DTYPE_F32, PLAIN, 0, 1, 1, 1);
    run_case(c, gguf_op_add(c, a, b), f_add, "add of nothing");
    gguf_ctx_destroy(c);
}

static void check_refused(void)
{
    ctx_t *c = new_ctx();
#define F32(n0, n1) gguf_tensor_create_2d(c, GGUF_DTYPE_F32, n0, n1)
    refused(c, gguf_op_swiglu_oai(c, F32(4, 2), F32(4, 2), 1, -1),
            GGUF_E_INVALID, "swiglu_oai", "-1");
    refused(c, gguf_op_geglu_quick(c, F32(4, 2), F32(4, 1)), GGUF_E_SHAPE,
            "geglu_quick", "[4, 2]", "[4]");
    refused(c, gguf_op_clamp(c, F32(4, 2), 1, 0), GGUF_E_INVALID, "clamp");
    refused(c,
            gguf_op_xielu(c, gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 3), 1, 1,
                          1, 0),
            GGUF_E_TYPE, "xielu", "I32 [3]");
    refused(c, gguf_op_add(c, F32(4, 2), F32(3, 2)), GGUF_E_SHAPE, "add",
            "[4, 2]", "[3, 2]");
#undef F32
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_unary();
    check_binary();
    check_refused();
    ops_end();
    return done_testing();
}
