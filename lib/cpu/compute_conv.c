/* SPDX-License-Identifier: MIT */
/* compute_conv.c - convolutions row by row: a row of data, weighted and
 * shifted, added to a row of the result */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <string.h>

enum { TMP_DATA, TMP_KERNEL, N_TMP };

static int64_t longest_row(const struct gguf_tensor *t)
{
    return GG_MAX(t->src[0]->ne[0], t->src[1]->ne[0]);
}

static size_t conv_work(const struct gguf_tensor *t, unsigned nth,
                        const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(longest_row(t), N_TMP, nth);
}

/* Range of the i of n with i * stride + off in [0, limit). */
static void range_within(int64_t n, int64_t stride, int64_t off, int64_t limit,
                         int64_t *begin, int64_t *end)
{
    *begin = off < 0 ? (stride - 1 - off) / stride : 0;
    *end = off < limit ? GG_MIN(n, (limit - 1 - off) / stride + 1) : 0;
}

/* y[i] += w * x[i * stride + off], where that is one of n_x. */
static void gather_tap(float *y, int64_t n_y, const float *x, int64_t n_x,
                       int64_t stride, int64_t off, float w)
{
    int64_t i, end;
    range_within(n_y, stride, off, n_x, &i, &end);
    if (stride == 1) /* side by side: a compiler may use its vectors */
        for (; i < end; i++)
            y[i] += w * x[i + off];
    else
        for (; i < end; i++)
            y[i] += w * x[i * stride + off];
}

/* y[i * stride + off] += w * x[i], where that is one of n_y. */
static void scatter_tap(float *y, int64_t n_y, const float *x, int64_t n_x,
                        int64_t stride, int64_t off, float w)
{
    int64_t i, end;
    range_within(n_x, stride, off, n_y, &i, &end);
    for (; i < end; i++)
        y[i * stride + off] += w * x[i];
}

/* Add a kernel's row times row x of the data to row y of the result. */
typedef void add_fn(float *y, int64_t n_y, const float *x, int64_t n_x,
                    int64_t stride, int64_t off, float w);

/* A result's row of channel p.i2: its sources are row i1 of channel c of the
 * data, and a row of the kernel. */
struct row {
    struct gguf_tensor *t;
    const struct gg_cpu_task *task;
    const struct gguf_conv_params *par;
    float *y;
    struct gg_cpu_pos p;
};

static void add_row(const struct row *r, int64_t i1, int64_t c,
                    const void *kernel_row, add_fn *add)
{
    const struct gguf_tensor *k = r->t->src[0], *data = r->t->src[1];
    const struct gg_cpu_task *task = r->task;
    const struct gguf_window *win = &r->par->window;
    const int64_t n = longest_row(r->t);
    const float *w =
        gg_row_load(task->kern, k, kernel_row,
                    gg_row_tmp(task, n, N_TMP, TMP_KERNEL), k->ne[0]);
    const float *x =
        gg_row_load(task->kern, data, gg_row_at(data, i1, c, r->p.i3),
                    gg_row_tmp(task, n, N_TMP, TMP_DATA), data->ne[0]);
    for (int64_t j = 0; j < k->ne[0]; j++)
        add(r->y, r->t->ne[0], x, data->ne[0], win->stride[0],
            j * win->dilation[0] - win->pad[0], w[j]);
}

static void conv_row(const struct row *r)
{
    const struct gguf_tensor *k = r->t->src[0], *data = r->t->src[1];
    const struct gguf_window *win = &r->par->window;
    const int64_t c0 =
        r->par->depthwise ? r->p.i2 / (k->ne[3] / data->ne[2]) : 0;
    for (int64_t c = 0; c < k->ne[2]; c++)
        for (int64_t j = 0; j < k->ne[1]; j++) {
            const int64_t i1 =
                r->p.i1 * win->stride[1] + j * win->dilation[1] - win->pad[1];
            if (i1 >= 0 && i1 < data->ne[1])
                add_row(r, i1, c0 + c, gg_row_at(k, j, c, r->p.i2),
                        gather_tap);
        }
}

static void conv_transpose_row(const struct row *r)
{
    const struct gguf_tensor *k = r->t->src[0], *data = r->t->src[1];
    const struct gguf_window *win = &r->par->window;
    for (int64_t c = 0; c < k->ne[3]; c++)
        for (int64_t j = 0; j < k->ne[1]; j++) {
            const int64_t i = r->p.i1 - j * win->dilation[1] + win->pad[1];
            if (i >= 0 && i % win->stride[1] == 0 &&
                i / win->stride[1] < data->ne[1])
                add_row(r, i / win->stride[1], c, gg_row_at(k, j, r->p.i2, c),
                        scatter_tap);
        }
}

static void each_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                     void (*fn)(const struct row *))
{
    struct gguf_conv_params par;
    memcpy(&par, t->op_params, sizeof par);
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct row r = { t, task, &par, gg_row(t, rows.p), rows.p };
        memset(r.y, 0, (size_t)t->ne[0] * sizeof *r.y);
        fn(&r);
    }
}

static void compute_conv(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    each_row(t, task, conv_row);
}

static void conv_transpose(struct gguf_tensor *t,
                           const struct gg_cpu_task *task)
{
    each_row(t, task, conv_transpose_row);
}

/* --- im2col --------------------------------------------------------------- */

/* The elements of channel c and kernel row j in the window at (o0, o1). */
static void fill_part(float *y, const struct gguf_tensor *data,
                      const struct gg_kern *kern,
                      const struct gguf_window *win, struct gg_cpu_pos o,
                      int64_t c, int64_t j)
{
    const int64_t i1 =
        o.i2 * win->stride[1] + j * win->dilation[1] - win->pad[1];
    const int64_t i0 = o.i1 * win->stride[0] - win->pad[0];
    const bool inside = i1 >= 0 && i1 < data->ne[1];
    const void *row = inside ? gg_row_at(data, i1, c, o.i3) : NULL;
    for (int64_t k = 0; k < win->size[0]; k++) {
        const int64_t i = i0 + k * win->dilation[0];
        y[k] = row && i >= 0 && i < data->ne[0]
                   ? gg_row_get(kern, data, row, i)
                   : 0;
    }
}

static void im2col(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *data = t->src[0];
    struct gguf_conv_params par;
    memcpy(&par, t->op_params, sizeof par);
    const struct gguf_window *win = &par.window;
    float *tmp =
        gg_row_tmp(task, t->ne[0], 3, 0); /* the rows of gg_cpu_elem_work() */
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos p = rows.p;
        float *y = gg_row_out(t, gg_row(t, p), tmp), *at = y;
        for (int64_t c = 0; c < data->ne[2]; c++)
            for (int64_t j = 0; j < win->size[1]; j++, at += win->size[0])
                fill_part(at, data, task->kern, win, p, c, j);
        gg_row_store(task->kern, t, gg_row(t, p), y);
    }
}

GG_CPU_OP(conv, compute_conv, conv_work, gg_cpu_elem_supports, true);
GG_CPU_OP(conv_transpose, conv_transpose, conv_work, gg_cpu_elem_supports,
          true);
GG_CPU_OP_ROWS(im2col, im2col);
