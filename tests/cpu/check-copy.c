/* SPDX-License-Identifier: MIT */
/* check-copy.c - copies, get_rows and set_rows */
#include "config.h"
#include "tests/cpu/ops.h"

static double f_cpy(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                    int64_t i3, double *tol)
{
    int64_t i = i0 + t->ne[0] * (i1 + t->ne[1] * (i2 + t->ne[2] * i3));
    double v = linear(t->src[0], i);
    *tol = t->dtype == t->src[0]->dtype || t->dtype == GGUF_DTYPE_F32
               ? 0
               : ulp(t, v);
    /* half a step (a whole one at the end of Q4_0's range), and 127 or 8 times
     * the rounding of the scale to F16 */
    double most = t->src[0]->dtype == GGUF_DTYPE_I32 ? 1000 : 3;
    if (t->dtype == GGUF_DTYPE_Q8_0)
        *tol = most * (0.5 / 127 + 0x1p-11);
    if (t->dtype == GGUF_DTYPE_Q4_0)
        *tol = most * (1.0 / 8 + 0x1p-11);
    return v;
}

static void check_copies(void)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32,  GGUF_DTYPE_F16,
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
                    if (t && gguf_backend_supports_op(ops_backends[0], t))
                        run_case(c, t, f_cpy, "%s", name);
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

/* Row i1 of the destination: the last source row with that number; else 7,
 * which the case wrote there. */
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

static void check_rows(void)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32,  GGUF_DTYPE_F16,
                                      GGUF_DTYPE_BF16, GGUF_DTYPE_Q8_0,
                                      GGUF_DTYPE_Q4_0, GGUF_DTYPE_Q4_K,
                                      GGUF_DTYPE_Q6_K, GGUF_DTYPE_I32 };
    for (int k = 0; k < 8; k++) {
        const char *type = gguf_dtype_find(types[k])->name;
        for (int l = PLAIN; l <= SWAPPED; l++) {
            ctx_t *c = new_ctx();
            tensor *a = source(c, types[k], (enum layout)l, 256, 9, 2, 3);
            tensor *ids = gguf_tensor_create_3d(c, GGUF_DTYPE_I32, 13, 2, 3);
            set_ids(ids, 9);
            run_case(c, gguf_op_get_rows(c, a, ids), f_get_rows,
                     "get_rows %s %s", layout_names[l], type);
            gguf_ctx_destroy(c);
            if (k > 3)
                continue;
            c = new_ctx();
            a = source(c, types[k], (enum layout)l, 64, 20, 2, 3);
            float seven[64];
            for (int i = 0; i < 64; i++)
                seven[i] = 7;
            for (int i = 0; i < 20 * 6; i++)
                ops_kern.codec[gg_dtype_index(types[k])].encode(
                    seven,
                    (char *)a->data + i % 20 * a->nb[1] +
                        i / 20 % 2 * a->nb[2] + i / 40 * a->nb[3],
                    1, 64, NULL);
            tensor *s =
                source(c, GGUF_DTYPE_F32, (enum layout)l, 64, 12, 2, 3);
            ids = gguf_tensor_create_3d(c, GGUF_DTYPE_I32, 12,
                                        l == PLAIN ? 2 : 1, 3);
            set_ids(ids, 20);
            run_case(c, gguf_op_set_rows(c, a, s, ids), f_set_rows,
                     "set_rows %s %s", layout_names[l], type);
            gguf_ctx_destroy(c);
        }
    }
}

int main(void)
{
    ops_begin();
    check_copies();
    check_rows();
    ops_end();
    return done_testing();
}
