/* check-ops.c - each operation of the CPU backend against a plain loop
 *
 * A case builds one node over sources of some shapes, types and layouts. The
 * result is compared with a formula in double that reads the sources element
 * by element, and its bytes must be the same for 1 to 8 threads.
 */
#include "config.h"
#include "gguf/cpu.h"
#include "kern/kern.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>

typedef struct gguf_tensor tensor;
typedef struct gguf_ctx ctx_t;

static const unsigned threads[] = { 1, 2, 3, 8 };
enum { N_TEAMS = sizeof threads / sizeof *threads };
static struct gguf_pool *pools[N_TEAMS];
static struct gguf_backend *backends[N_TEAMS];
static struct gg_kern kern;
static double worst; /* error over tolerance, of the case */

/* --- sources -------------------------------------------------------------- */

enum layout {
    PLAIN,      /* contiguous */
    PADDED,     /* rows longer than used, begin inside */
    SWAPPED,    /* dimensions 1 and 2 exchanged: rows contiguous */
    TRANSPOSED, /* elements of a row apart */
    N_LAYOUTS
};
static const char *const layout_names[] = { "plain", "padded", "swapped",
                                            "transposed" };

static void fill(tensor *t)
{
    int64_t n = gguf_tensor_n_elements(t);
    int i = gg_dtype_index(t->dtype);
    int64_t ne0 = t->ne[0];
    float *row = malloc(sizeof *row * (size_t)(ne0 + 1));
    if (t->dtype == GGUF_DTYPE_I32) {
        for (int64_t k = 0; k < n; k++)
            ((int32_t *)t->data)[k] = (int32_t)rnd_below(1000);
    } else {
        for (int64_t r = 0; ne0 && r < n / ne0; r++) {
            for (int64_t k = 0; k < ne0; k++)
                row[k] = 3 * rnd_f32();
            kern.codec[i].encode(row, (char *)t->data + r * t->nb[1], 1,
                                 (size_t)ne0, NULL);
        }
    }
    free(row);
}

static tensor *source(ctx_t *c, uint32_t dtype, enum layout layout, int64_t n0,
                      int64_t n1, int64_t n2, int64_t n3)
{
    tensor *t;
    int64_t pad = gguf_dtype_find(dtype)->block_len;
    switch (layout) {
    case PADDED:
        t = gguf_tensor_4d(c, dtype, n0 + 2 * pad, n1 + 1, n2, n3);
        fill(t);
        return gguf_op_view_4d(c, t, n0, n1, n2, n3, t->nb[1], t->nb[2],
                               t->nb[3], (uint64_t)t->nb[0]);
    case SWAPPED:
        t = gguf_tensor_4d(c, dtype, n0, n2, n1, n3);
        fill(t);
        return gguf_op_permute(c, t, 0, 2, 1, 3);
    case TRANSPOSED:
        t = gguf_tensor_4d(c, dtype, n1, n0, n2, n3);
        fill(t);
        return gguf_op_transpose(c, t);
    default:
        t = gguf_tensor_4d(c, dtype, n0, n1, n2, n3);
        fill(t);
        return t;
    }
}

/* Element of any type, as a double. */
static double at(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                 int64_t i3)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    const char *p = (const char *)t->data + i1 * t->nb[1] + i2 * t->nb[2] +
                    i3 * t->nb[3];
    if (t->dtype == GGUF_DTYPE_I32) {
        int32_t v;
        memcpy(&v, p + i0 * t->nb[0], sizeof v);
        return v;
    }
    float block[256];
    kern.codec[gg_dtype_index(t->dtype)].decode(
        p + i0 / info->block_len * t->nb[0], block, info->block_len);
    return block[i0 % info->block_len];
}

/* --- running -------------------------------------------------------------- */

typedef double formula(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tolerance);

/* Everything is restored before each team runs: operations may write into
 * their sources. */
static void run_case(ctx_t *c, tensor *t, formula *f, const char *name)
{
    struct gguf_error err;
    tensor *root = t && t->view_src ? t->view_src : t;
    struct gguf_graph *g = gguf_graph_create(c, 32);
    if (gguf_graph_finish(c, g, t, &err) != GGUF_OK) {
        ok(false, "%s: %s", name, err.message);
        return;
    }
    size_t size = (size_t)gguf_tensor_size(root);
    char *before = malloc(size + 1), *first = malloc(size + 1);
    memcpy(before, root->data, size);
    bool same = true;
    enum gguf_status st = GGUF_OK;
    for (int k = 0; k < N_TEAMS && st == GGUF_OK; k++) {
        memcpy(root->data, before, size);
        st = gguf_backend_compute(backends[k], g, &err);
        if (!k)
            memcpy(first, root->data, size);
        same = same && !memcmp(first, root->data, size);
    }
    if (st != GGUF_OK) {
        ok(false, "%s: %s", name, err.message);
    } else {
        worst = 0;
        double tol = 0;
        for (int64_t i3 = 0; i3 < t->ne[3]; i3++)
            for (int64_t i2 = 0; i2 < t->ne[2]; i2++)
                for (int64_t i1 = 0; i1 < t->ne[1]; i1++)
                    for (int64_t i0 = 0; i0 < t->ne[0]; i0++) {
                        double want = f(t, i0, i1, i2, i3, &tol);
                        double d = fabs(at(t, i0, i1, i2, i3) - want);
                        if (!(d <= tol))
                            worst = fmax(worst, d / (tol ? tol : 1e-300));
                    }
        if (worst || !same)
            printf("# %s: %g of the tolerance, %s bits\n", name, worst,
                   same ? "equal" : "different");
        ok(!worst && same, "%s", name);
    }
    free(before);
    free(first);
}

static ctx_t *new_ctx(void)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    ctx_t *c;
    p.mem_size = 16 << 20;
    if (gguf_ctx_create(&c, &p, NULL) != GGUF_OK)
        exit(99);
    return c;
}

/* A unit in the last place of a float (or half) of that size. */
static double ulp(const tensor *t, double v)
{
    double e = t->dtype == GGUF_DTYPE_F16    ? 0x1p-10
               : t->dtype == GGUF_DTYPE_BF16 ? 0x1p-7
                                             : 0x1p-23;
    return e * fabs(v) + (t->dtype == GGUF_DTYPE_F16 ? 0x1p-24 : 1e-38);
}

/* --- elementwise ---------------------------------------------------------- */

static double src(const tensor *t, int k, int64_t i0, int64_t i1, int64_t i2,
                  int64_t i3)
{
    const tensor *s = t->src[k];
    return at(s, i0 % s->ne[0], i1 % s->ne[1], i2 % s->ne[2], i3 % s->ne[3]);
}
#define A src(t, 0, i0, i1, i2, i3)
#define B src(t, 1, i0, i1, i2, i3)

static double gelu(double x)
{
    return x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) *
                             (x + 0.044715 * x * x * x)));
}

/* Tolerance: ulps of the result, and of the largest part of a sum. */
#define FORMULA(name, ulps, expr)                                             \
    static double f_##name(const tensor *t, int64_t i0, int64_t i1,           \
                           int64_t i2, int64_t i3, double *tol)               \
    {                                                                         \
        double v = (expr);                                                    \
        *tol = (ulps) * ulp(t, v);                                            \
        return v;                                                             \
    }
FORMULA(add, 1, A + B)
FORMULA(sub, 1, A - B)
FORMULA(mul, 1, A * B)
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
FORMULA(sqr, 1, A * A)
FORMULA(sqrt, 1, sqrt(A))
FORMULA(exp, 2, exp(A))
FORMULA(log, 2, log(A))
FORMULA(sin, 2, sin(A))
FORMULA(cos, 2, cos(A))
FORMULA(clamp, 1, fmin(fmax(A, -0.5), 1.25))

/* 1 + tanh and 1 + erf cancel for negative x: relative to x. */
#define CANCELS(name, expr, part)                                             \
    static double f_##name(const tensor *t, int64_t i0, int64_t i1,           \
                           int64_t i2, int64_t i3, double *tol)               \
    {                                                                         \
        *tol = 4 * ulp(t, part);                                              \
        return expr;                                                          \
    }
CANCELS(gelu, gelu(A), A)
CANCELS(gelu_erf, A / 2 * (1 + erf(A / sqrt(2))), A)
CANCELS(geglu, gelu(A) * B, A * B)

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

/* Of what is not negative. */
static tensor *root(ctx_t *c, tensor *a)
{
    return gguf_op_sqrt(c, gguf_op_abs(c, a));
}

static tensor *logarithm(ctx_t *c, tensor *a)
{
    return gguf_op_log(c, gguf_op_exp(c, a));
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
    { "reglu", gguf_op_reglu, f_reglu, true },
};

static const uint32_t float_types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16,
                                        GGUF_DTYPE_BF16 };
static const int64_t shapes[][4] = {
    { 1, 1, 1, 1 }, { 7, 1, 1, 1 },  { 64, 5, 1, 1 },
    { 33, 4, 3, 2 }, { 0, 3, 1, 1 }, { 130, 40, 1, 1 },
    { 5, 0, 2, 1 },
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void check_unary(void)
{
    char name[200];
    for (size_t k = 0; k < sizeof unaries / sizeof *unaries; k++)
        for (int l = 0; l < N_LAYOUTS; l++)
            for (int d = 0; d < 3; d++)
                for (int s = 0; s < N_SHAPES; s++) {
                    const int64_t *n = shapes[s];
                    ctx_t *c = new_ctx();
                    tensor *a = source(c, float_types[d], (enum layout)l, n[0],
                                       n[1], n[2], n[3]);
                    snprintf(name, sizeof name, "%s %s %s shape %d",
                             unaries[k].name, layout_names[l],
                             gguf_dtype_find(float_types[d])->name, s);
                    run_case(c, unaries[k].build(c, a), unaries[k].f, name);
                    gguf_ctx_destroy(c);
                }
}

static void check_binary(void)
{
    /* what dimensions of b are divided by */
    static const int64_t shrink[][4] = {
        { 1, 1, 1, 1 }, { 1, 4, 1, 1 }, { 11, 1, 3, 2 }, { 33, 4, 3, 2 }
    };
    char name[200];
    for (size_t k = 0; k < sizeof binaries / sizeof *binaries; k++)
        for (int la = 0; la < N_LAYOUTS; la++)
            for (int lb = 0; lb < N_LAYOUTS; lb++)
                for (int s = 0; s < (binaries[k].gated ? 1 : 4); s++) {
                    const int64_t *n = shapes[3];
                    uint32_t da = float_types[(la + lb) % 3];
                    uint32_t db = float_types[(la + 2 * lb + s) % 3];
                    ctx_t *c = new_ctx();
                    tensor *a = source(c, da, (enum layout)la, n[0], n[1],
                                       n[2], n[3]);
                    tensor *b = source(c, db, (enum layout)lb,
                                       n[0] / shrink[s][0],
                                       n[1] / shrink[s][1],
                                       n[2] / shrink[s][2],
                                       n[3] / shrink[s][3]);
                    snprintf(name, sizeof name, "%s %s %s, %s %s, %d",
                             binaries[k].name, layout_names[la],
                             gguf_dtype_find(da)->name, layout_names[lb],
                             gguf_dtype_find(db)->name, s);
                    run_case(c, binaries[k].build(c, a, b), binaries[k].f,
                             name);
                    gguf_ctx_destroy(c);
                }
    ctx_t *c = new_ctx();
    tensor *a = source(c, GGUF_DTYPE_F32, PLAIN, 0, 3, 1, 1);
    tensor *b = source(c, GGUF_DTYPE_F32, PLAIN, 0, 1, 1, 1);
    run_case(c, gguf_op_add(c, a, b), f_add, "add of nothing");
    gguf_ctx_destroy(c);
}

/* --- copies --------------------------------------------------------------- */

/* Element number i of a tensor, in order. */
static double linear(const tensor *t, int64_t i)
{
    int64_t a = t->ne[0], b = a * t->ne[1], d = b * t->ne[2];
    return at(t, i % a, i % b / a, i % d / b, i / d);
}

static double f_cpy(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                    int64_t i3, double *tol)
{
    int64_t i = i0 + t->ne[0] * (i1 + t->ne[1] * (i2 + t->ne[2] * i3));
    double v = linear(t->src[0], i);
    *tol = t->dtype == t->src[0]->dtype || t->dtype == GGUF_DTYPE_F32
               ? 0
               : ulp(t, v);
    /* half a step (a whole one at the end of Q4_0's range), and 127 or 8
     * times the rounding of the step to a half */
    double most = t->src[0]->dtype == GGUF_DTYPE_I32 ? 1000 : 3;
    if (t->dtype == GGUF_DTYPE_Q8_0)
        *tol = most * (0.5 / 127 + 0x1p-11);
    if (t->dtype == GGUF_DTYPE_Q4_0)
        *tol = most * (1.0 / 8 + 0x1p-11);
    return v;
}

static void check_copies(void)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16,
                                      GGUF_DTYPE_BF16, GGUF_DTYPE_Q8_0,
                                      GGUF_DTYPE_Q4_0, GGUF_DTYPE_I32 };
    char name[200];
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b++)
            for (int l = 0; l < N_LAYOUTS * N_LAYOUTS; l++)
                for (int other = 0; other < 2; other++) {
                    enum layout la = (enum layout)(l / N_LAYOUTS);
                    enum layout lb = (enum layout)(l % N_LAYOUTS);
                    bool blocks = gguf_dtype_find(types[a])->block_len > 1 ||
                                  gguf_dtype_find(types[b])->block_len > 1;
                    if (blocks && (la == TRANSPOSED || lb == TRANSPOSED))
                        continue;
                    ctx_t *c = new_ctx();
                    tensor *s = source(c, types[a], la, 64, 6, 3, 2);
                    tensor *d = other ? source(c, types[b], lb, 32, 4, 9, 2)
                                      : source(c, types[b], lb, 64, 6, 3, 2);
                    tensor *t = gguf_op_cpy(c, s, d);
                    snprintf(name, sizeof name, "cpy %s %s to %s %s%s",
                             layout_names[la], gguf_dtype_find(types[a])->name,
                             layout_names[lb], gguf_dtype_find(types[b])->name,
                             other ? ", other shape" : "");
                    if (t && gguf_backend_supports_op(backends[0], t))
                        run_case(c, t, f_cpy, name);
                    else
                        ok((types[b] == GGUF_DTYPE_I32 && a != b) ||
                               (blocks && a == b),
                           "%s is not supported", name);
                    gguf_ctx_destroy(c);
                }
}

static double f_get_rows(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                         int64_t i3, double *tol)
{
    *tol = 0;
    return at(t->src[0], i0, (int64_t)at(t->src[1], i1, i2, i3, 0), i2, i3);
}

/* Row i1 of the destination: the last source with that number, or what was
 * there, which the case made 7. */
static double f_set_rows(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                         int64_t i3, double *tol)
{
    const tensor *s = t->src[1], *ids = t->src[2];
    double v = 7;
    for (int64_t r = 0; r < s->ne[1]; r++)
        if ((int64_t)at(ids, r, i2 % ids->ne[1], i3 % ids->ne[2], 0) == i1)
            v = at(s, i0, r, i2, i3);
    *tol = t->dtype == GGUF_DTYPE_F32    ? 0
           : t->dtype == GGUF_DTYPE_Q8_0 ? 0.015
                                         : ulp(t, v);
    return v;
}

static void set_ids(tensor *ids, int64_t below)
{
    for (int64_t i = 0; i < gguf_tensor_n_elements(ids); i++)
        ((int32_t *)ids->data)[i] = (int32_t)rnd_below((uint64_t)below);
}

static void check_rows(void)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32,  GGUF_DTYPE_F16,
                                      GGUF_DTYPE_BF16, GGUF_DTYPE_Q8_0,
                                      GGUF_DTYPE_Q4_0, GGUF_DTYPE_Q4_K,
                                      GGUF_DTYPE_Q6_K, GGUF_DTYPE_I32 };
    char name[100];
    for (int k = 0; k < 8; k++) {
        const char *type = gguf_dtype_find(types[k])->name;
        for (int l = PLAIN; l <= SWAPPED; l++) {
            ctx_t *c = new_ctx();
            tensor *a = source(c, types[k], (enum layout)l, 256, 9, 2, 3);
            tensor *ids = gguf_tensor_3d(c, GGUF_DTYPE_I32, 13, 2, 3);
            set_ids(ids, 9);
            snprintf(name, sizeof name, "get_rows %s %s", layout_names[l],
                     type);
            run_case(c, gguf_op_get_rows(c, a, ids), f_get_rows, name);
            gguf_ctx_destroy(c);
            if (k > 3)
                continue;
            c = new_ctx();
            a = source(c, types[k], (enum layout)l, 64, 20, 2, 3);
            float seven[64];
            for (int i = 0; i < 64; i++)
                seven[i] = 7;
            for (int i = 0; i < 20 * 6; i++)
                kern.codec[gg_dtype_index(types[k])].encode(
                    seven,
                    (char *)a->data + i % 20 * a->nb[1] +
                        i / 20 % 2 * a->nb[2] + i / 40 * a->nb[3],
                    1, 64, NULL);
            tensor *s = source(c, GGUF_DTYPE_F32, (enum layout)l, 64, 12, 2, 3);
            ids = gguf_tensor_3d(c, GGUF_DTYPE_I32, 12, l == PLAIN ? 2 : 1, 3);
            set_ids(ids, 20);
            snprintf(name, sizeof name, "set_rows %s %s", layout_names[l],
                     type);
            run_case(c, gguf_op_set_rows(c, a, s, ids), f_set_rows, name);
            gguf_ctx_destroy(c);
        }
    }
}

/* --- along rows ----------------------------------------------------------- */

static double f_norms(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                      int64_t i3, double *tol)
{
    const tensor *a = t->src[0];
    static double mean, sum; /* of the row that i0 = 0 began */
    float eps;
    memcpy(&eps, t->op_params, sizeof eps);
    if (i0)
        goto known;
    mean = sum = 0;
    if (t->op == GGUF_OP_L2_NORM)
        eps = 0; /* rows are longer than that */
    if (t->op == GGUF_OP_NORM) {
        for (int64_t i = 0; i < a->ne[0]; i++)
            mean += at(a, i, i1, i2, i3);
        mean /= (double)a->ne[0];
    }
    for (int64_t i = 0; i < a->ne[0]; i++)
        sum += pow(at(a, i, i1, i2, i3) - mean, 2);
known:;
    double n = t->op == GGUF_OP_L2_NORM ? 1 : (double)a->ne[0];
    double v = (at(a, i0, i1, i2, i3) - mean) / sqrt(sum / n + (double)eps);
    *tol = 4 * ulp(t, v);
    return v;
}

static double slope_of(double max_bias, int64_t head, int64_t n_head)
{
    if (max_bias <= 0)
        return 1;
    int64_t n = 1;
    while (2 * n <= n_head)
        n *= 2;
    return head < n ? pow(2, -max_bias * (double)(head + 1) / (double)n)
                    : pow(2, -max_bias / 2 * (double)(2 * (head - n) + 1) /
                                 (double)n);
}

static double f_soft_max(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                         int64_t i3, double *tol)
{
    const tensor *x = t->src[0], *m = t->src[1];
    struct gguf_soft_max_params p;
    memcpy(&p, t->op_params, sizeof p);
    double slope = slope_of(p.max_bias, i2, x->ne[2]), mine = 0;
    static double max, sum; /* of the row that i0 = 0 began */
    if (!i0) {
        max = -INFINITY;
        sum = 0;
    }
    for (int pass = i0 ? 2 : 0; pass < 3; pass++)
        for (int64_t i = pass < 2 ? 0 : i0;
             i < (pass < 2 ? x->ne[0] : i0 + 1); i++) {
            double v = at(x, i, i1, i2, i3) * p.scale;
            if (m)
                v += slope * at(m, i, i1, i2 % m->ne[2], i3 % m->ne[3]);
            if (pass == 0)
                max = fmax(max, v);
            else if (pass == 1)
                sum += exp(v - max);
            else
                mine = v;
        }
    double v = exp(mine - max) / sum;
    *tol = max == -INFINITY ? 0 : 40 * ulp(t, v) + 1e-30;
    return max == -INFINITY ? 0 : v;
}

static void check_along_rows(void)
{
    char name[200];
    for (int l = 0; l < N_LAYOUTS; l++)
        for (int d = 0; d < 3; d++)
            for (int s = 0; s < N_SHAPES; s++) {
                const int64_t *n = shapes[s];
                const char *type = gguf_dtype_find(float_types[d])->name;
                ctx_t *c = new_ctx();
                tensor *a = source(c, float_types[d], (enum layout)l, n[0],
                                   n[1], n[2], n[3]);
                snprintf(name, sizeof name, "norm %s %s shape %d",
                         layout_names[l], type, s);
                run_case(c, gguf_op_norm(c, a, 1e-5f), f_norms, name);
                snprintf(name, sizeof name, "rms_norm %s %s shape %d",
                         layout_names[l], type, s);
                run_case(c, gguf_op_rms_norm(c, a, 1e-6f), f_norms, name);
                snprintf(name, sizeof name, "l2_norm %s %s shape %d",
                         layout_names[l], type, s);
                run_case(c, gguf_op_l2_norm(c, a, 1e-6f), f_norms, name);
                snprintf(name, sizeof name, "soft_max %s %s shape %d",
                         layout_names[l], type, s);
                run_case(c, gguf_op_soft_max(c, a, NULL, 0.7f, 0), f_soft_max,
                         name);
                gguf_ctx_destroy(c);
            }
    for (int d = 0; d < 2; d++)
        for (int k = 0; k < 4; k++) {
            ctx_t *c = new_ctx();
            tensor *x = source(c, GGUF_DTYPE_F32, PLAIN, 50, 9, 6, 2);
            tensor *m = source(c, float_types[d], PLAIN, 50, 11,
                               k & 1 ? 6 : 1, k & 2 ? 2 : 1);
            float low = -INFINITY, row[50];
            for (int i = 0; i < 50; i++) /* of the mask's second row: closed */
                row[i] = low;
            kern.codec[gg_dtype_index(m->dtype)].encode(
                row, (char *)m->data + m->nb[1], 1, 50, NULL);
            snprintf(name, sizeof name, "soft_max with mask %s, %d",
                     gguf_dtype_find(m->dtype)->name, k);
            run_case(c, gguf_op_soft_max(c, x, m, 0.5f, k ? 8.0f : 0),
                     f_soft_max, name);
            gguf_ctx_destroy(c);
        }
}

/* --- reductions, and putting together ------------------------------------ */

static double f_reduce(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tol)
{
    const tensor *a = t->src[0];
    double sum = 0, all = 0;
    if (t->op == GGUF_OP_SUM) {
        for (int64_t i = 0; i < gguf_tensor_n_elements(a); i++) {
            sum += linear(a, i);
            all += fabs(linear(a, i));
        }
    } else {
        int64_t n = t->op == GGUF_OP_CUMSUM ? i0 + 1 : a->ne[0];
        for (int64_t i = 0; i < n; i++)
            sum += at(a, i, i1, i2, i3);
        if (t->op == GGUF_OP_MEAN)
            sum /= (double)a->ne[0];
    }
    *tol = ulp(t, sum) + all * 1e-14;
    return sum;
}

static double f_argmax(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tol)
{
    const tensor *a = t->src[0];
    int64_t best = 0;
    (void)i3;
    *tol = 0;
    for (int64_t i = 1; i < a->ne[0]; i++)
        if (at(a, i, i0, i1, i2) > at(a, best, i0, i1, i2))
            best = i;
    return (double)best;
}

/* Place of an element: how many come before it. */
static double f_argsort(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                        int64_t i3, double *tol)
{
    const tensor *s = t->op == GGUF_OP_VIEW ? t->src[0] : t, *a = s->src[0];
    bool down = s->op_params[0];
    *tol = 0;
    for (int64_t k = 0; k < a->ne[0]; k++) {
        double v = at(a, k, i1, i2, i3);
        int64_t before = 0;
        for (int64_t i = 0; i < a->ne[0]; i++) {
            double x = at(a, i, i1, i2, i3);
            before += x == v ? i < k : down ? x > v : x < v;
        }
        if (before == i0)
            return (double)k;
    }
    return -1;
}

static double f_concat(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tol)
{
    const tensor *a = t->src[0], *b = t->src[1];
    int64_t i[] = { i0, i1, i2, i3 };
    int d = t->op_params[0];
    *tol = 0;
    if (i[d] < a->ne[d])
        return at(a, i0, i1, i2, i3);
    i[d] -= a->ne[d];
    return at(b, i[0], i[1], i[2], i[3]);
}

static double f_repeat(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tol)
{
    *tol = 0;
    return A;
}

static double f_pad(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                    int64_t i3, double *tol)
{
    const tensor *a = t->src[0];
    *tol = 0;
    return i0 < a->ne[0] && i1 < a->ne[1] && i2 < a->ne[2] && i3 < a->ne[3]
               ? at(a, i0, i1, i2, i3)
               : 0;
}

static double f_roll(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3, double *tol)
{
    int64_t i[] = { i0, i1, i2, i3 };
    *tol = 0;
    for (int d = 0; d < 4; d++)
        i[d] = ((i[d] - t->op_params[d]) % t->ne[d] + t->ne[d]) % t->ne[d];
    return at(t->src[0], i[0], i[1], i[2], i[3]);
}

static void check_reductions(void)
{
    char name[200];
    for (int l = 0; l < N_LAYOUTS; l++)
        for (int d = 0; d < 3; d++)
            for (int s = 0; s < N_SHAPES; s++) {
                const int64_t *n = shapes[s];
                ctx_t *c = new_ctx();
                tensor *a = source(c, float_types[d], (enum layout)l, n[0],
                                   n[1], n[2], n[3]);
                snprintf(name, sizeof name, "%s %s shape %d", layout_names[l],
                         gguf_dtype_find(float_types[d])->name, s);
                char what[240];
#define RUN(op, call, f)                                                      \
    snprintf(what, sizeof what, op " %s", name);                              \
    run_case(c, call, f, what)
                RUN("sum", gguf_op_sum(c, a), f_reduce);
                RUN("cumsum", gguf_op_cumsum(c, a), f_reduce);
                if (n[0]) { /* the mean of nothing is no number */
                    RUN("sum_rows", gguf_op_sum_rows(c, a), f_reduce);
                    RUN("mean", gguf_op_mean(c, a), f_reduce);
                    RUN("argmax", gguf_op_argmax(c, a), f_argmax);
                }
                if (n[0] < 100) {
                    RUN("argsort", gguf_op_argsort(c, a, false), f_argsort);
                    RUN("argsort down", gguf_op_argsort(c, a, true),
                        f_argsort);
                }
                if (n[0] == 33) {
                    RUN("top_k", gguf_op_top_k(c, a, 5), f_argsort);
                }
#undef RUN
                gguf_ctx_destroy(c);
            }
}

static void check_joins(void)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16,
                                      GGUF_DTYPE_Q8_0, GGUF_DTYPE_I32 };
    char name[200];
    for (int l = 0; l < N_LAYOUTS; l++)
        for (int d = 0; d < 4; d++) {
            if (types[d] == GGUF_DTYPE_Q8_0 && l == TRANSPOSED)
                continue;
            ctx_t *c = new_ctx();
            tensor *a = source(c, types[d], (enum layout)l, 64, 5, 3, 2);
            const char *type = gguf_dtype_find(types[d])->name;
            for (unsigned dim = 0; dim < 4; dim++) {
                int64_t n[] = { 64, 5, 3, 2 };
                n[dim] = dim ? 4 : 96;
                tensor *b = source(c, types[d],
                                   (enum layout)(types[d] == GGUF_DTYPE_Q8_0
                                                     ? PLAIN
                                                     : N_LAYOUTS - 1 - l),
                                   n[0], n[1], n[2], n[3]);
                snprintf(name, sizeof name, "concat %s %s, dimension %u",
                         layout_names[l], type, dim);
                run_case(c, gguf_op_concat(c, a, b, dim), f_concat, name);
            }
            snprintf(name, sizeof name, "repeat %s %s", layout_names[l], type);
            run_case(c, gguf_op_repeat(c, a, 128, 5, 9, 4), f_repeat, name);
            if (types[d] != GGUF_DTYPE_Q8_0) {
                snprintf(name, sizeof name, "pad %s %s", layout_names[l],
                         type);
                run_case(c, gguf_op_pad(c, a, 3, 1, 0, 2), f_pad, name);
                snprintf(name, sizeof name, "roll %s %s", layout_names[l],
                         type);
                run_case(c, gguf_op_roll(c, a, 7, -3, 70, 1), f_roll, name);
            }
            gguf_ctx_destroy(c);
        }
}

static double f_rope(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3, double *tol)
{
    const tensor *x = t->src[0], *ff = t->src[2];
    struct gguf_rope r;
    memcpy(&r, t->op_params, sizeof r);
    *tol = 0;
    if (i0 >= r.n_dims)
        return at(x, i0, i1, i2, i3);
    int half = r.n_dims / 2;
    bool neox = r.kind == GGUF_ROPE_NEOX;
    int64_t pair = neox ? i0 % half : i0 / 2;
    bool upper = neox ? i0 >= half : i0 & 1;
    double theta = at(t->src[1], i2, 0, 0, 0) *
                   pow(r.freq_base, -2.0 * (double)pair / r.n_dims);
    if (ff)
        theta /= at(ff, pair, 0, 0, 0);
    double g = 0, scale = r.attn_factor;
    if (r.ext_factor != 0) {
        const double pi = 3.14159265358979323846;
        double lo = floor(r.n_dims * log(r.n_ctx_orig /
                                         (r.beta_fast * 2 * pi)) /
                          (2 * log(r.freq_base)));
        double hi = ceil(r.n_dims *
                         log(r.n_ctx_orig / (r.beta_slow * 2 * pi)) /
                         (2 * log(r.freq_base)));
        lo = fmax(lo, 0);
        hi = fmin(hi, r.n_dims - 1);
        double ramp = ((double)pair - lo) / fmax(0.001, hi - lo);
        g = r.ext_factor * (1 - fmax(0, fmin(1, ramp)));
        scale *= 1 + 0.1 * log(1 / (double)r.freq_scale);
    }
    double angle = theta * r.freq_scale * (1 - g) + theta * g;
    double a = at(x, neox ? pair : 2 * pair, i1, i2, i3);
    double b = at(x, neox ? pair + half : 2 * pair + 1, i1, i2, i3);
    *tol = 3 * ulp(t, scale * fmax(fabs(a), fabs(b)));
    return scale * (upper ? a * sin(angle) + b * cos(angle)
                          : a * cos(angle) - b * sin(angle));
}

static void check_rope(void)
{
    char name[200];
    for (int k = 0; k < 64; k++) {
        struct gguf_rope r = GGUF_ROPE_INIT;
        int l = k % N_LAYOUTS;
        r.kind = k & 16 ? GGUF_ROPE_NEOX : GGUF_ROPE_NORM;
        r.n_dims = k & 8 ? 40 : 64;
        if (k & 32) {
            r.ext_factor = 1;
            r.freq_scale = 0.25f;
            r.n_ctx_orig = 4096;
        }
        ctx_t *c = new_ctx();
        tensor *x = source(c, float_types[k % 3], (enum layout)l, 64, 5, 7, 2);
        tensor *pos = gguf_tensor_1d(c, GGUF_DTYPE_I32, 7);
        for (int i = 0; i < 7; i++)
            ((int32_t *)pos->data)[i] = i * i * i * 800;
        tensor *ff = NULL;
        if (k & 4) {
            ff = gguf_tensor_1d(c, GGUF_DTYPE_F32, 32);
            for (int i = 0; i < 32; i++)
                ((float *)ff->data)[i] = 1 + (float)rnd_below(8);
        }
        snprintf(name, sizeof name, "rope %s %s, %d dims,%s%s %s",
                 r.kind ? "neox" : "norm", layout_names[l], r.n_dims,
                 ff ? " factors," : "", k & 32 ? " yarn," : "",
                 gguf_dtype_find(x->dtype)->name);
        run_case(c, gguf_op_rope(c, x, pos, ff, &r), f_rope, name);
        gguf_ctx_destroy(c);
    }
}

/* --- products ------------------------------------------------------------- */

static double f_matmul(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tol)
{
    const tensor *a = t->src[0], *b = t->src[1];
    double v = 0, sum = 0;
    for (int64_t p = 0; p < a->ne[0]; p++) {
        double x = at(a, p, i0, i2 / (b->ne[2] / a->ne[2]),
                      i3 / (b->ne[3] / a->ne[3])) *
                   at(b, p, i1, i2, i3);
        v += x;
        sum += fabs(x);
    }
    *tol = (double)(a->ne[0] + 1) * 0x1p-24 * sum; /* any order */
    return v;
}

static void check_matmul(void)
{
    static const int64_t cases[][7] = {
        /* k, m, n, a2, a3, b2, b3 */
        { 64, 10, 7, 1, 1, 1, 1 },   { 256, 33, 1, 1, 1, 1, 1 },
        { 32, 17, 20, 2, 1, 4, 1 },  { 32, 9, 5, 2, 3, 2, 6 },
        { 32, 9, 5, 1, 1, 3, 2 },    { 64, 100, 70, 1, 1, 1, 1 },
        { 64, 9, 1, 1, 1, 5, 2 },    { 32, 0, 5, 1, 1, 1, 1 },
        { 32, 4, 0, 1, 1, 1, 1 },    { 0, 4, 3, 1, 1, 1, 1 },
    };
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16,
                                      GGUF_DTYPE_Q8_0, GGUF_DTYPE_Q4_0 };
    char name[200];
    for (int k = 0; k < 10; k++)
        for (int d = 0; d < 4; d++)
            for (int l = PLAIN; l <= SWAPPED; l++) {
                const int64_t *n = cases[k];
                ctx_t *c = new_ctx();
                tensor *a = source(c, types[d], (enum layout)l, n[0], n[1],
                                   n[3], n[4]);
                tensor *b = source(c, GGUF_DTYPE_F32, (enum layout)l, n[0],
                                   n[2], n[5], n[6]);
                snprintf(name, sizeof name, "matmul %s %s, case %d",
                         layout_names[l], gguf_dtype_find(types[d])->name, k);
                run_case(c, gguf_op_matmul(c, a, b), f_matmul, name);
                gguf_ctx_destroy(c);
            }
}

static double f_matmul_id(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                          int64_t i3, double *tol)
{
    const tensor *a = t->src[0], *b = t->src[1];
    int64_t e = (int64_t)at(t->src[2], i1, i2, 0, 0);
    double v = 0, sum = 0;
    (void)i3;
    for (int64_t p = 0; p < a->ne[0]; p++) {
        double x = at(a, p, i0, e, 0) * at(b, p, i1 % b->ne[1], i2, 0);
        v += x;
        sum += fabs(x);
    }
    *tol = (double)(a->ne[0] + 1) * 0x1p-24 * sum;
    return v;
}

static void check_matmul_id(void)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16,
                                      GGUF_DTYPE_Q8_0 };
    char name[200];
    for (int k = 0; k < 12; k++) {
        ctx_t *c = new_ctx();
        int64_t n_tok = k & 1 ? 1 : 23, n_b = k & 2 ? 1 : 4;
        tensor *a = source(c, types[k % 3], (enum layout)(k % 2), 64, 19, 7,
                           1);
        tensor *b = source(c, GGUF_DTYPE_F32, (enum layout)(k % 3), 64, n_b,
                           n_tok, 1);
        tensor *ids = gguf_tensor_2d(c, GGUF_DTYPE_I32, 4, n_tok);
        set_ids(ids, k & 4 ? 2 : 7);
        snprintf(name, sizeof name, "matmul_id %d", k);
        run_case(c, gguf_op_matmul_id(c, a, b, ids), f_matmul_id, name);
        gguf_ctx_destroy(c);
    }
}

/* Numbers that are out of range: a status from every team, nothing else. */
static void check_bad_numbers(void)
{
    for (int k = 0; k < 3; k++) {
        struct gguf_error err;
        ctx_t *c = new_ctx();
        tensor *a = source(c, GGUF_DTYPE_F32, PLAIN, 64, 50, 1, 1), *t;
        tensor *ids = gguf_tensor_2d(c, GGUF_DTYPE_I32, 40, 1);
        set_ids(ids, k == 2 ? 1 : 50);
        ((int32_t *)ids->data)[39] = k ? -1 : 50;
        tensor *b = source(c, GGUF_DTYPE_F32, PLAIN, 64, 40, 1, 1);
        t = k == 0   ? gguf_op_get_rows(c, a, ids)
            : k == 1 ? gguf_op_set_rows(c, a, b, ids)
                     : gguf_op_matmul_id(c, a, b, ids);
        t = gguf_op_matmul(c, a, gguf_op_relu(c, k == 2 ? b : t));
        struct gguf_graph *g = gguf_graph_create(c, 32);
        if (k == 2)
            gguf_graph_add(g, gguf_op_matmul_id(c, a, b, ids));
        bool all = gguf_graph_finish(c, g, t, &err) == GGUF_OK;
        for (int i = 0; i < N_TEAMS; i++)
            for (int round = 0; round < 50; round++)
                all = all && gguf_backend_compute(backends[i], g, &err) ==
                                 GGUF_E_INVALID;
        ok(all, "%s", err.message);
        gguf_ctx_destroy(c);
    }
}

static int stop_third(void *user)
{
    return ++*(int *)user == 3;
}

static void check_abort(void)
{
    struct gguf_error err;
    ctx_t *c = new_ctx();
    tensor *t = source(c, GGUF_DTYPE_F32, PLAIN, 64, 50, 1, 1);
    for (int i = 0; i < 6; i++)
        t = gguf_op_relu(c, t);
    struct gguf_graph *g = gguf_graph_create(c, 32);
    bool all = gguf_graph_finish(c, g, t, &err) == GGUF_OK;
    for (int i = 0; i < N_TEAMS; i++) {
        int n = 0;
        struct gguf_backend *b;
        struct gguf_cpu_params p = GGUF_CPU_PARAMS_INIT;
        p.pool = pools[i];
        p.abort = stop_third;
        p.abort_user = &n;
        if (gguf_cpu_backend_create(&b, &p, NULL) != GGUF_OK)
            exit(99);
        all = all && gguf_backend_compute(b, g, &err) == GGUF_E_CANCELLED &&
              n == 3;
        gguf_backend_destroy(b);
    }
    ok(all, "an abort callback stops behind the third node: %s", err.message);
    gguf_ctx_destroy(c);
}

static double f_attention(const tensor *t, int64_t i0, int64_t head,
                          int64_t tok, int64_t seq, double *tol)
{
    const tensor *q = t->src[0], *k = t->src[1], *v = t->src[2];
    const tensor *m = t->src[3];
    struct gguf_attn_params p;
    memcpy(&p, t->op_params, sizeof p);
    int64_t hk = head / (q->ne[2] / k->ne[2]), n = k->ne[1];
    double slope = slope_of(p.max_bias, head, q->ne[2]);
    double sum = 0, out = 0, part = 0;
    static double s[256], max; /* of the row that i0 = 0 began */
    if (!i0)
        max = -INFINITY;
    for (int64_t i = 0; i < n && !i0; i++) {
        double x = 0;
        for (int64_t e = 0; e < q->ne[0]; e++)
            x += at(q, e, tok, head, seq) * at(k, e, i, hk, seq);
        x *= p.scale;
        if (p.softcap != 0)
            x = p.softcap * tanh(x / p.softcap);
        if (m)
            x += slope * at(m, i, tok, 0, seq % m->ne[3]);
        s[i] = x;
        max = fmax(max, x);
    }
    for (int64_t i = 0; i < n && max > -INFINITY; i++) {
        double w = exp(s[i] - max);
        sum += w;
        out += w * at(v, i0, i, hk, seq);
        part += w * fabs(at(v, i0, i, hk, seq));
    }
    *tol = sum ? 1e-5 * part / sum : 0;
    return sum ? out / sum : 0;
}

static void check_attention(void)
{
    static const int64_t cases[][7] = {
        /* d, dv, n_tok, n_kv, n_head, n_head_kv, n_seq */
        { 64, 64, 7, 40, 4, 2, 1 },  { 32, 64, 1, 200, 6, 6, 2 },
        { 96, 32, 30, 150, 4, 1, 1 }, { 64, 64, 3, 0, 2, 1, 1 },
        { 64, 64, 0, 9, 2, 1, 1 },
    };
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16,
                                      GGUF_DTYPE_Q8_0 };
    char name[200];
    for (int k = 0; k < 5; k++)
        for (int d = 0; d < 3; d++)
            for (int w = 0; w < 6; w++) {
                const int64_t *n = cases[k];
                enum layout l = (enum layout)(w % 3);
                ctx_t *c = new_ctx();
                tensor *q = source(c, GGUF_DTYPE_F32, l, n[0], n[2], n[4],
                                   n[6]);
                tensor *kk = source(c, types[d], l, n[0], n[3], n[5], n[6]);
                tensor *v = source(c, types[d], l, n[1], n[3], n[5], n[6]);
                tensor *m = NULL;
                if (w) {
                    m = source(c, w & 1 ? GGUF_DTYPE_F16 : GGUF_DTYPE_F32,
                               PLAIN, n[3], n[2] + 1, 1, w > 3 ? n[6] : 1);
                    for (int64_t i = 0; i < n[3] * n[2] / 2; i++) {
                        int64_t e = (int64_t)rnd_below(
                            (uint64_t)(n[3] * n[2]));
                        if (m->dtype == GGUF_DTYPE_F16)
                            ((uint16_t *)m->data)[e] = 0xfc00;
                        else
                            ((float *)m->data)[e] = -INFINITY;
                    }
                }
                snprintf(name, sizeof name, "attention %s %s, case %d, way %d",
                         layout_names[l], gguf_dtype_find(types[d])->name, k,
                         w);
                run_case(c,
                         gguf_op_attention(c, q, kk, v, m, 0.125f,
                                           w == 4 ? 8.0f : 0,
                                           w == 5 ? 3.0f : 0),
                         f_attention, name);
                gguf_ctx_destroy(c);
            }
}

int main(void)
{
    gg_kern_init(&kern, 0);
    for (int i = 0; i < N_TEAMS; i++) {
        struct gguf_pool_params pp = GGUF_POOL_PARAMS_INIT;
        struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
        pp.n_threads = threads[i];
        if (gguf_pool_create(&pools[i], &pp, NULL) != GGUF_OK)
            return 99;
        cp.pool = pools[i];
        if (gguf_cpu_backend_create(&backends[i], &cp, NULL) != GGUF_OK)
            return 99;
    }
    check_unary();
    check_binary();
    check_copies();
    check_rows();
    check_along_rows();
    check_reductions();
    check_joins();
    check_rope();
    check_matmul();
    check_matmul_id();
    check_bad_numbers();
    check_abort();
    check_attention();
    for (int i = 0; i < N_TEAMS; i++) {
        gguf_backend_destroy(backends[i]);
        gguf_pool_destroy(pools[i]);
    }
    return done_testing();
}
