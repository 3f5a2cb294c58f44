/* SPDX-License-Identifier: MIT */
/* compute_delta.c - the gated delta rule: a state for each head, token by token
 *
 * How values are shared out, and tokens taken: recurrent_heads.h.
 */
#include "config.h"
#include "cpu/recurrent_heads.h"
#include "cpu/compute_table.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

enum { SRC_Q, SRC_K, SRC_V, SRC_G, SRC_BETA, SRC_STATE };

/* Scratch: rows of each token of a tile; numbers of each token. */
enum { TMP_G, TMP_K, TMP_GK, TMP_GQ, TMP_V, N_TILES };
enum { MORE_BETA, MORE_KQ, N_MORE };
static const struct gg_cpu_heads_scratch scratch = { N_TILES, N_MORE };

static size_t delta_work(const struct gguf_tensor *t, unsigned nth,
                         const struct gg_kern *kern)
{
    (void)kern;
    return gg_cpu_heads_work(t, nth, scratch);
}

/* Prepare the rows that all elements of the value need of token tok, the kth
 * of a tile. */
static void prepare_token(const struct gg_cpu_heads_part *p, int64_t tok,
                          int64_t k)
{
    const struct gg_vec_kern *vec = &p->task->kern->vec;
    const size_t n = (size_t)p->n;
    const bool one = p->t->src[SRC_G]->ne[0] == 1;
    float *g = gg_cpu_heads_tile_row(p, TMP_G, k),
          *kr = gg_cpu_heads_tile_row(p, TMP_K, k);
    float *gk = gg_cpu_heads_tile_row(p, TMP_GK, k),
          *gq = gg_cpu_heads_tile_row(p, TMP_GQ, k);
    const float *from = gg_cpu_heads_source_row(p, SRC_G, tok);
    vec->exp_sum(g, from, one ? 1 : n, 0);
    for (size_t j = 1; one && j < n; j++)
        g[j] = g[0];
    memcpy(kr, gg_cpu_heads_source_row(p, SRC_K, tok), n * sizeof *kr);
    vec->mul(gk, kr, g, n);
    vec->scale(gq, gg_cpu_heads_source_row(p, SRC_Q, tok), n,
               1 / sqrtf((float)n), 0);
    gg_cpu_heads_extra_row(p, MORE_KQ)[k] = vec->dot(kr, gq, n);
    vec->mul(gq, gq, g, n);
    gg_cpu_heads_extra_row(p, MORE_BETA)[k] =
        *gg_cpu_heads_source_row(p, SRC_BETA, tok);
}

/* Where a tile's values are: where they lie, or decoded. */
static void take_values(const struct gg_cpu_heads_part *p,
                        struct gg_vec_delta *d, int64_t first)
{
    const struct gguf_tensor *v = p->t->src[SRC_V];
    d->v = (const float *)gg_row_at(v, p->head, first, p->seq) + p->first;
    d->v_stride = (size_t)v->nb[2] / sizeof(float);
    if (gg_row_is_plain(v) && v->nb[2] % (int64_t)sizeof(float) == 0)
        return;
    for (int64_t k = 0; k < (int64_t)d->n_tok; k++)
        memcpy(gg_cpu_heads_tile_row(p, TMP_V, k),
               gg_cpu_heads_source_row(p, SRC_V, first + k),
               d->n * sizeof(float));
    d->v = gg_cpu_heads_tile_row(p, TMP_V, 0) + p->first;
    d->v_stride = d->n;
}

static void delta_part(const struct gg_cpu_heads_part *p)
{
    const struct gguf_tensor *v = p->t->src[SRC_V];
    const int64_t n_tok = v->ne[2];
    struct gg_vec_delta d = { .n = (size_t)p->n,
                              .n_rows = (size_t)p->n_rows,
                              .s = p->to,
                              .g = gg_cpu_heads_tile_row(p, TMP_G, 0),
                              .k = gg_cpu_heads_tile_row(p, TMP_K, 0),
                              .gk = gg_cpu_heads_tile_row(p, TMP_GK, 0),
                              .gq = gg_cpu_heads_tile_row(p, TMP_GQ, 0),
                              .beta = gg_cpu_heads_extra_row(p, MORE_BETA),
                              .kq = gg_cpu_heads_extra_row(p, MORE_KQ),
                              .y_stride = (size_t)(v->ne[1] * p->n),
                              .from = gg_cpu_heads_load_state(p, n_tok) };
    for (int64_t tok = 0; tok < n_tok; tok += GG_HEADS_TILE, d.from = d.s) {
        d.n_tok = (size_t)GG_MIN(n_tok - tok, (int64_t)GG_HEADS_TILE);
        for (int64_t k = 0; k < (int64_t)d.n_tok; k++)
            prepare_token(p, tok + k, k);
        take_values(p, &d, tok);
        d.y = gg_cpu_heads_result_row(p, tok);
        p->task->kern->vec.delta(&d);
    }
}

static void gated_delta(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    gg_cpu_heads_for_each_part(t, task, SRC_STATE, GG_HEADS_PART, scratch,
                               delta_part);
}

GG_CPU_OP(gated_delta, gated_delta, delta_work, gg_cpu_elem_supports, false);
