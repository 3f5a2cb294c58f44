/* SPDX-License-Identifier: MIT */
/* attn_ints.c - attention by panels of integers of 16 bits
 *
 * Each key has a scale, each column of queries, each value, and each column of
 * a block's weights, into which the values' are multiplied before.
 */
#include "config.h"
#include "cpu/attn_task.h"

#include "base/compiler.h"

#include <assert.h>
#include <string.h>

enum {
    STEPS = GG_ATTN_I16_STEPS,
    STRIDE = GG_ATTN_I16_STRIDE,
    V_STEPS = 16,
    ROWS = GG_ATTN_I16_ROWS,
    ROW_PAD = 32 /* integers between rows that are packed */
};
static_assert((int)GG_ATTN_KEYS <= (int)GG_ATTN_I16_STEPS,
              "a block's weights are one block of a column");

static size_t row_steps(const struct gg_attn_args *a)
{
    return gg_attn_round_up((size_t)a->d, GG_ATTN_I16_UNIT);
}

static size_t row_stride(const struct gg_attn_args *a)
{
    return row_steps(a) + ROW_PAD;
}

/* From row to row of those that are decoded. */
static size_t row_floats(const struct gg_attn_args *a)
{
    return row_steps(a) + GG_ATTN_I16_UNIT;
}

static void int_tile(struct gg_attn_dims *s, const struct gg_attn_args *a)
{
    s->mr = a->kern->attn_i16.mr;
    s->nr = a->kern->attn_i16.nr;
    s->v_steps = V_STEPS;
}

/* For a panel of columns. */
static size_t columns_size(const struct gg_attn_dims *s, size_t steps)
{
    return gg_attn_round_up(steps, STEPS) / STEPS * s->nr * STRIDE *
           sizeof(int16_t);
}

static void int_sizes(struct gg_attn_dims *s, const struct gg_attn_args *a)
{
    const size_t n = row_steps(a);
    s->q_size = columns_size(s, n);
    s->k_size = s->mr * n * sizeof(int16_t);
    s->v_size = s->mr * s->keys * sizeof(int16_t);
    s->w_size = columns_size(s, s->keys);
    s->buf_size = ROWS * (row_stride(a) * sizeof(int16_t) +
                          row_floats(a) * sizeof(float));
}

static int16_t *as_int16(void *p)
{
    return p;
}

static void pack_q(const struct gg_attn_task *t, size_t col, const float *q,
                   size_t stride, size_t n)
{
    const struct gg_attn_args *a = t->a;
    const size_t nr = t->s->nr, steps = row_steps(a), row = row_stride(a);
    const int16_t *rows = as_int16(t->b->buf);
    for (size_t i = 0; i < n; i += ROWS) {
        const size_t some = GG_MIN(n - i, (size_t)ROWS);
        a->kern->attn_i16.round(q + i * stride, stride, some, (size_t)a->d,
                                as_int16(t->b->buf), row,
                                t->b->q_scale + col + i);
        for (size_t r = 0; r < some; r++) {
            int16_t *to = as_int16(t->b->q + col / nr * t->s->q_size) +
                          (col % nr + i + r) * STRIDE;
            for (size_t p = 0; p < steps; p += STEPS, to += nr * STRIDE)
                memcpy(to, rows + r * row + p,
                       GG_MIN(steps - p, (size_t)STEPS) * sizeof *to);
        }
    }
}

/* Some keys, n of them from first on, as rows i and up, filled up with 0. */
static void pack_keys(const struct gg_attn_task *t, size_t first, size_t i,
                      size_t n)
{
    const struct gg_attn_args *a = t->a;
    const struct gg_kern_attn_i16 *k = &a->kern->attn_i16;
    const struct gg_kern_gemm_rows keys = gg_attn_key_rows(t, first + i);
    const size_t d = (size_t)a->d, stride = row_stride(a);
    int16_t *rows = as_int16(t->b->buf);
    float *decoded = (float *)(void *)(rows + ROWS * stride);
    if (gg_attn_rows_are_f32(a->k_type, keys.at, keys.stride)) {
        k->round(keys.at, keys.stride / sizeof(float), n, d, rows, stride,
                 t->b->k_scale + i);
    } else {
        for (size_t r = 0; r < n; r++)
            a->kern->codec[a->k_type].decode((const unsigned char *)keys.at +
                                                 r * keys.stride,
                                             decoded + r * row_floats(a), d);
        k->round(decoded, row_floats(a), n, d, rows, stride,
                 t->b->k_scale + i);
    }
    for (size_t r = n; r < ROWS; r++)
        memset(rows + r * stride, 0, row_steps(a) * sizeof *rows);
    k->rows(rows, stride, row_steps(a),
            as_int16(t->b->k + i / k->mr * t->s->k_size) + i % k->mr * 2);
}

static void pack_k(const struct gg_attn_task *t, size_t first, size_t n)
{
    const struct gg_attn_args *a = t->a;
    const struct gguf_dtype_info *dt = gg_dtype_by_index(a->k_type);
    const size_t size = (size_t)a->d / dt->block_len * dt->block_size;
    for (size_t i = 0; i < n; i += ROWS) {
        const size_t some = GG_MIN(n - i, (size_t)ROWS);
        const struct gg_kern_gemm_rows next =
            gg_attn_key_rows(t, first + i + some);
        if (i % t->s->mr == 0 && n - i < t->s->mr) /* rows are missing */
            memset(t->b->k + i / t->s->mr * t->s->k_size, 0, t->s->k_size);
        gg_attn_prefetch_rows(next.at, next.stride, some, size);
        pack_keys(t, first, i, some);
    }
}

static void pack_v(const struct gg_attn_task *t, size_t at, const float *v,
                   size_t stride, size_t n)
{
    t->a->kern->attn_i16.values(
        v, stride, n, t->s->dv, as_int16(t->b->v) + at * t->s->mr,
        t->s->v_size / sizeof(int16_t), t->b->v_scale + at);
}

static void multiply_keys(const struct gg_attn_task *t,
                          const struct gg_attn_part *p)
{
    const struct gg_kern_attn_i16 *k = &t->a->kern->attn_i16;
    const int16_t *q = as_int16(t->b->q + p->col / k->nr * t->s->q_size);
    for (size_t i = p->begin; i < p->end; i += k->mr)
        k->tile(as_int16(t->b->k + i / k->mr * t->s->k_size), q,
                row_steps(t->a) / 2, (unsigned)p->n_cols, t->b->k_scale + i,
                t->b->q_scale + p->col, t->b->scores + i, t->s->keys);
}

static double weigh_ints(const struct gg_attn_task *t, float *s, size_t at,
                         size_t n, float max)
{
    return (double)t->a->kern->vec.exp_mul(s, s, t->b->v_scale + at, n, max);
}

static void multiply_values(const struct gg_attn_task *t,
                            const struct gg_attn_part *p)
{
    const struct gg_kern_attn_i16 *k = &t->a->kern->attn_i16;
    const size_t dv = t->s->dv, n = p->end - p->begin;
    const int16_t *v = as_int16(t->b->v) + p->begin * k->mr;
    int16_t *w = as_int16(t->b->w);
    k->weights(t->b->scores + p->begin, t->s->keys, p->n_cols, n, w,
               t->b->w_scale);
    for (size_t i = 0; i < dv; i += k->mr, v += t->s->v_size / sizeof *v)
        k->tile(v, w, (n + 1) / 2, (unsigned)p->n_cols, NULL, t->b->w_scale,
                t->b->out + p->col * dv + i, dv);
}

const struct gg_attn_form gg_attn_ints = {
    int_tile, int_sizes,     pack_q,     pack_k,
    pack_v,   multiply_keys, weigh_ints, multiply_values,
};
