/* SPDX-License-Identifier: MIT */
/* compute_pool.c - pooling, and the embedding of time steps */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

/* Pooled value of a window of a. */
struct sum {
    float max;
    double sum;
    int64_t inside;
};

/* The window whose first element, perhaps outside of a, is (i0, i1). */
static struct sum window_sum(const struct gguf_tensor *a,
                             const struct gg_kern *kern,
                             const struct gguf_window *win, int64_t i0,
                             int64_t i1, struct gg_cpu_pos p)
{
    struct sum s = { -INFINITY, 0, 0 };
    for (int32_t j = 0; j < win->size[1]; j++, i1 += win->dilation[1]) {
        if (i1 < 0 || i1 >= a->ne[1])
            continue;
        const void *row = gg_row_at(a, i1, p.i2, p.i3);
        int64_t i = i0;
        for (int32_t k = 0; k < win->size[0]; k++, i += win->dilation[0]) {
            if (i < 0 || i >= a->ne[0])
                continue;
            const float x = gg_row_get(kern, a, row, i);
            s.max = x > s.max || x != x ? x : s.max;
            s.sum += x;
            s.inside++;
        }
    }
    return s;
}

static float pooled_value(const struct sum *s,
                          const struct gguf_conv_params *par)
{
    const struct gguf_window *win = &par->window;
    switch (par->kind) {
    case GGUF_POOL_AVG:
        return (float)(s->sum / ((double)win->size[0] * win->size[1]));
    case GGUF_POOL_AVG_INSIDE:
        return s->inside ? (float)(s->sum / (double)s->inside) : 0;
    default: return s->max;
    }
}

static void compute_pool(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    struct gguf_conv_params par;
    memcpy(&par, t->op_params, sizeof par);
    const struct gguf_window *win = &par.window;
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos p = rows.p;
        float *y = gg_row(t, p);
        for (int64_t o = 0; o < t->ne[0]; o++) {
            const struct sum s = window_sum(
                t->src[0], task->kern, win, o * win->stride[0] - win->pad[0],
                p.i1 * win->stride[1] - win->pad[1], p);
            y[o] = pooled_value(&s, &par);
        }
    }
}

/* Angles in double: a step may be in the thousands. */
static void compute_timestep(struct gguf_tensor *t,
                             const struct gg_cpu_task *task)
{
    const int64_t half = t->op_params[0] / 2;
    const double period = log((double)t->op_params[1]);
    int64_t r, end;
    if (gguf_tensor_is_empty(t))
        return;
    gg_cpu_share(task, t->ne[1], &r, &end);
    for (; r < end; r++) {
        float *y = gg_row_at(t, r, 0, 0);
        const double step =
            (double)gg_row_get(task->kern, t->src[0], t->src[0]->data, r);
        for (int64_t j = 0; j < half; j++) {
            const double angle =
                step * exp(-period * (double)j / (double)half);
            y[j] = (float)cos(angle);
            y[half + j] = (float)sin(angle);
        }
        if (t->ne[0] % 2)
            y[t->ne[0] - 1] = 0;
    }
}

GG_CPU_OP(pool, compute_pool, NULL, gg_cpu_elem_supports, true);
GG_CPU_OP(timestep_embedding, compute_timestep, NULL, gg_cpu_elem_supports,
          true);
