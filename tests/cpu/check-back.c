/* SPDX-License-Identifier: MIT */
/* check-back.c - vector-Jacobian products, in all layouts and types
 *
 * Derivatives are central differences of the functions in double precision;
 * tests/graph/check-gradient.c has more of them, and every operation. */
#include "config.h"
#include "tests/cpu/ops.h"

/* --- functions of elements, norms ----------------------------------------- */

enum { X, DY };

static double gelu(double x)
{
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static double f_unary(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                      int64_t i3, double *tol)
{
    struct gguf_unary_back_params p;
    memcpy(&p, t->op_params, sizeof p);
    const double x = at(t->src[X], i0, i1, i2, i3), h = 1e-5;
    const double dy = at(t->src[DY], i0, i1, i2, i3);
    /* clamp: the bounds belong to the inside */
    const double v = p.op == GGUF_OP_GELU
                         ? (gelu(x + h) - gelu(x - h)) / (2 * h)
                         : (x >= -1 && x <= 2);
    *tol = 2 * ulp(t, v * dy) + 1e-8;
    return v * dy;
}

/* Sum of dy times the norm of the row, with element k moved by h. */
static double norm_sum(const tensor *t, int64_t k, double h, int64_t i1,
                       int64_t i2, int64_t i3)
{
    struct gguf_unary_back_params p;
    memcpy(&p, t->op_params, sizeof p);
    const int64_t n = t->ne[0];
    double mean = 0, sum = 0, dot = 0, by;
    for (int64_t i = 0; p.op == GGUF_OP_NORM && i < n; i++)
        mean += (at(t->src[X], i, i1, i2, i3) + (i == k ? h : 0)) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double x =
            at(t->src[X], i, i1, i2, i3) + (i == k ? h : 0) - mean;
        sum += x * x;
        dot += x * at(t->src[DY], i, i1, i2, i3);
    }
    by = p.op == GGUF_OP_L2_NORM ? fmax(sqrt(sum), (double)p.param[0])
                                 : sqrt(sum / (double)n + (double)p.param[0]);
    return dot / by;
}

static double f_norm(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3, double *tol)
{
    const double h = 1e-4;
    const double v =
        (norm_sum(t, i0, h, i1, i2, i3) - norm_sum(t, i0, -h, i1, i2, i3)) /
        (2 * h);
    *tol = 2 * ulp(t, v) + 1e-6;
    return v;
}

static void check_elements(void)
{
    for (int k = 0; k < N_SHAPES; k++)
        for (int l = 0; l < N_LAYOUTS; l++)
            for (int ty = 0; ty < N_FLOATS; ty++) {
                const int64_t *s = shapes[k];
                ctx_t *c = new_ctx();
                tensor *x = source(c, float_types[ty], (enum layout)l, s[0],
                                   s[1], s[2], s[3]);
                tensor *dy =
                    source(c, float_types[(ty + l) % N_FLOATS],
                           (enum layout)(l ^ 1), s[0], s[1], s[2], s[3]);
                run_case(c, gguf_op_unary_back(c, gguf_op_gelu(c, x), dy),
                         f_unary, "gelu, shape %d, %s, %s", k, layout_names[l],
                         type_name(x));
                run_case(c,
                         gguf_op_unary_back(c, gguf_op_clamp(c, x, -1, 2), dy),
                         f_unary, "clamp, shape %d, %s, %s", k,
                         layout_names[l], type_name(x));
                gguf_ctx_destroy(c);
            }
}

static void check_norms(void)
{
    static const int64_t shape[][4] = { { 33, 6, 3, 2 },
                                        { 70, 40, 1, 1 },
                                        { 2, 1, 1, 1 } };
    for (size_t k = 0; k < GG_LEN(shape); k++)
        for (int l = 0; l < N_LAYOUTS; l++)
            for (int kind = 0; kind < 3; kind++) {
                const int64_t *s = shape[k];
                ctx_t *c = new_ctx();
                tensor *x = source(c, GGUF_DTYPE_F32, (enum layout)l, s[0],
                                   s[1], s[2], s[3]);
                tensor *dy = source(c, GGUF_DTYPE_F32, (enum layout)(l ^ 1),
                                    s[0], s[1], s[2], s[3]);
                tensor *y = kind == 0   ? gguf_op_norm(c, x, 1e-2f)
                            : kind == 1 ? gguf_op_rms_norm(c, x, 1e-2f)
                                        : gguf_op_l2_norm(c, x, 0.5f);
                run_case(c, gguf_op_norm_back(c, y, dy), f_norm,
                         "%s, shape %d, %s", gguf_op_name(y->op), (int)k,
                         layout_names[l]);
                gguf_ctx_destroy(c);
            }
}

/* --- rotary embedding ----------------------------------------------------- */

/* The result is attn_factor^2 times x, the source of the embedding. */
static double f_rope(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3, double *tol)
{
    struct gguf_rope r;
    memcpy(&r, t->op_params, sizeof r);
    const tensor *x = t->src[0]->src[0];
    const double f = (double)r.attn_factor * (double)r.attn_factor;
    const int64_t n = r.kind == GGUF_ROPE_VISION ? 2 * r.n_dims : r.n_dims;
    const double v = at(x, i0, i1, i2, i3) * (i0 < n ? f : 1);
    *tol = 1e-5;
    return v;
}

static void check_rope(void)
{
    for (int kind = GGUF_ROPE_NORM; kind <= GGUF_ROPE_VISION; kind++)
        for (int ff = 0; ff < 2; ff++) {
            ctx_t *c = new_ctx();
            struct gguf_rope r = GGUF_ROPE_INIT;
            const int64_t n_pos = kind < GGUF_ROPE_MROPE ? 1 : 4;
            r.kind = kind;
            r.n_dims = 16;
            r.attn_factor = 0.75f;
            for (int i = 0; i < 4; i++)
                r.sections[i] = kind == GGUF_ROPE_VISION ? 4 : 2;
            tensor *x = source(c, GGUF_DTYPE_F32, PADDED, 40, 3, 30, 2);
            tensor *pos = gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 30 * n_pos);
            tensor *factors =
                ff ? between(c, PLAIN, 16, 1, 1, 1, 0.5, 2) : NULL;
            set_ids(pos, 1000);
            tensor *y = gguf_op_rope(c, x, pos, factors, &r);
            run_case(c, gguf_op_rope_back(c, y, y), f_rope,
                     "rope_back, kind %d%s", kind, ff ? ", factors" : "");
            gguf_ctx_destroy(c);
        }
}

/* --- sums ----------------------------------------------------------------- */

static double f_repeat(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tol)
{
    const tensor *a = t->src[0];
    double sum = 0;
    for (int64_t l = i3; l < a->ne[3]; l += t->ne[3])
        for (int64_t k = i2; k < a->ne[2]; k += t->ne[2])
            for (int64_t j = i1; j < a->ne[1]; j += t->ne[1])
                for (int64_t i = i0; i < a->ne[0]; i += t->ne[0])
                    sum += at(a, i, j, k, l);
    *tol = ulp(t, sum) + 1e-12;
    return sum;
}

static double f_rows(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3, double *tol)
{
    const tensor *a = t->src[0], *ids = t->src[1];
    double sum = 0, all = 0;
    for (int64_t r = 0; r < a->ne[1]; r++)
        if ((int64_t)at(ids, r, i2, i3, 0) == i1) {
            sum += at(a, i0, r, i2, i3);
            all += fabs(at(a, i0, r, i2, i3));
        }
    *tol = 20 * ulp(t, all);
    return sum;
}

static const tensor *viewed; /* the view whose gradient is computed */

/* Sum of the elements of dy whose place in the viewed tensor is that of the
 * result's element. */
static double f_view(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3, double *tol)
{
    const tensor *v = viewed, *a = v->src[0], *dy = t->src[0];
    const char *place = (const char *)a->data + i0 * a->nb[0] + i1 * a->nb[1] +
                        i2 * a->nb[2] + i3 * a->nb[3];
    double sum = 0;
    for (int64_t i = 0; i < gguf_tensor_n_elements(dy); i++) {
        const int64_t n = dy->ne[0], m = n * dy->ne[1], q = m * dy->ne[2];
        if ((const char *)v->data + i % n * v->nb[0] +
                i / n % dy->ne[1] * v->nb[1] + i / m % dy->ne[2] * v->nb[2] +
                i / q * v->nb[3] ==
            place)
            sum += linear(dy, i);
    }
    *tol = 4 * ulp(t, sum) + 1e-6;
    return sum;
}

static void check_sums(void)
{
    static const int64_t to[][4] = { { 12, 30, 4, 2 }, { 12, 1, 1, 1 },
                                     { 1, 30, 4, 2 },  { 1, 1, 1, 1 },
                                     { 4, 10, 2, 1 },  { 6, 30, 1, 2 } };
    for (size_t k = 0; k < GG_LEN(to); k++)
        for (int l = 0; l < N_LAYOUTS; l++) {
            ctx_t *c = new_ctx();
            tensor *a =
                source(c, GGUF_DTYPE_F32, (enum layout)l, 12, 30, 4, 2);
            run_case(c,
                     gguf_op_repeat_back(c, a, to[k][0], to[k][1], to[k][2],
                                         to[k][3]),
                     f_repeat, "repeat_back to shape %d, %s", (int)k,
                     layout_names[l]);
            tensor *ids = gguf_tensor_create_3d(c, GGUF_DTYPE_I32, 30, 4, 2);
            set_ids(ids, 11);
            run_case(c, gguf_op_get_rows_back(c, a, ids, 13), f_rows,
                     "get_rows_back, %s", layout_names[l]);
            gguf_ctx_destroy(c);
        }
}

static void check_views(void)
{
    for (int l = 0; l < N_LAYOUTS; l++)
        for (int k = 0; k < 2; k++) {
            ctx_t *c = new_ctx();
            tensor *a = source(c, GGUF_DTYPE_F32, k ? TRANSPOSED : PLAIN, 20,
                               16, 4, 2);
            tensor *v =
                k ? gguf_op_view_4d(c, a, 1, 16, 3, 2, a->nb[1], a->nb[2],
                                    a->nb[3], (uint64_t)(3 * a->nb[0]))
                  : gguf_op_view_4d(c, a, 18, 30, 3, 2, 40, a->nb[2], a->nb[3],
                                    8);
            tensor *dy = source(c, GGUF_DTYPE_F32, (enum layout)l, v->ne[0],
                                v->ne[1], v->ne[2], v->ne[3]);
            viewed = v;
            run_case(c, gguf_op_view_back(c, v, dy), f_view,
                     "view_back of %s, dy %s",
                     k ? "a transposed tensor" : "overlapping rows",
                     layout_names[l]);
            gguf_ctx_destroy(c);
        }
}

/* --- failures ------------------------------------------------------------- */

static void check_refused(void)
{
    ctx_t *c = new_ctx();
#define F32(n0, n1) gguf_tensor_create_2d(c, GGUF_DTYPE_F32, n0, n1)
#define I32(n0, n1) gguf_tensor_create_2d(c, GGUF_DTYPE_I32, n0, n1)
    refused(c, gguf_op_unary_back(c, gguf_op_norm(c, F32(3, 2), 0), F32(3, 2)),
            GGUF_E_INVALID, "unary_back", "results of norm");
    refused(c, gguf_op_norm_back(c, gguf_op_silu(c, F32(3, 2)), F32(3, 2)),
            GGUF_E_INVALID, "norm_back", "results of silu");
    refused(c, gguf_op_unary_back(c, gguf_op_silu(c, F32(3, 2)), F32(3, 1)),
            GGUF_E_SHAPE, "shapes differ");
    refused(c, gguf_op_unary_back(c, gguf_op_silu(c, F32(3, 2)), I32(3, 2)),
            GGUF_E_TYPE, "floats");
    refused(c, gguf_op_unary_back(c, NULL, F32(3, 2)), GGUF_E_INVALID,
            "source 0 is NULL");
    refused(c, gguf_op_unary_back(c, F32(3, 2), F32(3, 2)), GGUF_E_INVALID,
            "unary_back");
    refused(c, gguf_op_rope_back(c, F32(4, 2), F32(4, 2)), GGUF_E_INVALID,
            "source 1 is NULL");
    refused(c, gguf_op_repeat_back(c, F32(4, 2), 3, 1, 1, 1), GGUF_E_SHAPE,
            "no repetition of [3, 1, 1, 1]");
    refused(c, gguf_op_repeat_back(c, F32(4, 2), 4, -1, 1, 1), GGUF_E_SHAPE,
            "dimension 1 is -1");
    refused(c, gguf_op_repeat_back(c, I32(4, 2), 4, 1, 1, 1), GGUF_E_TYPE,
            "float");
    refused(c, gguf_op_get_rows_back(c, F32(4, 2), I32(3, 1), 5), GGUF_E_SHAPE,
            "do not match");
    refused(c, gguf_op_get_rows_back(c, F32(4, 2), F32(2, 1), 5), GGUF_E_TYPE,
            "i32");
    refused(c, gguf_op_get_rows_back(c, I32(4, 2), I32(2, 1), 5), GGUF_E_TYPE,
            "float");
    refused(c, gguf_op_get_rows_back(c, F32(4, 2), I32(2, 1), -5),
            GGUF_E_SHAPE, "-5 rows");
    refused(
        c,
        gguf_op_view_back(c, gguf_op_view_1d(c, F32(4, 2), 3, 0), F32(4, 1)),
        GGUF_E_SHAPE, "does not match the view");
    refused(
        c,
        gguf_op_view_back(c, gguf_op_view_1d(c, F32(4, 2), 3, 0), I32(3, 1)),
        GGUF_E_TYPE, "float");
    refused(c, gguf_op_view_back(c, F32(3, 1), F32(3, 1)), GGUF_E_INVALID,
            "source 0 is NULL");
    /* a row of a transposed tensor that runs on into the next slice */
    tensor *a = gguf_op_transpose(
        c, gguf_tensor_create_3d(c, GGUF_DTYPE_F32, 4, 3, 2));
    refused(c,
            gguf_op_view_back(c, gguf_op_view_2d(c, a, 1, 6, a->nb[1], 0),
                              F32(1, 6)),
            GGUF_E_SHAPE, "the view does not match its source");
#undef F32
#undef I32
    /* an index that is out of range */
    tensor *x = source(c, GGUF_DTYPE_F32, PLAIN, 4, 3, 1, 1);
    tensor *ids = gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 3);
    struct gguf_error err = { 0 };
    struct gguf_graph *g = gguf_graph_create(c, 8);
    memcpy(ids->data, (int32_t[]){ 0, 5, 1 }, 12);
    gguf_graph_add(g, gguf_op_get_rows_back(c, x, ids, 5));
    ok(gguf_backend_compute(ops_backends[1], g, &err) == GGUF_E_INVALID &&
           strstr(err.message, "row 5 of 5"),
       "get_rows_back: %s", err.message);
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_elements();
    check_norms();
    check_rope();
    check_sums();
    check_views();
    check_refused();
    ops_end();
    return done_testing();
}
