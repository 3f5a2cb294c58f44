/* SPDX-License-Identifier: MIT */
/* compute_reduce.c - sums, largest elements and orders of rows
 *
 * Rows of the source are shared out; the sum of everything adds up the rows'
 * sums in order, on one thread.
 */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"

#include "base/bytes.h"
#include "base/sort.h"

#include <math.h>

/* A row of keys, 64 bits each, takes two. */
enum { TMP_ROW, TMP_KEYS, TMP_MORE = TMP_KEYS + 2, N_TMP = TMP_MORE + 2 };

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

/* A number that is in the order of values, NaN the last of all. */
static uint32_t key_of(float x, bool down)
{
    const uint32_t bits = gg_bytes_f32_bits(x + 0.0f); /* -0 is 0 */
    const uint32_t up = bits >> 31 ? ~bits : bits | 0x80000000;
    if (isnan(x))
        return UINT32_MAX;
    return down ? ~up : up;
}

/* By value, then by number. */
static void argsort_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                        int64_t r, const float *x, int64_t n)
{
    uint64_t *key = (void *)gg_row_tmp(task, n, N_TMP, TMP_KEYS);
    uint64_t *tmp = (void *)gg_row_tmp(task, n, N_TMP, TMP_MORE);
    int32_t *order = (int32_t *)t->data + r * n;
    for (int64_t i = 0; i < n; i++)
        key[i] =
            (uint64_t)key_of(x[i], t->op_params[0] != 0) << 32 | (uint64_t)i;
    gg_sort_u64(key, tmp, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)(key[i] & UINT32_MAX);
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
