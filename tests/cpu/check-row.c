/* SPDX-License-Identifier: MIT */
/* check-row.c - operations along rows: norms, soft-max, reductions, argsort */
#include "config.h"
#include "tests/cpu/ops.h"

static double f_norms(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                      int64_t i3, double *tol)
{
    const tensor *a = t->src[0];
    static double mean, sum; /* mean and sum of the row that i0 = 0 began */
    float eps;
    memcpy(&eps, t->op_params, sizeof eps);
    if (i0)
        goto known;
    mean = sum = 0;
    if (t->op == GGUF_OP_L2_NORM)
        eps = 0; /* eps has no effect in long rows */
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

static double f_soft_max(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                         int64_t i3, double *tol)
{
    const tensor *x = t->src[0], *m = t->src[1], *sinks = t->src[2];
    struct gguf_soft_max_params p;
    memcpy(&p, t->op_params, sizeof p);
    double slope = slope_of(p.max_bias, i2, x->ne[2]), mine = 0;
    static double max, sum; /* maximum and sum of the row that i0 = 0 began */
    if (!i0) {
        max = sinks ? at(sinks, i2, 0, 0, 0) : -INFINITY;
        sum = 0;
    }
    for (int pass = i0 ? 2 : 0; pass < 3; pass++) {
        if (pass == 1 && sinks)
            sum = exp(at(sinks, i2, 0, 0, 0) - max);
        for (int64_t i = pass < 2 ? 0 : i0; i < (pass < 2 ? x->ne[0] : i0 + 1);
             i++) {
            double v = at(x, i, i1, i2, i3) * (double)p.scale;
            if (m)
                v += slope * at(m, i, i1, i2 % m->ne[2], i3 % m->ne[3]);
            if (pass == 0)
                max = fmax(max, v);
            else if (pass == 1)
                sum += exp(v - max);
            else
                mine = v;
        }
    }
    double v = exp(mine - max) / sum;
    *tol = max == -INFINITY ? 0 : 40 * ulp(t, v) + 1e-30;
    return max == -INFINITY ? 0 : v;
}

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

/* Rank of an element: the number of elements before it. */
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

/* Mean and scale of the group that the first element of a channel began. */
static double f_group_norm(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                           int64_t i3, double *tol)
{
    const tensor *a = t->src[0];
    static double mean, sum;
    struct gguf_group_norm_params p;
    memcpy(&p, t->op_params, sizeof p);
    int64_t size = a->ne[2] / p.n_groups, first = i2 / size * size;
    double n = (double)(a->ne[0] * a->ne[1] * size);
    if (!i0 && !i1) {
        mean = sum = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t c = first; c < first + size; c++)
                for (int64_t r = 0; r < a->ne[1]; r++)
                    for (int64_t i = 0; i < a->ne[0]; i++) {
                        double x = at(a, i, r, c, i3);
                        if (pass)
                            sum += (x - mean) * (x - mean);
                        else
                            mean += x / n;
                    }
        }
    }
    double v = (at(a, i0, i1, i2, i3) - mean) / sqrt(sum / n + (double)p.eps);
    *tol = 4 * ulp(t, v) + 1e-12;
    return v;
}

static double f_diag_mask(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                          int64_t i3, double *tol)
{
    *tol = 0;
    if (i0 <= t->op_params[0] + i1)
        return at(t->src[0], i0, i1, i2, i3);
    return t->op == GGUF_OP_DIAG_MASK_INF ? -INFINITY : 0;
}

static tensor *norm(ctx_t *c, tensor *a)
{
    return gguf_op_norm(c, a, 1e-5f);
}

static tensor *rms_norm(ctx_t *c, tensor *a)
{
    return gguf_op_rms_norm(c, a, 1e-6f);
}

static tensor *l2_norm(ctx_t *c, tensor *a)
{
    return gguf_op_l2_norm(c, a, 1e-6f);
}

static tensor *group_norm(ctx_t *c, tensor *a)
{
    return gguf_op_group_norm(c, a, (int32_t)a->ne[2], 1e-6f);
}

static tensor *group_norm_1(ctx_t *c, tensor *a)
{
    return gguf_op_group_norm(c, a, 1, 0);
}

static tensor *diag_mask_inf(ctx_t *c, tensor *a)
{
    return gguf_op_diag_mask_inf(c, a, 2);
}

static tensor *diag_mask_zero(ctx_t *c, tensor *a)
{
    return gguf_op_diag_mask_zero(c, a, 0);
}

static tensor *soft_max(ctx_t *c, tensor *a)
{
    return gguf_op_soft_max(c, a, NULL, 0.7f, 0);
}

static tensor *argsort_up(ctx_t *c, tensor *a)
{
    return gguf_op_argsort(c, a, false);
}

static tensor *argsort_down(ctx_t *c, tensor *a)
{
    return gguf_op_argsort(c, a, true);
}

static tensor *top_5(ctx_t *c, tensor *a)
{
    return gguf_op_top_k(c, a, 5);
}

static const struct {
    const char *name;
    tensor *(*build)(ctx_t *, tensor *);
    formula *f;
    int64_t least, most; /* number of elements of a row */
} row_ops[] = {
    { "norm", norm, f_norms, 0, 200 },
    { "rms_norm", rms_norm, f_norms, 0, 200 },
    { "l2_norm", l2_norm, f_norms, 0, 200 },
    { "group_norm", group_norm, f_group_norm, 0, 200 },
    { "group_norm of all", group_norm_1, f_group_norm, 2, 200 },
    { "diag_mask_inf", diag_mask_inf, f_diag_mask, 0, 200 },
    { "diag_mask_zero", diag_mask_zero, f_diag_mask, 0, 200 },
    { "soft_max", soft_max, f_soft_max, 0, 200 },
    { "sum", gguf_op_sum, f_reduce, 0, 200 },
    { "cumsum", gguf_op_cumsum, f_reduce, 0, 200 },
    /* the mean of an empty row is NaN */
    { "sum_rows", gguf_op_sum_rows, f_reduce, 1, 200 },
    { "mean", gguf_op_mean, f_reduce, 1, 200 },
    { "argmax", gguf_op_argmax, f_argmax, 1, 200 },
    { "argsort", argsort_up, f_argsort, 0, 64 },
    { "argsort down", argsort_down, f_argsort, 0, 64 },
    { "top_k", top_5, f_argsort, 5, 64 },
};

static void check_row_ops(void)
{
    for (size_t k = 0; k < sizeof row_ops / sizeof *row_ops; k++)
        for (int v = 0; v < N_LAYOUTS * N_FLOATS * N_SHAPES; v++) {
            const int64_t *n = shapes[v % N_SHAPES];
            enum layout l = (enum layout)(v / N_SHAPES % N_LAYOUTS);
            if (n[0] < row_ops[k].least || n[0] > row_ops[k].most)
                continue;
            ctx_t *c = new_ctx();
            tensor *a = source(c, float_types[v / N_SHAPES / N_LAYOUTS], l,
                               n[0], n[1], n[2], n[3]);
            run_case(c, row_ops[k].build(c, a), row_ops[k].f,
                     "%s %s %s shape %d", row_ops[k].name, layout_names[l],
                     type_name(a), v % N_SHAPES);
            gguf_ctx_destroy(c);
        }
}

/* Zeros are equal whatever their sign, and NaN is last whatever its sign. */
static double f_special(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                        int64_t i3, double *tol)
{
    static const int up[] = { 6, 4, 8, 0, 2, 9, 7, 1, 3, 5 };
    static const int down[] = { 1, 7, 0, 2, 9, 8, 4, 6, 3, 5 };
    (void)i1, (void)i2, (void)i3;
    *tol = 0;
    return t->op_params[0] ? down[i0] : up[i0];
}

static void check_special_order(void)
{
    static const float x[] = { 0,    INFINITY,  -0.0f,  NAN,     -1,
                               -NAN, -INFINITY, 1e-45f, -1e-45f, 0 };
    for (int down = 0; down < 2; down++) {
        ctx_t *c = new_ctx();
        tensor *a = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, GG_LEN(x));
        memcpy(a->data, x, sizeof x);
        run_case(c, gguf_op_argsort(c, a, down), f_special,
                 "argsort %s: signs of zeros and of NaN",
                 down ? "down" : "up");
        gguf_ctx_destroy(c);
    }
}

/* A mask whose second row masks every element. */
static tensor *mask_of(ctx_t *c, uint32_t dtype, int64_t n2, int64_t n3)
{
    tensor *m = source(c, dtype, PLAIN, 50, 11, n2, n3);
    float row[50];
    for (int i = 0; i < 50; i++)
        row[i] = -INFINITY;
    ops_kern.codec[gg_dtype_index(dtype)].encode(
        row, (char *)m->data + m->nb[1], 1, 50, NULL);
    return m;
}

static void check_masks(void)
{
    for (int k = 0; k < 16; k++) {
        ctx_t *c = new_ctx();
        enum layout l = k & 8 ? TRANSPOSED : PLAIN;
        tensor *x = source(c, GGUF_DTYPE_F32, l, 50, 9, 6, 2);
        tensor *m =
            mask_of(c, float_types[k & 1], k & 2 ? 6 : 1, k & 4 ? 2 : 1);
        tensor *sinks = between(c, PLAIN, 6, 1, 1, 1, -2, 5);
        float bias = k & 6 ? 8.0f : 0;
        run_case(c, gguf_op_soft_max(c, x, m, 0.5f, bias), f_soft_max,
                 "soft_max with mask %s, %d", type_name(m), k);
        run_case(c, gguf_op_soft_max_sinks(c, x, m, sinks, 0.5f, bias),
                 f_soft_max, "soft_max with mask %s and sinks, %d",
                 type_name(m), k);
        run_case(c, gguf_op_soft_max_sinks(c, x, NULL, sinks, 2.0f, 0),
                 f_soft_max, "soft_max with sinks, %d", k);
        gguf_ctx_destroy(c);
    }
}

static void check_refused(void)
{
    ctx_t *c = new_ctx();
#define F32(n0, n1, n2) gguf_tensor_create_3d(c, GGUF_DTYPE_F32, n0, n1, n2)
    refused(c, gguf_op_group_norm(c, F32(4, 2, 6), 4, 0), GGUF_E_SHAPE,
            "group_norm", "6 channels in 4 groups", "[4, 2, 6]");
    refused(c, gguf_op_group_norm(c, F32(4, 2, 6), 0, 0), GGUF_E_SHAPE,
            "in 0 groups");
    refused(c, gguf_op_group_norm(c, F32(4, 2, 6), 2, -1), GGUF_E_INVALID,
            "eps");
    refused(c, gguf_op_diag_mask_inf(c, F32(4, 4, 1), -1), GGUF_E_INVALID,
            "diag_mask_inf", "-1");
    refused(c,
            gguf_op_soft_max_sinks(c, F32(4, 4, 3), NULL, F32(2, 1, 1), 1, 0),
            GGUF_E_SHAPE, "2 sinks for 3 heads", "[4, 4, 3]", "[2]");
    refused(c,
            gguf_op_soft_max_sinks(c, F32(4, 4, 3), NULL,
                                   gguf_tensor_create_1d(c, GGUF_DTYPE_F16, 3),
                                   1, 0),
            GGUF_E_TYPE, "sinks must be f32");
    refused(c, gguf_op_top_k(c, F32(4, 2, 1), 5), GGUF_E_SHAPE, "[4, 2]");
    refused(c, gguf_op_argmax(c, F32(0, 2, 1)), GGUF_E_SHAPE, "argmax");
#undef F32
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_row_ops();
    check_special_order();
    check_masks();
    check_refused();
    ops_end();
    return done_testing();
}
