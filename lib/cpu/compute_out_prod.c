/* SPDX-License-Identifier: MIT */
/* compute_out_prod.c - sums of outer products: rows of a, weighted */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"

#include <string.h>

static size_t out_prod_work(const struct gguf_tensor *t, unsigned nth,
                            const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(t->ne[0], 1, nth);
}

/* Row j of the result is the sum over p of b[j, p] times row p of a. */
static void out_prod(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    float *tmp = gg_row_tmp(task, t->ne[0], 1, 0);
    const int64_t r2 = t->ne[2] / a->ne[2], r3 = t->ne[3] / a->ne[3];
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos at = rows.p;
        float *y = gg_row(t, at);
        memset(y, 0, (size_t)t->ne[0] * sizeof *y);
        for (int64_t p = 0; p < a->ne[1]; p++) {
            const float *x = gg_row_load(
                task->kern, a, gg_row_at(a, p, at.i2 / r2, at.i3 / r3), tmp,
                a->ne[0]);
            const float w = gg_row_get(task->kern, b,
                                       gg_row_at(b, p, at.i2, at.i3), at.i1);
            for (int64_t i = 0; i < t->ne[0]; i++)
                y[i] += w * x[i];
        }
    }
}

GG_CPU_OP(out_prod, out_prod, out_prod_work, gg_cpu_elem_supports, true);
