/* SPDX-License-Identifier: MIT */
/* compute_recur.c - linear attention: a state for each head, token by token
 *
 * The tokens of a head are processed in order, in tiles; the rows that the
 * kernel reads (kern/vec.h) are prepared for a tile at a time. Threads share
 * the heads of all sequences, and for RWKV-7 parts of their values. */
#include "config.h"
#include "cpu/recurrent_heads.h"
#include "cpu/compute_table.h"
#include "gguf/op.h"

#include <string.h>

/* Scratch: rows of each token of a tile; numbers of each token. */
enum { TMP_R, TMP_K, TMP_V, TMP_W, TMP_A, TMP_B, N_TILES };
enum { MORE_KR, MORE_BR, N_MORE };
static const struct gg_cpu_heads_scratch scratch = { N_TILES, N_MORE };

static size_t recur_work(const struct gguf_tensor *t, unsigned nth,
                         const struct gg_kern *kern)
{
    (void)kern;
    return gg_cpu_heads_work(t, nth, scratch);
}

/* Put the row of token tok in source i into a tile: its kth. */
static float *take_row(const struct gg_cpu_heads_part *p, int i, int64_t tok,
                       unsigned what, int64_t k)
{
    return memcpy(gg_cpu_heads_tile_row(p, what, k),
                  gg_cpu_heads_source_row(p, i, tok),
                  (size_t)p->n * sizeof(float));
}

/* --- RWKV-6, gated linear attention --------------------------------------- */

/* own: u is source 3, before the decay. Without, r times the scale. */
static void wkv6_head(const struct gg_cpu_heads_part *p, bool own)
{
    enum { R, K, V, U };
    const struct gguf_tensor *v = p->t->src[V];
    const struct gg_vec_kern *vec = &p->task->kern->vec;
    const int64_t n_tok = v->ne[2];
    const size_t n = (size_t)p->n;
    const int w = own ? U + 1 : U;
    float scale;
    memcpy(&scale, p->t->op_params, sizeof scale);
    struct gg_vec_wkv6 d = { .n = n,
                             .s = p->to,
                             .r = gg_cpu_heads_tile_row(p, TMP_R, 0),
                             .k = gg_cpu_heads_tile_row(p, TMP_K, 0),
                             .w = gg_cpu_heads_tile_row(p, TMP_W, 0),
                             .own = own ? gg_cpu_heads_extra_row(p, MORE_KR)
                                        : NULL,
                             .v = gg_cpu_heads_tile_row(p, TMP_V, 0),
                             .v_stride = n,
                             .y_stride = n * (size_t)v->ne[1],
                             .from = gg_cpu_heads_load_state(p, n_tok) };
    for (int64_t tok = 0; tok < n_tok; tok += GG_HEADS_TILE, d.from = d.s) {
        d.n_tok = (size_t)GG_MIN(n_tok - tok, (int64_t)GG_HEADS_TILE);
        for (int64_t k = 0; k < (int64_t)d.n_tok; k++) {
            float *r = take_row(p, R, tok + k, TMP_R, k);
            const float *kr = take_row(p, K, tok + k, TMP_K, k);
            (void)take_row(p, V, tok + k, TMP_V, k);
            (void)take_row(p, w, tok + k, TMP_W, k);
            float *ku = gg_cpu_heads_tile_row(p, TMP_A, 0);
            if (own) {
                vec->mul(ku, kr, gg_cpu_heads_source_row(p, U, 0), n);
                gg_cpu_heads_extra_row(p, MORE_KR)[k] = vec->dot(r, ku, n);
            } else {
                vec->scale(r, r, n, scale, 0);
            }
        }
        d.y = gg_cpu_heads_result_row(p, tok);
        vec->wkv6(&d);
    }
}

static void wkv6_part(const struct gg_cpu_heads_part *p)
{
    wkv6_head(p, true);
}

static void gla_part(const struct gg_cpu_heads_part *p)
{
    wkv6_head(p, false);
}

/* --- RWKV-7 --------------------------------------------------------------- */

static void wkv7_part(const struct gg_cpu_heads_part *p)
{
    enum { R, K, V, W, A, B };
    const struct gguf_tensor *v = p->t->src[V];
    const struct gg_vec_kern *vec = &p->task->kern->vec;
    const int64_t n_tok = v->ne[2];
    const size_t n = (size_t)p->n;
    struct gg_vec_wkv7 d = { .n = n,
                             .n_rows = (size_t)p->n_rows,
                             .s = p->to,
                             .w = gg_cpu_heads_tile_row(p, TMP_W, 0),
                             .k = gg_cpu_heads_tile_row(p, TMP_K, 0),
                             .a = gg_cpu_heads_tile_row(p, TMP_A, 0),
                             .b = gg_cpu_heads_tile_row(p, TMP_B, 0),
                             .wr = gg_cpu_heads_tile_row(p, TMP_R, 0),
                             .kr = gg_cpu_heads_extra_row(p, MORE_KR),
                             .br = gg_cpu_heads_extra_row(p, MORE_BR),
                             .v =
                                 gg_cpu_heads_tile_row(p, TMP_V, 0) + p->first,
                             .v_stride = n,
                             .y_stride = n * (size_t)v->ne[1],
                             .from = gg_cpu_heads_load_state(p, n_tok) };
    for (int64_t tok = 0; tok < n_tok; tok += GG_HEADS_TILE, d.from = d.s) {
        d.n_tok = (size_t)GG_MIN(n_tok - tok, (int64_t)GG_HEADS_TILE);
        for (int64_t k = 0; k < (int64_t)d.n_tok; k++) {
            float *r = take_row(p, R, tok + k, TMP_R, k);
            gg_cpu_heads_extra_row(p, MORE_KR)[k] =
                vec->dot(take_row(p, K, tok + k, TMP_K, k), r, n);
            gg_cpu_heads_extra_row(p, MORE_BR)[k] =
                vec->dot(take_row(p, B, tok + k, TMP_B, k), r, n);
            (void)take_row(p, V, tok + k, TMP_V, k);
            (void)take_row(p, A, tok + k, TMP_A, k);
            vec->mul(r, r, take_row(p, W, tok + k, TMP_W, k), n);
        }
        d.y = gg_cpu_heads_result_row(p, tok);
        vec->wkv7(&d);
    }
}

/* --- all of them ---------------------------------------------------------- */

#define RECUR(name, part, n_src, per_part)                                    \
    static void name##_run(struct gguf_tensor *t,                             \
                           const struct gg_cpu_task *task)                    \
    {                                                                         \
        gg_cpu_heads_for_each_part(t, task, n_src, per_part, scratch, part);  \
    }                                                                         \
    GG_CPU_OP(name, name##_run, recur_work, gg_cpu_elem_supports, false);

RECUR(rwkv_wkv6, wkv6_part, 5, 0)
RECUR(rwkv_wkv7, wkv7_part, 6, GG_HEADS_PART)
RECUR(gated_linear_attn, gla_part, 4, 0)
