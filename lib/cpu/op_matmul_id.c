/* SPDX-License-Identifier: MIT */
/* op_matmul_id.c - products with a matrix for each column, by number
 *
 * For each matrix that is named: its columns are gathered, multiplied as one
 * product, and the results put where they belong. Which columns meet in one
 * product depends on the numbers alone, not on the team.
 */
#include "config.h"
#include "cpu/gemm.h"
#include "cpu/optab.h"
#include "cpu/panels.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <inttypes.h>
#include <string.h>

/* Scratch: the columns of one matrix, their results, the lists of columns by
 * matrix, then the product's own. */
struct scratch {
    float *x, *y;
    int64_t *first; /* [n_expert + 1] into columns; begun anew each time */
    int64_t *columns;
    void *gemm;
};

static size_t padded(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

static int64_t n_columns(const struct gguf_tensor *t)
{
    return t->ne[1] * t->ne[2];
}

static size_t split_work(const struct gguf_tensor *t, void *work,
                         struct scratch *s)
{
    const size_t n = (size_t)n_columns(t), k = (size_t)t->src[0]->ne[0];
    const size_t size[] = {
        padded(n * k * sizeof(float)),
        padded(n * (size_t)t->ne[0] * sizeof(float)),
        padded(((size_t)t->src[0]->ne[2] + 1) * sizeof(int64_t)),
        padded(n * sizeof(int64_t)),
    };
    size_t sum = 0;
    void **part[] = { (void **)&s->x, (void **)&s->y, (void **)&s->first,
                      (void **)&s->columns };
    for (size_t i = 0; i < GG_LEN(size); i++) {
        *part[i] = work ? (char *)work + sum : NULL;
        sum += size[i];
    }
    s->gemm = work ? (char *)work + sum : NULL;
    return sum;
}

static struct gg_cpu_gemm_args gemm_args(const struct gguf_tensor *t,
                                         const struct gg_kern *kern, float *x,
                                         float *y, int64_t n)
{
    const struct gguf_tensor *a = t->src[0];
    return (struct gg_cpu_gemm_args){
        .kern = kern,
        .form = gg_kern_gemm_form_of(kern, gg_dtype_index(a->dtype)),
        .dtype_index = gg_dtype_index(a->dtype),
        .w = a->data,
        .w_stride = (size_t)a->nb[1],
        .x = x,
        .x_stride = (size_t)a->ne[0] * sizeof(float),
        .y = y,
        .y_stride = (size_t)a->ne[1] * sizeof(float),
        .m = a->ne[1],
        .n = n,
        .k = a->ne[0],
    };
}

static bool product(const struct gguf_tensor *t, const struct gg_kern *kern,
                    struct gg_cpu_gemm_args *a)
{
    *a = gemm_args(t, kern, NULL, NULL, n_columns(t));
    return t->src[0]->ne[3] == 1;
}

static size_t matmul_id_work(const struct gguf_tensor *t, unsigned nth,
                             const struct gg_kern *kern)
{
    struct scratch s;
    struct gg_cpu_gemm_args g = gemm_args(t, kern, NULL, NULL, n_columns(t));
    return split_work(t, NULL, &s) + gg_cpu_gemm_most_work(&g, nth);
}

/* Columns by matrix, each list in order; false: a number out of range. */
static bool sort_columns(const struct gguf_tensor *t, struct scratch *s,
                         const struct gg_cpu_task *task)
{
    const struct gguf_tensor *ids = t->src[2];
    const int64_t n_expert = t->src[0]->ne[2], n = n_columns(t);
    memset(s->first, 0, ((size_t)n_expert + 1) * sizeof *s->first);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t c = 0; c < n; c++) {
            int32_t e;
            memcpy(&e,
                   (const char *)ids->data + c % t->ne[1] * ids->nb[0] +
                       c / t->ne[1] * ids->nb[1],
                   sizeof e);
            if (e < 0 || e >= n_expert) {
                gg_cpu_fail(task, GGUF_E_INVALID,
                            "matmul_id: matrix %" PRId32 " of %" PRId64, e,
                            n_expert);
                return false;
            }
            if (!pass)
                s->first[e + 1]++;
            else
                s->columns[s->first[e]++] = c;
        }
        for (int64_t e = 0; !pass && e < n_expert; e++)
            s->first[e + 1] += s->first[e];
    }
    return true; /* first[e] is now the end of e's list */
}

static void move_columns(struct gguf_tensor *t, const struct gg_cpu_task *task,
                         const struct scratch *s, const int64_t *list,
                         int64_t n, bool in)
{
    const struct gguf_tensor *b = t->src[1];
    int64_t i, end;
    gg_cpu_share(task, n, &i, &end);
    for (; i < end; i++) {
        int64_t u = list[i] % t->ne[1], tok = list[i] / t->ne[1];
        if (in)
            memcpy(s->x + i * b->ne[0], gg_row_at(b, u % b->ne[1], tok, 0),
                   (size_t)b->ne[0] * sizeof(float));
        else
            memcpy(gg_row_at(t, u, tok, 0), s->y + i * t->ne[0],
                   (size_t)t->ne[0] * sizeof(float));
    }
}

/* A matrix that few tokens of many chose: columns of zeros go with them, so
 * that it takes the way of wide products, and last bits do not depend on how
 * many others chose it. */
static int64_t fill_up(const struct gguf_tensor *t,
                       const struct gg_cpu_task *task, const struct scratch *s,
                       int64_t n)
{
    const struct gg_kern *kern = task->kern;
    const int dtype = gg_dtype_index(t->src[0]->dtype);
    const int64_t wide = kern->gemm[gg_kern_gemm_form_of(kern, dtype)].narrow;
    const size_t column = (size_t)t->src[1]->ne[0] * sizeof(float);
    if (t->ne[2] < wide || n >= wide)
        return n;
    if (task->ith == 0)
        memset(s->x + n * t->src[1]->ne[0], 0, (size_t)(wide - n) * column);
    return wide;
}

static void sync(const struct gg_cpu_task *task)
{
    if (task->nth > 1)
        gg_barrier_wait(task->barrier);
}

static void matmul_id(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *a = t->src[0];
    struct scratch s;
    if (gguf_tensor_is_empty(t))
        return;
    split_work(t, task->work, &s);
    if (task->ith == 0 && !sort_columns(t, &s, task))
        s.first[0] = -1; /* seen by all after the barrier */
    sync(task);
    if (s.first[0] < 0)
        return;
    for (int64_t e = 0, begin = 0; e < a->ne[2]; begin = s.first[e++]) {
        const int64_t n = s.first[e] - begin;
        if (!n)
            continue;
        move_columns(t, task, &s, s.columns + begin, n, true);
        const int64_t n_wide = fill_up(t, task, &s, n);
        sync(task);
        struct gg_cpu_gemm_args g = gemm_args(t, task->kern, s.x, s.y, n_wide);
        g.w = gg_row_at(a, 0, e, 0);
        g.kept = gg_cpu_panels_of(task->panels, e);
        gg_cpu_gemm_run(&g, task->ith, task->nth, s.gemm, task->barrier);
        sync(task);
        move_columns(t, task, &s, s.columns + begin, n, false);
    }
}

GG_CPU_PRODUCT(matmul_id, matmul_id, matmul_id_work, gg_cpu_matmul_supports,
               product);
