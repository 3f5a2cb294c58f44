/* SPDX-License-Identifier: MIT */
/* compute_hyper.c - how streams meet: a row of coefficients for each token
 *
 * Rows are short: they are computed in double and rounded once.
 */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Column src of c [n, n] becomes its softmax plus eps. */
static void soften_column(double *c, size_t n, double eps)
{
    double max = c[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        max = fmax(max, c[i]);
    for (size_t i = 0; i < n; i++)
        sum += c[i] = exp(c[i] - max);
    for (size_t i = 0; i < n; i++)
        c[i] = c[i] / sum + eps;
}

/* Divide n elements, step apart, by their sum plus eps. */
static void divide_by_sum(double *c, size_t n, size_t step, double eps)
{
    double sum = eps;
    for (size_t i = 0; i < n; i++)
        sum += c[i * step];
    for (size_t i = 0; i < n; i++)
        c[i * step] /= sum;
}

static void sinkhorn(double *c, const struct gguf_hyper_params *p)
{
    const size_t n = (size_t)p->n;
    const double eps = (double)p->eps;
    for (size_t src = 0; src < n; src++)
        soften_column(c + src * n, n, eps);
    for (size_t dst = 0; dst < n; dst++)
        divide_by_sum(c + dst, n, n, eps);
    for (int32_t k = 1; k < p->n_iter; k++) {
        for (size_t src = 0; src < n; src++)
            divide_by_sum(c + src * n, n, 1, eps);
        for (size_t dst = 0; dst < n; dst++)
            divide_by_sum(c + dst, n, n, eps);
    }
}

static void put_coefficients(float *y, const float *x, const float *base,
                             const float *scale,
                             const struct gguf_hyper_params *p, bool all)
{
    double c[GGUF_HYPER_MAX * GGUF_HYPER_MAX];
    const size_t n = (size_t)p->n;
    for (size_t i = 0; i < n; i++)
        y[i] = (float)(sigmoid((double)x[i] * (double)scale[0] +
                               (double)base[i]) +
                       (double)p->eps);
    if (!all)
        return;
    for (size_t i = n; i < 2 * n; i++)
        y[i] = (float)(2 * sigmoid((double)x[i] * (double)scale[1] +
                                   (double)base[i]));
    for (size_t i = 0; i < n * n; i++)
        c[i] =
            (double)x[2 * n + i] * (double)scale[2] + (double)base[2 * n + i];
    sinkhorn(c, p);
    for (size_t i = 0; i < n * n; i++)
        y[2 * n + i] = (float)c[i];
}

static void compute_hyper(struct gguf_tensor *t,
                          const struct gg_cpu_task *task)
{
    const struct gguf_tensor *z = t->src[0];
    const int64_t n = t->ne[0];
    float *tmp_x = gg_row_tmp(task, n, GG_CPU_TMP_ROWS, 0);
    float *tmp_y = gg_row_tmp(task, n, GG_CPU_TMP_ROWS, 1);
    struct gguf_hyper_params p;
    memcpy(&p, t->op_params, sizeof p);
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const float *x =
            gg_row_load(task->kern, z, gg_row(z, rows.p), tmp_x, n);
        float *y = gg_row_out(t, gg_row(t, rows.p), tmp_y);
        put_coefficients(y, x, t->src[1]->data, t->src[2]->data, &p, n != p.n);
        gg_row_store(task->kern, t, gg_row(t, rows.p), y);
    }
}

GG_CPU_OP_ROWS(hyper, compute_hyper);
