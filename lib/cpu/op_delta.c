/* op_delta.c - the gated delta rule: a state for each head, token by token
 *
 * Every value of a head has a part of the state to itself (kern/vec.h), so
 * values of heads of sequences are shared out. What all values of a head take
 * of a token is made for some tokens at a time, few enough to stay in the
 * first cache while values go by.
 */
#include "config.h"
#include "cpu/optab.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <math.h>
#include <string.h>

enum { SRC_Q, SRC_K, SRC_V, SRC_G, SRC_BETA, SRC_STATE };

/* Tokens at a time, and values that are shared out together. */
enum { TILE = 8, PART = 4 };

/* Scratch: rows of each token of a tile; one row; numbers of each token. */
enum { TMP_G, TMP_K, TMP_GK, TMP_GQ, TMP_V, N_TILES };
enum { TMP_ROW = N_TILES * TILE, TMP_BETA, TMP_KQ, N_TMP };

/* Some values of one head of one sequence. */
struct part {
    const struct gguf_tensor *t;
    const struct gg_cpu_task *task;
    int64_t head, seq, first;
    struct gg_vec_delta d;
};

static int64_t width(const struct gguf_tensor *t)
{
    return GG_MAX(t->src[SRC_V]->ne[0], (int64_t)TILE);
}

static size_t delta_work(const struct gguf_tensor *t, unsigned nth,
                         const struct gg_kern *kern)
{
    (void)kern;
    return gg_row_work(width(t), N_TMP, nth);
}

static float *tmp(const struct part *p, int i)
{
    return gg_row_tmp(p->task, width(p->t), N_TMP, (unsigned)i);
}

/* Rows of a tile follow each other without gaps. */
static float *tile_row(const struct part *p, int what, int64_t k)
{
    return tmp(p, what * TILE) + k * (int64_t)p->d.n;
}

/* The row of a token in source i, which may have fewer heads. */
static const float *source(const struct part *p, int i, int64_t tok)
{
    const struct gguf_tensor *src = p->t->src[i];
    const struct gg_cpu_pos at = { p->head, tok, p->seq };
    return gg_row_load(p->task->kern, src, gg_row_mod(src, at),
                       tmp(p, TMP_ROW), src->ne[0]);
}

/* What all values take of token tok, the kth of a tile. */
static void prepare(const struct part *p, int64_t tok, int64_t k)
{
    const struct gg_vec_kern *vec = &p->task->kern->vec;
    const size_t n = p->d.n;
    const bool one = p->t->src[SRC_G]->ne[0] == 1;
    float *g = tile_row(p, TMP_G, k), *kr = tile_row(p, TMP_K, k);
    float *gk = tile_row(p, TMP_GK, k), *gq = tile_row(p, TMP_GQ, k);
    const float *from = source(p, SRC_G, tok);
    vec->exp_sum(g, from, one ? 1 : n, 0);
    for (size_t j = 1; one && j < n; j++)
        g[j] = g[0];
    memcpy(kr, source(p, SRC_K, tok), n * sizeof *kr);
    vec->mul(gk, kr, g, n);
    vec->scale(gq, source(p, SRC_Q, tok), n, 1 / sqrtf((float)n), 0);
    tmp(p, TMP_KQ)[k] = vec->dot(kr, gq, n);
    vec->mul(gq, gq, g, n);
    tmp(p, TMP_BETA)[k] = *source(p, SRC_BETA, tok);
}

/* Where a tile's values are: where they lie, or decoded. */
static void take_values(struct part *p, int64_t first, int64_t n_tok)
{
    const struct gguf_tensor *v = p->t->src[SRC_V];
    p->d.v = (const float *)gg_row_at(v, p->head, first, p->seq) + p->first;
    p->d.v_stride = (size_t)v->nb[2] / sizeof(float);
    if (gg_row_is_plain(v) && v->nb[2] % (int64_t)sizeof(float) == 0)
        return;
    for (int64_t k = 0; k < n_tok; k++)
        memcpy(tile_row(p, TMP_V, k), source(p, SRC_V, first + k),
               p->d.n * sizeof(float));
    p->d.v = tile_row(p, TMP_V, 0) + p->first;
    p->d.v_stride = p->d.n;
}

/* The state before the first token: where it lies, or put where it goes. */
static void take_state(struct part *p, bool copy)
{
    const struct gguf_tensor *s = p->t->src[SRC_STATE];
    const int64_t n = (int64_t)p->d.n;
    p->d.from = gg_row_at(s, p->first, p->head, p->seq);
    if (!copy && gg_row_is_plain(s) && s->nb[1] == n * s->nb[0])
        return;
    p->d.from = p->d.s;
    for (int64_t i = 0; i < (int64_t)p->d.n_rows; i++)
        memcpy(p->d.s + i * n,
               gg_row_load(p->task->kern, s,
                           gg_row_at(s, p->first + i, p->head, p->seq),
                           tmp(p, TMP_ROW), n),
               (size_t)n * sizeof(float));
}

static void run_part(struct part *p)
{
    const struct gguf_tensor *v = p->t->src[SRC_V];
    const int64_t n = v->ne[0], heads = v->ne[1], n_tok = v->ne[2];
    float *y = p->t->data;
    p->d.n = (size_t)n;
    p->d.s = y + gguf_tensor_n_elements(v) +
             ((p->seq * heads + p->head) * n + p->first) * n;
    p->d.g = tile_row(p, TMP_G, 0);
    p->d.k = tile_row(p, TMP_K, 0);
    p->d.gk = tile_row(p, TMP_GK, 0);
    p->d.gq = tile_row(p, TMP_GQ, 0);
    p->d.beta = tmp(p, TMP_BETA);
    p->d.kq = tmp(p, TMP_KQ);
    p->d.y_stride = (size_t)(heads * n);
    take_state(p, !n_tok);
    for (int64_t tok = 0; tok < n_tok; tok += TILE, p->d.from = p->d.s) {
        p->d.n_tok = (size_t)GG_MIN(n_tok - tok, (int64_t)TILE);
        for (int64_t k = 0; k < (int64_t)p->d.n_tok; k++)
            prepare(p, tok + k, k);
        take_values(p, tok, (int64_t)p->d.n_tok);
        p->d.y = y + ((p->seq * n_tok + tok) * heads + p->head) * n + p->first;
        p->task->kern->vec.delta(&p->d);
    }
}

static void gated_delta(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const struct gguf_tensor *v = t->src[SRC_V];
    const int64_t n = v->ne[0], per_head = (n + PART - 1) / PART;
    int64_t i, end;
    if (!n)
        return;
    gg_cpu_share(task, per_head * v->ne[1] * v->ne[3], &i, &end);
    while (i < end) {
        const int64_t head = i / per_head, from = i % per_head;
        const int64_t to = GG_MIN(per_head, from + end - i);
        struct part p = { .t = t,
                          .task = task,
                          .head = head % v->ne[1],
                          .seq = head / v->ne[1],
                          .first = from * PART };
        p.d.n_rows = (size_t)(GG_MIN(to * PART, n) - p.first);
        run_part(&p);
        i += to - from;
    }
}

GG_CPU_OP(gated_delta, gated_delta, delta_work, gg_cpu_elem_supports, false);
