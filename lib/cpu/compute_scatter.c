/* SPDX-License-Identifier: MIT */
/* compute_scatter.c - sums of repetitions, of rows with one number, and of
 * elements with one place
 *
 * Terms are added in the order of the source, whatever the number of threads.
 */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <inttypes.h>
#include <string.h>

static bool scatter_supports(const struct gguf_tensor *t,
                             const struct gg_kern *kern)
{
    return gg_row_can_load(kern, t->src[0]) && gg_row_is_plain(t);
}

/* --- repetitions ---------------------------------------------------------- */

/* Scratch: a source row, and sums in double. */
static int64_t scratch_len(const struct gguf_tensor *t)
{
    return GG_MAX(t->src[0]->ne[0], 2 * t->ne[0]);
}

static size_t repeat_back_work(const struct gguf_tensor *t, unsigned nth,
                               const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(scratch_len(t), 2, nth);
}

/* Add n elements of x to n_sum sums, again and again. */
static void add_repeated(double *sum, int64_t n_sum, const float *x, int64_t n)
{
    for (int64_t from = 0; from < n; from += n_sum)
        for (int64_t i = 0; i < n_sum; i++)
            sum[i] += (double)x[from + i];
}

static void repeat_back(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *a = t->src[0];
    float *tmp = gg_row_tmp(task, scratch_len(t), 2, 0);
    double *sum = (double *)(void *)gg_row_tmp(task, scratch_len(t), 2, 1);
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos p = rows.p;
        float *y = gg_row(t, p);
        memset(sum, 0, (size_t)t->ne[0] * sizeof *sum);
        for (int64_t k = p.i3; k < a->ne[3]; k += t->ne[3])
            for (int64_t j = p.i2; j < a->ne[2]; j += t->ne[2])
                for (int64_t i = p.i1; i < a->ne[1]; i += t->ne[1])
                    add_repeated(sum, t->ne[0],
                                 gg_row_load(task->kern, a,
                                             gg_row_at(a, i, j, k), tmp,
                                             a->ne[0]),
                                 a->ne[0]);
        for (int64_t i = 0; i < t->ne[0]; i++)
            y[i] = (float)sum[i];
    }
}

/* --- rows by number ------------------------------------------------------- */

static size_t scatter_work(const struct gguf_tensor *t, unsigned nth,
                           const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(t->src[0]->ne[0], 1, nth);
}

/* Number of row i of slice (i2, i3), or -1 after a failure. */
static int64_t row_number(const struct gguf_tensor *t, int64_t i, int64_t i2,
                          int64_t i3, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *ids = t->src[1];
    int32_t k;
    memcpy(&k, (const char *)gg_row_at(ids, i2, i3, 0) + i * ids->nb[0],
           sizeof k);
    if (k >= 0 && k < t->ne[1])
        return k;
    gg_cpu_fail(task, GGUF_E_INVALID, "%s: row %" PRId32 " of %" PRId64,
                gguf_op_name(t->op), k, t->ne[1]);
    return -1;
}

static void add_row(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

/* A thread owns the rows of the result whose number is ith modulo nth. */
static void get_rows_back(struct gguf_tensor *t,
                          const struct gg_cpu_task *task)
{
    const struct gguf_tensor *a = t->src[0];
    float *tmp = gg_row_tmp(task, a->ne[0], 1, 0);
    const size_t size = (size_t)t->ne[0] * sizeof(float);
    const int64_t nth = task->nth;
    if (gguf_tensor_is_empty(t))
        return;
    for (int64_t i3 = 0; i3 < t->ne[3]; i3++)
        for (int64_t i2 = 0; i2 < t->ne[2]; i2++) {
            for (int64_t k = task->ith; k < t->ne[1]; k += nth)
                memset(gg_row_at(t, k, i2, i3), 0, size);
            for (int64_t i = 0; i < a->ne[1]; i++) {
                const int64_t k = row_number(t, i, i2, i3, task);
                if (k < 0)
                    return;
                if (k % nth == task->ith)
                    add_row(gg_row_at(t, k, i2, i3),
                            gg_row_load(task->kern, a, gg_row_at(a, i, i2, i3),
                                        tmp, a->ne[0]),
                            a->ne[0]);
            }
        }
}

/* --- views ---------------------------------------------------------------- */

/* Are the places of all elements different? They are if each step is longer
 * than all that smaller steps reach. */
static bool places_differ(const struct gguf_tensor *dy,
                          const struct gguf_view_back_params *p)
{
    int64_t reach = 0;
    bool done[GGUF_TENSOR_DIMS] = { false };
    for (int k = 0; k < GGUF_TENSOR_DIMS; k++) {
        int best = -1;
        for (int d = 0; d < GGUF_TENSOR_DIMS; d++)
            if (!done[d] && (best < 0 || p->step[d] < p->step[best]))
                best = d;
        done[best] = true;
        if (dy->ne[best] <= 1)
            continue;
        if (p->step[best] <= reach)
            return false;
        reach += p->step[best] * (dy->ne[best] - 1);
    }
    return true;
}

static void view_back(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *dy = t->src[0];
    float *tmp = gg_row_tmp(task, dy->ne[0], 1, 0), *y = t->data;
    struct gguf_view_back_params p;
    int64_t at, end;
    memcpy(&p, t->op_params, sizeof p);
    gg_cpu_share(task, gguf_tensor_n_elements(t), &at, &end);
    memset(y + at, 0, (size_t)(end - at) * sizeof *y);
    if (task->nth > 1)
        gg_barrier_wait(task->barrier);
    if (gguf_tensor_is_empty(dy) || (task->ith && !places_differ(dy, &p)))
        return;
    if (places_differ(dy, &p))
        gg_cpu_share(task, gguf_tensor_n_rows(dy), &at, &end);
    else
        at = 0, end = gguf_tensor_n_rows(dy);
    struct gg_cpu_pos r = gg_cpu_pos_at(dy, at);
    for (; at < end; at++, gg_cpu_pos_next(dy, &r)) {
        const float *x =
            gg_row_load(task->kern, dy, gg_row(dy, r), tmp, dy->ne[0]);
        float *to =
            y + p.off + r.i1 * p.step[1] + r.i2 * p.step[2] + r.i3 * p.step[3];
        for (int64_t i = 0; i < dy->ne[0]; i++)
            to[i * p.step[0]] += x[i];
    }
}

GG_CPU_OP(repeat_back, repeat_back, repeat_back_work, scatter_supports, true);
GG_CPU_OP(get_rows_back, get_rows_back, scatter_work, scatter_supports, false);
GG_CPU_OP(view_back, view_back, scatter_work, scatter_supports, false);
