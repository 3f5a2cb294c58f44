/* SPDX-License-Identifier: MIT */
/* check-matmul.c - matrix products and attention */
#include "config.h"
#include "cpu/matmul.h"
#include "cpu/compute_table.h"
#include "tests/cpu/ops.h"

/* Sum over the rows of both sources; for out_prod over their columns. */
static double f_product(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                        int64_t i3, double *tol)
{
    const tensor *a = t->src[0], *b = t->src[1];
    const bool outer = t->op == GGUF_OP_OUT_PROD;
    const int64_t n = a->ne[outer], a2 = i2 / (b->ne[2] / a->ne[2]),
                  a3 = i3 / (b->ne[3] / a->ne[3]);
    double v = 0, sum = 0;
    for (int64_t p = 0; p < n; p++) {
        double x = outer ? at(a, i0, p, a2, a3) * at(b, i1, p, i2, i3)
                         : at(a, p, i0, a2, a3) * at(b, p, i1, i2, i3);
        v += x;
        sum += fabs(x);
    }
    *tol = (double)(n + 1) * 0x1p-24 * sum; /* any order of additions */
    return v;
}

static void check_matmul(void)
{
    static const int64_t cases[][7] = {
        /* k, m, n, a2, a3, b2, b3 */
        { 64, 10, 7, 1, 1, 1, 1 },  { 256, 33, 1, 1, 1, 1, 1 },
        { 32, 17, 20, 2, 1, 4, 1 }, { 32, 9, 5, 2, 3, 2, 6 },
        { 32, 9, 5, 1, 1, 3, 2 },   { 64, 100, 70, 1, 1, 1, 1 },
        { 64, 9, 1, 1, 1, 5, 2 },   { 32, 0, 5, 1, 1, 1, 1 },
        { 32, 4, 0, 1, 1, 1, 1 },   { 0, 4, 3, 1, 1, 1, 1 },
    };
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16,
                                      GGUF_DTYPE_Q8_0, GGUF_DTYPE_Q4_0 };
    for (int k = 0; k < 10; k++)
        for (int d = 0; d < 4; d++)
            for (int l = PLAIN; l <= SWAPPED; l++) {
                const int64_t *n = cases[k];
                ctx_t *c = new_ctx();
                tensor *a = source(c, types[d], (enum layout)l, n[0], n[1],
                                   n[3], n[4]);
                tensor *b = source(c, GGUF_DTYPE_F32, (enum layout)l, n[0],
                                   n[2], n[5], n[6]);
                run_case(c, gguf_op_matmul(c, a, b), f_product,
                         "matmul %s %s, case %d", layout_names[l],
                         gguf_dtype_find(types[d])->name, k);
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
    for (int k = 0; k < 12; k++) {
        ctx_t *c = new_ctx();
        int64_t n_tok = k & 1 ? 1 : 23, n_b = k & 2 ? 1 : 4;
        tensor *a =
            source(c, types[k % 3], (enum layout)(k % 2), 64, 19, 7, 1);
        tensor *b =
            source(c, GGUF_DTYPE_F32, (enum layout)(k % 3), 64, n_b, n_tok, 1);
        tensor *ids = gguf_tensor_create_2d(c, GGUF_DTYPE_I32, 4, n_tok);
        set_ids(ids, k & 4 ? 2 : 7);
        run_case(c, gguf_op_matmul_id(c, a, b, ids), f_matmul_id,
                 "matmul_id %d", k);
        gguf_ctx_destroy(c);
    }
}

/* Many matrices (mixture of experts): most are computed by one thread, and one
 * has too many columns for that; few tokens, with one or two columns per
 * matrix; and rows of length 0, whose results are 0. */
static void check_many_matrices(void)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_Q8_0 };
    for (int k = 0; k < 10; k++) {
        ctx_t *c = new_ctx();
        const int64_t n_tok = k & 1 ? 9 : 150, steps = k < 8 ? 64 : 0;
        tensor *a = source(c, types[k / 2 % 2], PLAIN, steps, 40, 24, 1);
        tensor *b = source(c, GGUF_DTYPE_F32, k & 4 ? SWAPPED : PADDED, steps,
                           k & 4 ? 3 : 1, n_tok, 1);
        tensor *ids = gguf_tensor_create_2d(c, GGUF_DTYPE_I32, 3, n_tok);
        set_ids(ids, 24);
        for (int64_t i = 0; i < n_tok; i++) /* more columns than one thread
                                             * takes */
            ((int32_t *)ids->data)[3 * i] = 17;
        run_case(c, gguf_op_matmul_id(c, a, b, ids), f_matmul_id,
                 "matmul_id of 24 matrices, %d", k);
        gguf_ctx_destroy(c);
    }
}

static void check_out_prod(void)
{
    static const int64_t cases[][7] = {
        /* m, n, k, a2, a3, b2, b3 */
        { 64, 10, 7, 1, 1, 1, 1 }, { 33, 1, 40, 2, 1, 4, 1 },
        { 5, 17, 20, 2, 3, 2, 6 }, { 1, 1, 1, 1, 1, 1, 1 },
        { 0, 3, 5, 1, 1, 1, 1 },   { 4, 0, 5, 1, 1, 1, 1 },
        { 4, 3, 0, 1, 1, 1, 1 },   { 100, 70, 64, 1, 1, 1, 1 },
    };
    for (int k = 0; k < 8; k++)
        for (int v = 0; v < N_LAYOUTS * N_LAYOUTS; v++) {
            const int64_t *n = cases[k];
            ctx_t *c = new_ctx();
            enum layout la = (enum layout)(v / N_LAYOUTS);
            enum layout lb = (enum layout)(v % N_LAYOUTS);
            tensor *a =
                source(c, float_types[v % 3], la, n[0], n[2], n[3], n[4]);
            tensor *b =
                source(c, float_types[k % 3], lb, n[1], n[2], n[5], n[6]);
            run_case(c, gguf_op_out_prod(c, a, b), f_product,
                     "out_prod %s %s by %s %s, case %d", layout_names[la],
                     type_name(a), layout_names[lb], type_name(b), k);
            gguf_ctx_destroy(c);
        }
}

static double f_attention(const tensor *t, int64_t i0, int64_t head,
                          int64_t tok, int64_t seq, double *tol)
{
    const tensor *q = t->src[0], *k = t->src[1], *v = t->src[2];
    const tensor *m = t->src[3], *sinks = t->src[4];
    struct gguf_attn_params p;
    memcpy(&p, t->op_params, sizeof p);
    int64_t hk = head / (q->ne[2] / k->ne[2]), n = k->ne[1];
    double slope = slope_of(p.max_bias, head, q->ne[2]);
    double sum = 0, out = 0, part = 0;
    static double s[256],
        max; /* maximum and sum of the row that i0 = 0 began */
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
    if (sinks) {
        double sink = at(sinks, head, 0, 0, 0);
        max = fmax(max, sink);
        sum = exp(sink - max);
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
        { 64, 64, 7, 40, 4, 2, 1 },   { 32, 64, 1, 200, 6, 6, 2 },
        { 96, 32, 30, 150, 4, 1, 1 }, { 64, 64, 3, 0, 2, 1, 1 },
        { 64, 64, 0, 9, 2, 1, 1 },
    };
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16,
                                      GGUF_DTYPE_Q8_0 };
    for (int k = 0; k < 5; k++)
        for (int d = 0; d < 3; d++)
            for (int w = 0; w < 9; w++) {
                const int64_t *n = cases[k];
                enum layout l = (enum layout)(w % 3);
                ctx_t *c = new_ctx();
                tensor *q =
                    source(c, GGUF_DTYPE_F32, l, n[0], n[2], n[4], n[6]);
                tensor *kk = source(c, types[d], l, n[0], n[3], n[5], n[6]);
                tensor *v = source(c, types[d], l, n[1], n[3], n[5], n[6]);
                tensor *m = NULL;
                tensor *sinks = NULL;
                if (w > 5)
                    sinks = between(c, PLAIN, n[4], 1, 1, 1, -2, 5);
                if (w && w != 7) {
                    m = source(c, w & 1 ? GGUF_DTYPE_F16 : GGUF_DTYPE_F32,
                               PLAIN, n[3], n[2] + 1, 1, w > 3 ? n[6] : 1);
                    for (int64_t i = 0; i < n[3] * n[2] / 2; i++) {
                        int64_t e =
                            (int64_t)rnd_below((uint64_t)(n[3] * n[2]));
                        if (m->dtype == GGUF_DTYPE_F16)
                            ((uint16_t *)m->data)[e] = 0xfc00;
                        else
                            ((float *)m->data)[e] = -INFINITY;
                    }
                }
                run_case(c,
                         gguf_op_attention_sinks(c, q, kk, v, m, sinks, 0.125f,
                                                 w % 4 == 0 && w ? 8.0f : 0,
                                                 w == 5 || w == 8 ? 3.0f : 0),
                         f_attention, "attention %s %s, case %d, way %d",
                         layout_names[l], gguf_dtype_find(types[d])->name, k,
                         w);
                gguf_ctx_destroy(c);
            }
}

/* Work memory of a product with any number of columns up to most. */
static size_t product_size(int64_t most, unsigned nth)
{
    size_t size = 0;
    struct gg_cpu_gemm_args g = { .kern = &ops_kern,
                                  .dtype_index =
                                      gg_dtype_index(GGUF_DTYPE_F32),
                                  .m = 24,
                                  .k = 16 };
    for (g.n = 1; g.n <= most; g.n++)
        size = GG_MAX(size, gg_cpu_gemm_work_size(&g, nth));
    return size + (size_t)gg_cpu_gemm_max_strided_cols(&g) * (16 + 24) *
                      sizeof(float);
}

/* Work memory is large enough, however the ids divide the columns: for all of
 * them with one matrix, and for the columns that each thread takes alone. The
 * columns are not all copied. */
static void check_work(void)
{
    static const int64_t tokens[] = { 1, 5, 1000, 1024, 1030, 1100, 1537 };
    enum { N_MATRICES = 6, ALONE = 128 };
    ctx_t *c = new_ctx();
    tensor *a = gguf_tensor_create_3d(c, GGUF_DTYPE_F32, 16, 24, N_MATRICES);
    for (size_t i = 0; i < GG_LEN(tokens); i++) {
        const int64_t n = tokens[i];
        tensor *b = gguf_tensor_create_3d(c, GGUF_DTYPE_F32, 16, 1, n);
        tensor *ids = gguf_tensor_create_2d(c, GGUF_DTYPE_I32, 1, n);
        tensor *t = gguf_op_matmul_id(c, a, b, ids);
        const size_t lists = (size_t)n * 2 * sizeof(void *);
        const size_t least =
            GG_MAX(product_size(n, 3),
                   3 * product_size(GG_MIN(n, (int64_t)ALONE), 1));
        const size_t size =
            gg_cpu_op_row(GGUF_OP_MATMUL_ID)->work(t, 3, &ops_kern);
        ok(size >= lists + least && size < lists + least + 4096,
           "matmul_id of %d columns has room for all of them", (int)n);
    }
    gguf_ctx_destroy(c);
}

static void check_refused(void)
{
    ctx_t *c = new_ctx();
#define F32(n0, n1, n2) gguf_tensor_create_3d(c, GGUF_DTYPE_F32, n0, n1, n2)
    refused(c, gguf_op_out_prod(c, F32(4, 2, 1), F32(4, 3, 1)), GGUF_E_SHAPE,
            "out_prod", "2 and 3 vectors", "[4, 2]", "[4, 3]");
    refused(c, gguf_op_out_prod(c, F32(4, 2, 2), F32(4, 2, 3)), GGUF_E_SHAPE,
            "do not broadcast");
    refused(c, gguf_op_out_prod(c, F32(4, 2, 0), F32(4, 2, 3)), GGUF_E_SHAPE,
            "do not broadcast");
    refused(c,
            gguf_op_attention_sinks(c, F32(4, 2, 2), F32(4, 3, 1),
                                    F32(4, 3, 1), NULL, F32(3, 1, 1), 1, 0, 0),
            GGUF_E_SHAPE, "3 sinks for 2 heads", "[4, 2, 2]", "[3]");
#define ROWS(n0, n1, n3)                                                      \
    gguf_tensor_create_4d(c, GGUF_DTYPE_F32, n0, n1, 1, n3)
    refused(c,
            gguf_op_attention(c, ROWS(4, 2, 4), ROWS(4, 3, 4), ROWS(4, 3, 4),
                              ROWS(3, 2, 2), 1, 0, 0),
            GGUF_E_SHAPE, "masks of 2 sequences for 4", "[3, 2, 1, 2]");
#undef ROWS
#undef F32
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_matmul();
    check_matmul_id();
    check_many_matrices();
    check_out_prod();
    check_attention();
    check_work();
    check_refused();
    ops_end();
    return done_testing();
}
