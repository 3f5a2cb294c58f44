/* SPDX-License-Identifier: MIT */
/* op_reduce.c - sums, largest elements and orders of rows
 *
 * Rows of the source are shared out; the sum of everything adds up the rows'
 * sums in order, on one thread.
 */
#include "config.h"
#include "cpu/optab.h"
#include "cpu/row.h"
#include "base/sort.h"

#include <math.h>

enum { TMP_ROW, TMP_ORDER, N_TMP };

static size_t reduce_work(const struct gguf_tensor *t, unsigned nth,
                          const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(t->src[0]->ne[0], N_TMP, nth);
}

static bool reduce_supports(const struct gguf_tensor *t,
                            const struct gg_kern *kern)
{
    return gg_row_can_load(kern, t->src[0]);
}

static double sum_of(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* The result of row r, number r in the result's order. */
typedef void reduce_fn(struct gguf_tensor *t, const struct gg_cpu_task *task,
                       int64_t r, const float *x, int64_t n);

static void each_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                     reduce_fn *fn)
{
    const struct gguf_tensor *a = t->src[0];
    float *tmp = gg_row_tmp(task, a->ne[0], N_TMP, TMP_ROW);
    int64_t r, end;
    if (!gguf_tensor_n_rows(a))
        return;
    gg_cpu_share(task, gguf_tensor_n_rows(a), &r, &end);
    struct gg_cpu_pos p = gg_cpu_pos_at(a, r);
    for (; r < end; r++, gg_cpu_pos_next(a, &p))
        fn(t, task, r, gg_row_load(task->kern, a, gg_row(a, p), tmp, a->ne[0]),
           a->ne[0]);
}

static void sum_run(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *a = t->src[0];
    float *tmp = gg_row_tmp(task, a->ne[0], N_TMP, TMP_ROW);
    double sum = 0;
    if (task->ith)
        return;
    struct gg_cpu_pos p = { 0, 0, 0 };
    for (int64_t r = gguf_tensor_n_rows(a); r; r--, gg_cpu_pos_next(a, &p))
        sum += sum_of(gg_row_load(task->kern, a, gg_row(a, p), tmp, a->ne[0]),
                      a->ne[0]);
    *(float *)t->data = (float)sum;
}

static void sum_rows_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                         int64_t r, const float *x, int64_t n)
{
    (void)task;
    ((float *)t->data)[r] = (float)sum_of(x, n);
}

static void mean_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                     int64_t r, const float *x, int64_t n)
{
    (void)task;
    ((float *)t->data)[r] = (float)(sum_of(x, n) / (double)n);
}

static void argmax_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                       int64_t r, const float *x, int64_t n)
{
    int64_t best = 0;
    (void)task;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    ((int32_t *)t->data)[r] = (int32_t)best;
}

struct values {
    const float *x;
    bool down;
};

/* By value, NaN last, then by number. */
static bool after(const void *values, int32_t i, int32_t k)
{
    const struct values *v = values;
    const float a = v->x[i], b = v->x[k];
    if (isnan(a) || isnan(b))
        return isnan(a) && !isnan(b);
    return v->down ? a < b : a > b;
}

static void argsort_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                        int64_t r, const float *x, int64_t n)
{
    const struct values v = { x, t->op_params[0] != 0 };
    gg_sort((int32_t *)t->data + r * n,
            (int32_t *)gg_row_tmp(task, n, N_TMP, TMP_ORDER), (size_t)n, after,
            &v);
}

/* Numbers of rows; shared by the rows of the source. */
#define REDUCE(name)                                                          \
    GG_CPU_OP(name, name##_run, reduce_work, reduce_supports, false)
#define REDUCE_ROWS(name)                                                     \
    static void name##_run(struct gguf_tensor *t,                             \
                           const struct gg_cpu_task *task)                    \
    {                                                                         \
        each_row(t, task, name##_row);                                        \
    }                                                                         \
    REDUCE(name);

REDUCE(sum);
REDUCE_ROWS(sum_rows)
REDUCE_ROWS(mean)
REDUCE_ROWS(argmax)
REDUCE_ROWS(argsort)
