/* SPDX-License-Identifier: MIT */
/* compute_row.c - norms, masks, soft-max: a result row from a source row */
#include "config.h"
#include "cpu/attn.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

/* A function of a row: y may be x. */
typedef void row_fn(const struct gguf_tensor *t,
                    const struct gg_cpu_task *task, struct gg_cpu_pos p,
                    float *y, const float *x);

enum { TMP_X, TMP_MASK, TMP_OUT, N_TMP = GG_CPU_TMP_ROWS };

static void each_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                     row_fn *fn)
{
    const struct gguf_tensor *a = t->src[0];
    const int64_t n = t->ne[0];
    float *tmp_x = gg_row_tmp(task, n, N_TMP, TMP_X);
    float *tmp_y = gg_row_tmp(task, n, N_TMP, TMP_OUT);
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos p = rows.p;
        const float *x = gg_row_load(task->kern, a, gg_row(a, p), tmp_x, n);
        float *y = gg_row_out(t, gg_row(t, p), tmp_y);
        fn(t, task, p, y, x);
        gg_row_store(task->kern, t, gg_row(t, p), y);
    }
}

static void norm_row(const struct gguf_tensor *t,
                     const struct gg_cpu_task *task, struct gg_cpu_pos p,
                     float *y, const float *x)
{
    const size_t n = (size_t)t->ne[0];
    float eps;
    (void)p;
    memcpy(&eps, t->op_params, sizeof eps);
    double mean = task->kern->vec.sum(x, n) / (double)n, var = 0;
    for (size_t i = 0; i < n; i++)
        var += (x[i] - mean) * (x[i] - mean);
    double scale = 1.0 / sqrt(var / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (float)((x[i] - mean) * scale);
}

static void rms_norm_row(const struct gguf_tensor *t,
                         const struct gg_cpu_task *task, struct gg_cpu_pos p,
                         float *y, const float *x)
{
    float eps;
    (void)p;
    memcpy(&eps, t->op_params, sizeof eps);
    task->kern->vec.rms_norm(y, x, NULL, (size_t)t->ne[0], eps);
}

static void l2_norm_row(const struct gguf_tensor *t,
                        const struct gg_cpu_task *task, struct gg_cpu_pos p,
                        float *y, const float *x)
{
    const size_t n = (size_t)t->ne[0];
    float eps;
    double sum = 0;
    (void)task;
    (void)p;
    memcpy(&eps, t->op_params, sizeof eps);
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    double scale = 1.0 / fmax(sqrt(sum), (double)eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (float)(x[i] * scale);
}

static void cumsum_row(const struct gguf_tensor *t,
                       const struct gg_cpu_task *task, struct gg_cpu_pos p,
                       float *y, const float *x)
{
    double sum = 0;
    (void)task;
    (void)p;
    for (int64_t i = 0; i < t->ne[0]; i++) {
        sum += x[i];
        y[i] = (float)sum;
    }
}

/* Set the elements above the diagonal, from n_past + row + 1 on. */
static void mask_row(const struct gguf_tensor *t, struct gg_cpu_pos p,
                     float *y, const float *x, float value)
{
    const int64_t n = t->ne[0];
    const int64_t open = GG_MIN(n, t->op_params[0] + p.i1 + 1);
    if (y != x)
        memcpy(y, x, (size_t)open * sizeof *y);
    for (int64_t i = open; i < n; i++)
        y[i] = value;
}

static void diag_mask_inf_row(const struct gguf_tensor *t,
                              const struct gg_cpu_task *task,
                              struct gg_cpu_pos p, float *y, const float *x)
{
    (void)task;
    mask_row(t, p, y, x, -INFINITY);
}

static void diag_mask_zero_row(const struct gguf_tensor *t,
                               const struct gg_cpu_task *task,
                               struct gg_cpu_pos p, float *y, const float *x)
{
    (void)task;
    mask_row(t, p, y, x, 0);
}

/* The kernel's steps with one more score than are written. */
static void soft_max_sink(const struct gg_vec_kern *k, float *y,
                          const float *x, const float *mask, size_t n,
                          float scale, float slope, float sink)
{
    float max = k->scores(y, x, mask, n, scale, slope);
    max = sink > max ? sink : max;
    if (max == -INFINITY)
        max = 0;
    double sum = k->exp_sum(y, y, n, max) + k->exp_sum(NULL, &sink, 1, max);
    k->scale(y, y, n, sum == 0 ? 0 : (float)(1 / sum), 0);
}

static void soft_max_row(const struct gguf_tensor *t,
                         const struct gg_cpu_task *task, struct gg_cpu_pos p,
                         float *y, const float *x)
{
    const struct gguf_tensor *mask = t->src[1], *sinks = t->src[2];
    const size_t n = (size_t)t->ne[0];
    struct gguf_soft_max_params par;
    const float *m = NULL;
    memcpy(&par, t->op_params, sizeof par);
    if (mask)
        m = gg_row_load(
            task->kern, mask,
            gg_row_at(mask, p.i1, p.i2 % mask->ne[2], p.i3 % mask->ne[3]),
            gg_row_tmp(task, t->ne[0], N_TMP, TMP_MASK), t->ne[0]);
    const float slope = gg_attn_slope(par.max_bias, p.i2, t->ne[2]);
    if (sinks) {
        float sink;
        memcpy(&sink, (const char *)sinks->data + p.i2 * sinks->nb[0],
               sizeof sink);
        soft_max_sink(&task->kern->vec, y, x, m, n, par.scale, slope, sink);
        return;
    }
    task->kern->vec.soft_max(y, x, m, n, par.scale, slope);
}

GG_CPU_OP_EACH_ROW(norm);
GG_CPU_OP_EACH_ROW(rms_norm);
GG_CPU_OP_EACH_ROW(l2_norm);
GG_CPU_OP_EACH_ROW(cumsum);
GG_CPU_OP_EACH_ROW(diag_mask_inf);
GG_CPU_OP_EACH_ROW(diag_mask_zero);
GG_CPU_OP_EACH_ROW(soft_max);

/* Rows first to end - 1 of slice i3, those of a channel one after the other. */
struct group {
    const struct gguf_tensor *t;
    const struct gg_cpu_task *task;
    int64_t first, end, i3;
};

static const float *group_row(const struct group *g, int64_t r)
{
    const struct gguf_tensor *a = g->t->src[0];
    return gg_row_load(g->task->kern, a,
                       gg_row_at(a, r % a->ne[1], r / a->ne[1], g->i3),
                       gg_row_tmp(g->task, a->ne[0], N_TMP, TMP_X), a->ne[0]);
}

static double group_sum(const struct group *g)
{
    double sum = 0;
    for (int64_t r = g->first; r < g->end; r++)
        sum += g->task->kern->vec.sum(group_row(g, r), (size_t)g->t->ne[0]);
    return sum;
}

static double group_squares(const struct group *g, double mean)
{
    double sum = 0;
    for (int64_t r = g->first; r < g->end; r++) {
        const float *x = group_row(g, r);
        for (int64_t i = 0; i < g->t->ne[0]; i++)
            sum += (x[i] - mean) * (x[i] - mean);
    }
    return sum;
}

static void norm_group(const struct group *g, float eps)
{
    const struct gguf_tensor *t = g->t;
    const int64_t n = t->ne[0];
    const double count = (double)((g->end - g->first) * n);
    const double mean = group_sum(g) / count;
    const double scale =
        1.0 / sqrt(group_squares(g, mean) / count + (double)eps);
    for (int64_t r = g->first; r < g->end; r++) {
        const float *x = group_row(g, r);
        void *row = gg_row_at(t, r % t->ne[1], r / t->ne[1], g->i3);
        float *y = gg_row_out(t, row, gg_row_tmp(g->task, n, N_TMP, TMP_OUT));
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)((x[i] - mean) * scale);
        gg_row_store(g->task->kern, t, row, y);
    }
}

static void group_norm(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    struct gguf_group_norm_params par;
    int64_t i, end;
    memcpy(&par, t->op_params, sizeof par);
    if (gguf_tensor_is_empty(t))
        return;
    const int64_t rows = t->ne[1] * (t->ne[2] / par.n_groups);
    gg_cpu_share(task, par.n_groups * t->ne[3], &i, &end);
    for (; i < end; i++) {
        const int64_t first = i % par.n_groups * rows;
        norm_group(
            &(struct group){ t, task, first, first + rows, i / par.n_groups },
            par.eps);
    }
}

GG_CPU_OP(group_norm, group_norm, gg_cpu_elem_work, gg_cpu_elem_supports,
          false);
