/* SPDX-License-Identifier: MIT */
/* compute_join.c - concatenate, repeat, pad, roll: elements moved as bytes */
#include "config.h"
#include "cpu/compute_table.h"
#include "cpu/row.h"

#include <string.h>

/* Blocks are moved whole: their rows must lie together. */
static bool join_supports(const struct gguf_tensor *t,
                          const struct gg_kern *kern)
{
    (void)kern;
    for (int i = 0; i < GGUF_TENSOR_SRC && t->src[i]; i++) {
        const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
        if (info->row_header || (info->block_len > 1 &&
                                 !gguf_tensor_has_contiguous_rows(t->src[i])))
            return false;
    }
    return true;
}

/* n blocks from one place to another that is contiguous. */
static void move_blocks(char *to, const char *from, int64_t from_nb, int64_t n,
                        int64_t size)
{
    if (from_nb == size) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * size, from + i * from_nb, (size_t)size);
}

/* Function that fills one row of the result. */
typedef void fill_fn(const struct gguf_tensor *t, char *row,
                     struct gg_cpu_pos p, int64_t size, int64_t block_len);

static void each_row(struct gguf_tensor *t, const struct gg_cpu_task *task,
                     fill_fn *fn)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    for (struct gg_cpu_rows rows = gg_cpu_rows_share(t, task); rows.left;
         gg_cpu_rows_next(t, &rows))
        fn(t, gg_row(t, rows.p), rows.p, info->block_size, info->block_len);
}

static void concat_row(const struct gguf_tensor *t, char *row,
                       struct gg_cpu_pos p, int64_t size, int64_t block_len)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    int64_t at[GGUF_TENSOR_DIMS] = { 0, p.i1, p.i2, p.i3 };
    int32_t dim = t->op_params[0];
    if (dim == 0) {
        int64_t n = a->ne[0] / block_len;
        move_blocks(row, gg_row(a, p), a->nb[0], n, size);
        move_blocks(row + n * size, gg_row(b, p), b->nb[0],
                    b->ne[0] / block_len, size);
        return;
    }
    const bool in_a = at[dim] < a->ne[dim];
    const struct gguf_tensor *s = in_a ? a : b;
    at[dim] -= in_a ? 0 : a->ne[dim];
    move_blocks(row, gg_row_at(s, at[1], at[2], at[3]), s->nb[0],
                s->ne[0] / block_len, size);
}

static void repeat_row(const struct gguf_tensor *t, char *row,
                       struct gg_cpu_pos p, int64_t size, int64_t block_len)
{
    const struct gguf_tensor *a = t->src[0];
    int64_t n = a->ne[0] / block_len;
    for (int64_t k = 0; k < t->ne[0] / a->ne[0]; k++)
        move_blocks(row + k * n * size, gg_row_mod(a, p), a->nb[0], n, size);
}

static void pad_row(const struct gguf_tensor *t, char *row,
                    struct gg_cpu_pos p, int64_t size, int64_t block_len)
{
    const struct gguf_tensor *a = t->src[0];
    int64_t n = 0;
    (void)block_len;
    if (p.i1 < a->ne[1] && p.i2 < a->ne[2] && p.i3 < a->ne[3]) {
        n = a->ne[0];
        move_blocks(row, gg_row(a, p), a->nb[0], n, size);
    }
    memset(row + n * size, 0, (size_t)((t->ne[0] - n) * size));
}

/* Where element i of dimension d comes from. */
static int64_t rolled_index(const struct gguf_tensor *t, int d, int64_t i)
{
    int64_t k = (i - t->op_params[d]) % t->ne[d];
    return k < 0 ? k + t->ne[d] : k;
}

static void roll_row(const struct gguf_tensor *t, char *row,
                     struct gg_cpu_pos p, int64_t size, int64_t block_len)
{
    const struct gguf_tensor *a = t->src[0];
    const char *from =
        gg_row_at(a, rolled_index(t, 1, p.i1), rolled_index(t, 2, p.i2),
                  rolled_index(t, 3, p.i3));
    int64_t first = rolled_index(t, 0, 0), n = t->ne[0] - first;
    (void)block_len;
    move_blocks(row, from + first * a->nb[0], a->nb[0], n, size);
    move_blocks(row + n * size, from, a->nb[0], first, size);
}

#define JOIN(name)                                                            \
    static void name##_run(struct gguf_tensor *t,                             \
                           const struct gg_cpu_task *task)                    \
    {                                                                         \
        each_row(t, task, name##_row);                                        \
    }                                                                         \
    GG_CPU_OP(name, name##_run, NULL, join_supports, true);

JOIN(concat)
JOIN(repeat)
JOIN(pad)
JOIN(roll)
