/* op_row.c - norms and soft-max: one result row from one source row */
#include "config.h"
#include "cpu/attn.h"
#include "cpu/optab.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

/* A function of a row: y may be x. */
typedef void row_fn(const struct gguf_tensor *t,
                    const struct gg_cpu_task *task, struct gg_pos p, float *y,
                    const float *x);

enum { TMP_X, TMP_MASK, TMP_OUT, N_TMP }; /* as gg_cpu_elem_work has them */

static void each_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                     row_fn *fn)
{
    const struct gguf_tensor *a = t->src[0];
    const int64_t n = t->ne[0];
    float *tmp_x = gg_row_tmp(task, n, N_TMP, TMP_X);
    float *tmp_y = gg_row_tmp(task, n, N_TMP, TMP_OUT);
    int64_t r, end;
    if (gguf_tensor_is_empty(t))
        return;
    gg_cpu_share(task, gguf_tensor_n_rows(t), &r, &end);
    struct gg_pos p = gg_pos_at(t, r);
    for (; r < end; r++, gg_pos_next(t, &p)) {
        const float *x = gg_row_load(task->kern, a, gg_row(a, p), tmp_x, n);
        float *y = gg_row_out(t, gg_row(t, p), tmp_y);
        fn(t, task, p, y, x);
        gg_row_store(task->kern, t, gg_row(t, p), y);
    }
}

static void norm_row(const struct gguf_tensor *t,
                     const struct gg_cpu_task *task, struct gg_pos p, float *y,
                     const float *x)
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
                         const struct gg_cpu_task *task, struct gg_pos p,
                         float *y, const float *x)
{
    float eps;
    (void)p;
    memcpy(&eps, t->op_params, sizeof eps);
    task->kern->vec.rms_norm(y, x, NULL, (size_t)t->ne[0], eps);
}

static void l2_norm_row(const struct gguf_tensor *t,
                        const struct gg_cpu_task *task, struct gg_pos p,
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
                       const struct gg_cpu_task *task, struct gg_pos p,
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

static void soft_max_row(const struct gguf_tensor *t,
                         const struct gg_cpu_task *task, struct gg_pos p,
                         float *y, const float *x)
{
    const struct gguf_tensor *mask = t->src[1];
    struct gguf_soft_max_params par;
    const float *m = NULL;
    memcpy(&par, t->op_params, sizeof par);
    if (mask)
        m = gg_row_load(task->kern, mask,
                        gg_row_at(mask, p.i1, p.i2 % mask->ne[2],
                                  p.i3 % mask->ne[3]),
                        gg_row_tmp(task, t->ne[0], N_TMP, TMP_MASK), t->ne[0]);
    task->kern->vec.soft_max(y, x, m, (size_t)t->ne[0], par.scale,
                             gg_attn_slope(par.max_bias, p.i2, t->ne[2]));
}

void gg_cpu_norm(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    each_row(t, task, norm_row);
}

void gg_cpu_rms_norm(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    each_row(t, task, rms_norm_row);
}

void gg_cpu_soft_max(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    each_row(t, task, soft_max_row);
}

void gg_cpu_l2_norm(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    each_row(t, task, l2_norm_row);
}

void gg_cpu_cumsum(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    each_row(t, task, cumsum_row);
}
