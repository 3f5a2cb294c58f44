/* op_recur.c - linear attention: a state for each head, token by token
 *
 * Of a head, all tokens are taken one after the other, some at a time, of which
 * what the kernel reads (kern/vec.h) is put together first. Heads of sequences
 * are shared out, of RWKV-7 also parts of their values.
 */
#include "config.h"
#include "cpu/optab.h"
#include "cpu/row.h"
#include "gguf/op.h"

#include <string.h>

/* Tokens at a time, and values that are shared out together. */
enum { TILE = 8, PART = 4 };

/* Scratch: rows of each token of a tile; one row; numbers of each token. */
enum { TMP_R, TMP_K, TMP_V, TMP_W, TMP_A, TMP_B, N_TILES };
enum { TMP_ROW = N_TILES * TILE, TMP_KR, TMP_BR, N_TMP };

/* Some values of one head of one sequence. */
struct part {
    const struct gguf_tensor *t;
    const struct gg_cpu_task *task;
    int64_t head, seq, first, n_rows; /* n_rows of n values */
    int64_t n;
    const struct gguf_tensor *state;
    float *to; /* where the state of these values, or of all, goes */
};

static int64_t width(const struct gguf_tensor *t)
{
    return GG_MAX(t->src[2]->ne[0], (int64_t)TILE);
}

static size_t recur_work(const struct gguf_tensor *t, unsigned nth,
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
    return tmp(p, what * TILE) + k * p->n;
}

/* The row of a token in source i. */
static const float *source(const struct part *p, int i, int64_t tok)
{
    const struct gguf_tensor *src = p->t->src[i];
    const struct gg_cpu_pos at = { p->head, tok, p->seq };
    return gg_row_load(p->task->kern, src, gg_row_mod(src, at),
                       tmp(p, TMP_ROW), src->ne[0]);
}

/* Put the row of token tok in source i into a tile: its kth. */
static float *taken(const struct part *p, int i, int64_t tok, int what,
                    int64_t k)
{
    return memcpy(tile_row(p, what, k), source(p, i, tok),
                  (size_t)p->n * sizeof(float));
}

/* The state before the first token: where it lies, or put where it goes. */
static const float *state_before(const struct part *p, int64_t n_tok)
{
    const struct gguf_tensor *s = p->state;
    if (n_tok && gg_row_is_plain(s) && s->nb[1] == p->n * s->nb[0])
        return gg_row_at(s, p->first, p->head, p->seq);
    for (int64_t i = 0; i < p->n_rows; i++)
        memcpy(p->to + i * p->n,
               gg_row_load(p->task->kern, s,
                           gg_row_at(s, p->first + i, p->head, p->seq),
                           tmp(p, TMP_ROW), p->n),
               (size_t)p->n * sizeof(float));
    return p->to;
}

/* Where results of token tok go. */
static float *result(const struct part *p, int64_t tok)
{
    const struct gguf_tensor *v = p->t->src[2];
    const int64_t row = (p->seq * v->ne[2] + tok) * v->ne[1] + p->head;
    return (float *)p->t->data + row * p->n + p->first;
}

/* --- RWKV-6, gated linear attention --------------------------------------- */

/* own: u is source 3, before the decay. Without, r times the scale. */
static void wkv6_head(const struct part *p, bool own)
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
                             .r = tile_row(p, TMP_R, 0),
                             .k = tile_row(p, TMP_K, 0),
                             .w = tile_row(p, TMP_W, 0),
                             .own = own ? tmp(p, TMP_KR) : NULL,
                             .v = tile_row(p, TMP_V, 0),
                             .v_stride = n,
                             .y_stride = n * (size_t)v->ne[1],
                             .from = state_before(p, n_tok) };
    for (int64_t tok = 0; tok < n_tok; tok += TILE, d.from = d.s) {
        d.n_tok = (size_t)GG_MIN(n_tok - tok, (int64_t)TILE);
        for (int64_t k = 0; k < (int64_t)d.n_tok; k++) {
            float *r = taken(p, R, tok + k, TMP_R, k);
            const float *kr = taken(p, K, tok + k, TMP_K, k);
            (void)taken(p, V, tok + k, TMP_V, k);
            (void)taken(p, w, tok + k, TMP_W, k);
            float *ku = tile_row(p, TMP_A, 0);
            if (own) {
                vec->mul(ku, kr, source(p, U, 0), n);
                tmp(p, TMP_KR)[k] = vec->dot(r, ku, n);
            } else {
                vec->scale(r, r, n, scale, 0);
            }
        }
        d.y = result(p, tok);
        vec->wkv6(&d);
    }
}

static void wkv6_part(const struct part *p)
{
    wkv6_head(p, true);
}

static void gla_part(const struct part *p)
{
    wkv6_head(p, false);
}

/* --- RWKV-7 --------------------------------------------------------------- */

static void wkv7_part(const struct part *p)
{
    enum { R, K, V, W, A, B };
    const struct gguf_tensor *v = p->t->src[V];
    const struct gg_vec_kern *vec = &p->task->kern->vec;
    const int64_t n_tok = v->ne[2];
    const size_t n = (size_t)p->n;
    struct gg_vec_wkv7 d = { .n = n,
                             .n_rows = (size_t)p->n_rows,
                             .s = p->to,
                             .w = tile_row(p, TMP_W, 0),
                             .k = tile_row(p, TMP_K, 0),
                             .a = tile_row(p, TMP_A, 0),
                             .b = tile_row(p, TMP_B, 0),
                             .wr = tile_row(p, TMP_R, 0),
                             .kr = tmp(p, TMP_KR),
                             .br = tmp(p, TMP_BR),
                             .v = tile_row(p, TMP_V, 0) + p->first,
                             .v_stride = n,
                             .y_stride = n * (size_t)v->ne[1],
                             .from = state_before(p, n_tok) };
    for (int64_t tok = 0; tok < n_tok; tok += TILE, d.from = d.s) {
        d.n_tok = (size_t)GG_MIN(n_tok - tok, (int64_t)TILE);
        for (int64_t k = 0; k < (int64_t)d.n_tok; k++) {
            float *r = taken(p, R, tok + k, TMP_R, k);
            tmp(p, TMP_KR)[k] = vec->dot(taken(p, K, tok + k, TMP_K, k), r, n);
            tmp(p, TMP_BR)[k] = vec->dot(taken(p, B, tok + k, TMP_B, k), r, n);
            (void)taken(p, V, tok + k, TMP_V, k);
            (void)taken(p, A, tok + k, TMP_A, k);
            vec->mul(r, r, taken(p, W, tok + k, TMP_W, k), n);
        }
        d.y = result(p, tok);
        vec->wkv7(&d);
    }
}

/* --- all of them ---------------------------------------------------------- */

typedef void part_fn(const struct part *p);

/* n_src: sources before the state; per_part: values of a head that are shared
 * out together, or 0: all. */
static void share_heads(const struct gguf_tensor *t,
                        const struct gg_cpu_task *task, part_fn *fn, int n_src,
                        int64_t per_part)
{
    const struct gguf_tensor *v = t->src[2];
    const int64_t n = v->ne[0], heads = v->ne[1];
    int64_t i, end;
    if (!n)
        return;
    if (!per_part)
        per_part = n;
    const int64_t per_head = (n + per_part - 1) / per_part;
    float *states = (float *)t->data + gguf_tensor_n_elements(v);
    gg_cpu_share(task, per_head * heads * v->ne[3], &i, &end);
    while (i < end) {
        const int64_t head = i / per_head, from = i % per_head;
        const int64_t to = GG_MIN(per_head, from + end - i);
        struct part p = { .t = t,
                          .task = task,
                          .head = head % heads,
                          .seq = head / heads,
                          .first = from * per_part,
                          .n = n,
                          .state = t->src[n_src] };
        p.n_rows = GG_MIN(to * per_part, n) - p.first;
        p.to = states + (head * n + p.first) * n;
        fn(&p);
        i += to - from;
    }
}

#define RECUR(name, part, n_src, per_part)                                    \
    static void name##_run(struct gguf_tensor *t,                             \
                           const struct gg_cpu_task *task)                    \
    {                                                                         \
        share_heads(t, task, part, n_src, per_part);                          \
    }                                                                         \
    GG_CPU_OP(name, name##_run, recur_work, gg_cpu_elem_supports, false);

RECUR(rwkv_wkv6, wkv6_part, 5, 0)
RECUR(rwkv_wkv7, wkv7_part, 6, PART)
RECUR(gated_linear_attn, gla_part, 4, 0)
