/* SPDX-License-Identifier: MIT */
/* attn_floats.c - attention by panels of exact products
 *
 * K is packed as a product's weights are, V is in the order of steps already.
 */
#include "config.h"
#include "cpu/attn_task.h"

#include "base/compiler.h"

#include <string.h>

enum { V_STEPS = 16 };

static const struct gg_kern_gemm *exact_kernels(const struct gg_attn_args *a)
{
    return &a->kern->gemm[GG_GEMM_EXACT];
}

static void float_tile(struct gg_attn_dims *s, const struct gg_attn_args *a)
{
    const struct gg_kern_gemm *g = exact_kernels(a);
    s->mr = g->mr;
    s->nr = g->nr;
    s->v_steps = gg_attn_round_up(V_STEPS, g->k_block);
}

static void float_sizes(struct gg_attn_dims *s, const struct gg_attn_args *a)
{
    const struct gg_kern_gemm *g = exact_kernels(a);
    s->q_size = gg_kern_gemm_x_size(g, (size_t)a->d);
    s->k_size = gg_kern_gemm_w_size(g, (size_t)a->d);
    s->v_size = gg_kern_gemm_w_size(g, s->keys);
    s->w_size = gg_kern_gemm_x_size(g, s->keys);
    s->buf_size = g->buf_size;
}

static void pack_q(const struct gg_attn_task *t, size_t col, const float *q,
                   size_t stride, size_t n)
{
    const struct gg_kern_gemm *g = exact_kernels(t->a);
    g->pack_x(g, t->b->q + col / g->nr * t->s->q_size, col % g->nr, q, stride,
              n, (size_t)t->a->d);
}

static void pack_k(const struct gg_attn_task *t, size_t first, size_t n)
{
    const struct gg_attn_args *a = t->a;
    const struct gg_kern_gemm *g = exact_kernels(a);
    const size_t d = (size_t)a->d, size = t->s->k_size;
    const struct gg_kern_gemm_rows keys = gg_attn_key_rows(t, first);
    if (!gg_attn_rows_are_f32(a->k_type, keys.at, keys.stride)) {
        g->pack_rows(a->kern, g, &keys, n, d, t->b->k, t->b->buf);
        return;
    }
    const unsigned char *row = keys.at;
    unsigned char *panel = t->b->k;
    for (size_t i = 0; i < n; i += g->mr, panel += size) {
        const size_t rows = GG_MIN(n - i, (size_t)g->mr);
        if (rows < g->mr)
            memset(panel, 0, size);
        else
            gg_attn_prefetch_rows(row + rows * keys.stride, keys.stride, rows,
                                  d * sizeof(float));
        g->pack_w(g, panel, 0, (const float *)(const void *)row,
                  keys.stride / sizeof(float), rows, d);
        row += rows * keys.stride;
    }
}

static void pack_v(const struct gg_attn_task *t, size_t at, const float *v,
                   size_t stride, size_t n)
{
    const struct gg_kern_gemm *g = exact_kernels(t->a);
    unsigned char *panel = t->b->v + gg_kern_gemm_w_size(g, at);
    for (size_t j = 0; j < t->s->dv; j += g->mr, panel += t->s->v_size)
        g->pack_wt(g, panel, 0, v + j, stride, g->mr, n);
}

static void multiply_keys(const struct gg_attn_task *t,
                          const struct gg_attn_part *p)
{
    const struct gg_kern_gemm *g = exact_kernels(t->a);
    const size_t n_blocks = gg_kern_gemm_n_blocks(g, (size_t)t->a->d);
    const unsigned char *q = t->b->q + p->col / g->nr * t->s->q_size;
    for (size_t i = p->begin; i < p->end; i += g->mr)
        g->tile(t->b->k + i / g->mr * t->s->k_size, q, n_blocks,
                (unsigned)p->n_cols, t->b->scores + i, t->s->keys, 0);
}

static double weigh_floats(const struct gg_attn_task *t, float *s, size_t at,
                           size_t n, float max)
{
    (void)at;
    return t->a->kern->vec.exp_sum(s, s, n, max);
}

static void multiply_values(const struct gg_attn_task *t,
                            const struct gg_attn_part *p)
{
    const struct gg_kern_gemm *g = exact_kernels(t->a);
    const size_t keys = t->s->keys, dv = t->s->dv, n = p->end - p->begin;
    const unsigned char *v = t->b->v + gg_kern_gemm_w_size(g, p->begin);
    g->pack_x(g, t->b->w, 0, t->b->scores + p->begin, keys, p->n_cols, n);
    for (size_t i = 0; i < dv; i += g->mr, v += t->s->v_size)
        g->tile(v, t->b->w, gg_kern_gemm_n_blocks(g, n), (unsigned)p->n_cols,
                t->b->out + p->col * dv + i, dv, 1);
}

const struct gg_attn_form gg_attn_floats = {
    float_tile, float_sizes,   pack_q,       pack_k,
    pack_v,     multiply_keys, weigh_floats, multiply_values,
};
