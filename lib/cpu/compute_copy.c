/* SPDX-License-Identifier: MIT */
/* compute_copy.c - copies: any shapes, strides and types; rows by number
 *
 * A copy goes by rows of the destination; its row r holds the elements from
 * r * ne[0] on of the source, in the source's order.
 */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"
#include "graph/op_table.h"

#include <string.h>

enum { TMP_ROW, TMP_SRC, N_TMP };

static int64_t block_len(const struct gguf_tensor *t)
{
    return (int64_t)gguf_dtype_find(t->dtype)->block_len;
}

/* Ways to copy, the first that can is taken. */
enum way {
    WAY_NONE,
    WAY_BYTES,   /* both contiguous, one type: as one run of bytes */
    WAY_ROWS,    /* same type and shape: rows of bytes */
    WAY_SCALARS, /* same type of single elements, any strides */
    WAY_FLOATS   /* decode and encode */
};

static enum way choose_copy(const struct gguf_tensor *s,
                            const struct gguf_tensor *d,
                            const struct gg_kern *kern)
{
    if (s->dtype == d->dtype) {
        if (gguf_tensor_is_contiguous(s) && gguf_tensor_is_contiguous(d))
            return WAY_BYTES;
        if (gguf_tensor_same_shape(s, d) &&
            gguf_tensor_has_contiguous_rows(s) &&
            gguf_tensor_has_contiguous_rows(d))
            return WAY_ROWS;
        return block_len(s) == 1 ? WAY_SCALARS : WAY_NONE;
    }
    if (gg_row_can_load(kern, s) && gg_row_can_store(kern, d))
        return WAY_FLOATS;
    return WAY_NONE;
}

static bool copy_supports(const struct gguf_tensor *t,
                          const struct gg_kern *kern)
{
    return choose_copy(t->src[0], t, kern) != WAY_NONE;
}

static size_t copy_work(const struct gguf_tensor *t, unsigned nth,
                        const struct gg_kern *kern)
{
    const struct gguf_tensor *s = t->src[0], *d = t;
    if (choose_copy(s, d, kern) != WAY_FLOATS)
        return 0;
    return gg_row_work(GG_MAX(s->ne[0], d->ne[0]), N_TMP, nth);
}

static void copy_bytes(const struct gguf_tensor *s,
                       const struct gguf_tensor *d,
                       const struct gg_cpu_task *task)
{
    int64_t at, end;
    if (s->data == d->data)
        return;
    gg_cpu_share(task, (int64_t)gguf_tensor_size(d), &at, &end);
    memcpy((char *)d->data + at, (const char *)s->data + at,
           (size_t)(end - at));
}

static void copy_rows(const struct gguf_tensor *s, const struct gguf_tensor *d,
                      const struct gg_cpu_task *task)
{
    uint64_t size;
    int64_t r, end;
    if (gguf_dtype_row_size(s->dtype, (uint64_t)s->ne[0], &size, NULL))
        return; /* not of a tensor that was made */
    gg_cpu_share(task, gguf_tensor_n_rows(d), &r, &end);
    struct gg_cpu_pos p = gg_cpu_pos_at(d, r);
    for (; r < end; r++, gg_cpu_pos_next(d, &p))
        if (gg_row(d, p) != gg_row(s, p))
            memcpy(gg_row(d, p), gg_row(s, p), (size_t)size);
}

static void copy_run(char *d, int64_t d_nb, const char *s, int64_t s_nb,
                     int64_t n, int64_t size)
{
    if (d_nb == size && s_nb == size) {
        memcpy(d, s, (size_t)(n * size));
        return;
    }
    for (int64_t i = 0; i < n; i++, d += d_nb, s += s_nb) {
        if (size == 4) /* a constant size is one move */
            memcpy(d, s, 4);
        else if (size == 2)
            memcpy(d, s, 2);
        else
            memcpy(d, s, (size_t)size);
    }
}

static void copy_scalars(const struct gguf_tensor *s,
                         const struct gguf_tensor *d,
                         const struct gg_cpu_task *task)
{
    const int64_t size = (int64_t)gguf_dtype_find(s->dtype)->block_size;
    int64_t r, end;
    gg_cpu_share(task, gguf_tensor_n_rows(d), &r, &end);
    struct gg_cpu_pos p = gg_cpu_pos_at(d, r),
                      q = gg_cpu_pos_at(s, r * d->ne[0] / s->ne[0]);
    int64_t i0 = r * d->ne[0] % s->ne[0]; /* position in row q of the source */
    for (; r < end; r++, gg_cpu_pos_next(d, &p)) {
        for (int64_t at = 0, n; at < d->ne[0]; at += n) {
            n = GG_MIN(d->ne[0] - at, s->ne[0] - i0);
            copy_run((char *)gg_row(d, p) + at * d->nb[0], d->nb[0],
                     (const char *)gg_row(s, q) + i0 * s->nb[0], s->nb[0], n,
                     size);
            i0 += n;
            if (i0 == s->ne[0]) {
                i0 = 0;
                gg_cpu_pos_next(s, &q);
            }
        }
    }
}

static void copy_floats(const struct gguf_tensor *s,
                        const struct gguf_tensor *d,
                        const struct gg_cpu_task *task)
{
    const int64_t longest = GG_MAX(s->ne[0], d->ne[0]);
    float *row = gg_row_tmp(task, longest, N_TMP, TMP_ROW);
    float *tmp = gg_row_tmp(task, longest, N_TMP, TMP_SRC);
    int64_t r, end;
    gg_cpu_share(task, gguf_tensor_n_rows(d), &r, &end);
    if (r == end)
        return;
    struct gg_cpu_pos p = gg_cpu_pos_at(d, r),
                      q = gg_cpu_pos_at(s, r * d->ne[0] / s->ne[0]);
    int64_t i0 = r * d->ne[0] % s->ne[0];
    const float *x = gg_row_load(task->kern, s, gg_row(s, q), tmp, s->ne[0]);
    for (int64_t left = end - r; left; left--, gg_cpu_pos_next(d, &p)) {
        for (int64_t at = 0, n; at < d->ne[0]; at += n) {
            if (i0 == s->ne[0]) {
                i0 = 0;
                gg_cpu_pos_next(s, &q);
                x = gg_row_load(task->kern, s, gg_row(s, q), tmp, s->ne[0]);
            }
            n = GG_MIN(d->ne[0] - at, s->ne[0] - i0);
            memcpy(row + at, x + i0, (size_t)n * sizeof *row);
            i0 += n;
        }
        gg_row_store(task->kern, d, gg_row(d, p), row);
    }
}

static void compute_copy(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *s = t->src[0], *d = t;
    if (gguf_tensor_is_empty(d))
        return;
    switch (choose_copy(s, d, task->kern)) {
    case WAY_BYTES: copy_bytes(s, d, task); break;
    case WAY_ROWS: copy_rows(s, d, task); break;
    case WAY_SCALARS: copy_scalars(s, d, task); break;
    case WAY_FLOATS: copy_floats(s, d, task); break;
    case WAY_NONE: break;
    }
}

/* --- rows by number ------------------------------------------------------- */

/* Number at (i0, i1, i2), or -1 if it is not in [0, n): a failure. */
static int64_t row_number(const struct gguf_tensor *t,
                          const struct gguf_tensor *ids, int64_t i0,
                          int64_t i1, int64_t i2, int64_t n,
                          const struct gg_cpu_task *task)
{
    const char *p = gg_row_at(ids, i1, i2, 0);
    int64_t k;
    if (ids->dtype == GGUF_DTYPE_I64) {
        memcpy(&k, p + i0 * ids->nb[0], sizeof k);
    } else {
        int32_t k32;
        memcpy(&k32, p + i0 * ids->nb[0], sizeof k32);
        k = k32;
    }
    if (k >= 0 && k < n)
        return k;
    char name[160];
    gg_cpu_fail(task, GGUF_E_INVALID, "%s: row %" PRId64 " of %s",
                gguf_op_name(t->op), k,
                gguf_tensor_format(t->src[0], name, sizeof name));
    return -1;
}

static bool get_rows_supports(const struct gguf_tensor *t,
                              const struct gg_kern *kern)
{
    const struct gguf_tensor *a = t->src[0];
    return gguf_tensor_has_contiguous_rows(a) &&
           (a->dtype == GGUF_DTYPE_I32 || gg_row_can_load(kern, a));
}

static void get_rows(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *a = t->src[0], *ids = t->src[1];
    const size_t size = (size_t)t->ne[0] * 4;
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows)) {
        const struct gg_cpu_pos p = rows.p;
        int64_t k = row_number(t, ids, p.i1, p.i2, p.i3, a->ne[1], task);
        if (k < 0)
            return;
        const void *from = gg_row_at(a, k, p.i2, p.i3);
        void *to = gg_row(t, p);
        const void *x = a->dtype == GGUF_DTYPE_I32
                            ? from
                            : gg_row_load(task->kern, a, from, to, t->ne[0]);
        if (x != to)
            memcpy(to, x, size);
    }
}

static size_t set_rows_work(const struct gguf_tensor *t, unsigned nth,
                            const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(t->ne[0], 1, nth);
}

static bool set_rows_supports(const struct gguf_tensor *t,
                              const struct gg_kern *kern)
{
    return gg_row_can_store(kern, t) && gg_row_can_load(kern, t->src[1]);
}

/* A thread writes the rows whose number is ith modulo nth, in the order of the
 * sources: of two for one row the last wins, whatever nth is. */
static void set_rows(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *s = t->src[1], *ids = t->src[2];
    float *tmp = gg_row_tmp(task, t->ne[0], 1, 0);
    if (gguf_tensor_is_empty(s))
        return;
    struct gg_cpu_pos p = gg_cpu_pos_at(s, 0);
    for (int64_t r = 0; r < gguf_tensor_n_rows(s);
         r++, gg_cpu_pos_next(s, &p)) {
        int64_t k = row_number(t, ids, p.i1, p.i2 % ids->ne[1],
                               p.i3 % ids->ne[2], t->ne[1], task);
        if (k < 0)
            return;
        if ((uint64_t)k % task->nth != task->ith)
            continue;
        gg_row_store(task->kern, t, gg_row_at(t, k, p.i2, p.i3),
                     gg_row_load(task->kern, s, gg_row(s, p), tmp, s->ne[0]));
    }
}

GG_CPU_OP(dup, compute_copy, copy_work, copy_supports, false);
GG_CPU_OP(cpy, compute_copy, copy_work, copy_supports, false);
GG_CPU_OP(get_rows, get_rows, NULL, get_rows_supports, true);
GG_CPU_OP(set_rows, set_rows, set_rows_work, set_rows_supports, false);
