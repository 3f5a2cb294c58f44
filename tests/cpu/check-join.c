/* SPDX-License-Identifier: MIT */
/* check-join.c - concat, repeat, pad, roll */
#include "config.h"
#include "tests/cpu/ops.h"

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

static void check_joins(void)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16,
                                      GGUF_DTYPE_Q8_0, GGUF_DTYPE_I32 };
    for (int l = 0; l < N_LAYOUTS; l++)
        for (int d = 0; d < 4; d++) {
            if (types[d] == GGUF_DTYPE_Q8_0 && l == TRANSPOSED)
                continue;
            ctx_t *c = new_ctx();
            tensor *a = source(c, types[d], (enum layout)l, 64, 6, 3, 2);
            const char *type = gguf_dtype_find(types[d])->name;
            for (unsigned dim = 0; dim < 4; dim++) {
                int64_t n[] = { 64, 6, 3, 2 };
                n[dim] = dim ? 4 : 96;
                tensor *b = source(c, types[d],
                                   (enum layout)(types[d] == GGUF_DTYPE_Q8_0
                                                     ? PLAIN
                                                     : N_LAYOUTS - 1 - l),
                                   n[0], n[1], n[2], n[3]);
                run_case(c, gguf_op_concat(c, a, b, dim), f_concat,
                         "concat %s %s, dimension %u", layout_names[l], type,
                         dim);
                run_case(c, gguf_op_concat(c, a, a, dim), f_concat,
                         "concat %s %s with itself, dimension %u",
                         layout_names[l], type, dim);
            }
            run_case(c, gguf_op_repeat(c, a, 128, 6, 9, 4), f_repeat,
                     "repeat %s %s", layout_names[l], type);
            if (types[d] != GGUF_DTYPE_Q8_0) {
                run_case(c, gguf_op_pad(c, a, 3, 1, 0, 2), f_pad, "pad %s %s",
                         layout_names[l], type);
                run_case(c, gguf_op_roll(c, a, 7, -3, 70, 1), f_roll,
                         "roll %s %s", layout_names[l], type);
            }
            gguf_ctx_destroy(c);
        }
}

int main(void)
{
    ops_begin();
    check_joins();
    ops_end();
    return done_testing();
}
