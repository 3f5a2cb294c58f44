/* SPDX-License-Identifier: MIT */
/* row.h - rows of tensors of any type and stride as floats
 *
 * Operations work on rows of f32. A row that is f32 and contiguous is used in
 * place; any other is decoded into, or encoded from, scratch.
 */
#ifndef GG_CPU_ROW_H
#define GG_CPU_ROW_H

#include "cpu/cpu_task.h"

/* Position of a row: its indices in dimensions 1 to 3. */
struct gg_cpu_pos {
    int64_t i1, i2, i3;
};

/* Position of row r of t, in order. */
static inline struct gg_cpu_pos gg_cpu_pos_at(const struct gguf_tensor *t,
                                              int64_t r)
{
    int64_t n1 = t->ne[1], n2 = t->ne[2];
    return (struct gg_cpu_pos){ r % n1, r / n1 % n2, r / n1 / n2 };
}

/* Advance to the next row of t. */
static inline void gg_cpu_pos_next(const struct gguf_tensor *t,
                                   struct gg_cpu_pos *p)
{
    if (++p->i1 < t->ne[1])
        return;
    p->i1 = 0;
    if (++p->i2 < t->ne[2])
        return;
    p->i2 = 0;
    p->i3++;
}

/* Iterator over this thread's share of the rows of a tensor. */
struct gg_cpu_rows {
    int64_t left;        /* rows that are left; 0: the end */
    struct gg_cpu_pos p; /* current row */
};

/* Iterator at the first row of this thread's share. */
static inline struct gg_cpu_rows
gg_cpu_rows_share(const struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    int64_t begin, end;
    if (gguf_tensor_is_empty(t))
        return (struct gg_cpu_rows){ 0 };
    gg_cpu_share(task, gguf_tensor_n_rows(t), &begin, &end);
    return (struct gg_cpu_rows){ end - begin, gg_cpu_pos_at(t, begin) };
}

/* Advance to the next row. */
static inline void gg_cpu_rows_next(const struct gguf_tensor *t,
                                    struct gg_cpu_rows *rows)
{
    rows->left--;
    gg_cpu_pos_next(t, &rows->p);
}

/* Address of a row of t by its indices. */
static inline void *gg_row_at(const struct gguf_tensor *t, int64_t i1,
                              int64_t i2, int64_t i3)
{
    return (char *)t->data + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3];
}

/* Address of a row of t by its position. */
static inline void *gg_row(const struct gguf_tensor *t, struct gg_cpu_pos p)
{
    return gg_row_at(t, p.i1, p.i2, p.i3);
}

/* Address of the row of t that is broadcast to row p of a larger tensor. */
static inline void *gg_row_mod(const struct gguf_tensor *t,
                               struct gg_cpu_pos p)
{
    return gg_row_at(t, p.i1 % t->ne[1], p.i2 % t->ne[2], p.i3 % t->ne[3]);
}

/* Are the rows contiguous f32? */
static inline bool gg_row_is_plain(const struct gguf_tensor *t)
{
    return t->dtype == GGUF_DTYPE_F32 &&
           (t->nb[0] == sizeof(float) || t->ne[0] <= 1);
}

/* Can rows be read as floats? The type must decode, and strided elements must
 * not be quantized. */
bool gg_row_can_load(const struct gg_kern *k, const struct gguf_tensor *t);
/* Can rows be written from floats? The type must encode, and strided elements
 * must not be quantized. */
bool gg_row_can_store(const struct gg_kern *k, const struct gguf_tensor *t);

/* First n elements of a row of t as floats: in place, or decoded into tmp,
 * which has room for n floats. n is a multiple of the type's block. */
const float *gg_row_load(const struct gg_kern *k, const struct gguf_tensor *t,
                         const void *row, float *tmp, int64_t n);
/* Element i of a row of t as a float. The type must not be quantized. */
static inline float gg_row_get(const struct gg_kern *k,
                               const struct gguf_tensor *t, const void *row,
                               int64_t i)
{
    float one;
    return *gg_row_load(k, t, (const char *)row + i * t->nb[0], &one, 1);
}
/* Buffer for the result of a row of t: the row itself, or tmp. Call
 * gg_row_store() with it when it is filled. */
static inline float *gg_row_out(const struct gguf_tensor *t, void *row,
                                float *tmp)
{
    return gg_row_is_plain(t) ? row : tmp;
}
/* Store the floats at src as a row of t, unless they are the row itself. */
void gg_row_store(const struct gg_kern *k, const struct gguf_tensor *t,
                  void *row, const float *src);

/* Bytes of scratch for n_rows rows of n floats in each of nth threads. */
size_t gg_row_work(int64_t n, unsigned n_rows, unsigned nth);
/* Row i of this thread's scratch of n_rows rows of n floats. */
float *gg_row_tmp(const struct gg_cpu_task *task, int64_t n, unsigned n_rows,
                  unsigned i);

#endif
