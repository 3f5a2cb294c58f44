/* SPDX-License-Identifier: MIT */
/* recurrent_heads.c - recurrences of heads: shares, scratch, states */
#include "config.h"
#include "cpu/recurrent_heads.h"

#include <string.h>

enum { VALUES = 2 }; /* source */

static int64_t source_width(const struct gguf_tensor *t)
{
    return GG_MAX(t->src[VALUES]->ne[0], (int64_t)GG_HEADS_TILE);
}

static unsigned n_rows(struct gg_cpu_heads_scratch s)
{
    return s.n_tiles * GG_HEADS_TILE + 1 + s.n_more;
}

size_t gg_cpu_heads_work(const struct gguf_tensor *t, unsigned nth,
                         struct gg_cpu_heads_scratch s)
{
    return gg_row_work(source_width(t), n_rows(s), nth);
}

static float *source_tmp(const struct gg_cpu_heads_part *p, unsigned i)
{
    return gg_row_tmp(p->task, source_width(p->t), n_rows(p->scratch), i);
}

/* A row that is decoded. */
static float *decoded_row(const struct gg_cpu_heads_part *p)
{
    return source_tmp(p, p->scratch.n_tiles * GG_HEADS_TILE);
}

float *gg_cpu_heads_extra_row(const struct gg_cpu_heads_part *p, unsigned i)
{
    return source_tmp(p, p->scratch.n_tiles * GG_HEADS_TILE + 1 + i);
}

float *gg_cpu_heads_tile_row(const struct gg_cpu_heads_part *p, unsigned what,
                             int64_t k)
{
    return source_tmp(p, what * GG_HEADS_TILE) + k * p->n;
}

const float *gg_cpu_heads_source_row(const struct gg_cpu_heads_part *p, int i,
                                     int64_t tok)
{
    const struct gguf_tensor *src = p->t->src[i];
    const struct gg_cpu_pos at = { p->head, tok, p->seq };
    return gg_row_load(p->task->kern, src, gg_row_mod(src, at), decoded_row(p),
                       src->ne[0]);
}

const float *gg_cpu_heads_load_state(const struct gg_cpu_heads_part *p,
                                     int64_t n_tok)
{
    const struct gguf_tensor *s = p->state;
    if (n_tok && gg_row_is_plain(s) && s->nb[1] == p->n * s->nb[0])
        return gg_row_at(s, p->first, p->head, p->seq);
    for (int64_t i = 0; i < p->n_rows; i++)
        memcpy(p->to + i * p->n,
               gg_row_load(p->task->kern, s,
                           gg_row_at(s, p->first + i, p->head, p->seq),
                           decoded_row(p), p->n),
               (size_t)p->n * sizeof(float));
    return p->to;
}

float *gg_cpu_heads_result_row(const struct gg_cpu_heads_part *p, int64_t tok)
{
    const struct gguf_tensor *v = p->t->src[VALUES];
    const int64_t at = (p->seq * v->ne[2] + tok) * v->ne[1] + p->head;
    return (float *)p->t->data + at * p->n + p->first;
}

/* Call fn for parts i to end - 1, counted through all heads of all sequences,
 * with those of one head together. */
static void call_for_parts(struct gg_cpu_heads_part p, int64_t per_part,
                           int64_t i, int64_t end,
                           void (*fn)(const struct gg_cpu_heads_part *p))
{
    const struct gguf_tensor *v = p.t->src[VALUES];
    const int64_t per_head = (p.n + per_part - 1) / per_part;
    float *states = (float *)p.t->data + gguf_tensor_n_elements(v);
    while (i < end) {
        const int64_t head = i / per_head, from = i % per_head;
        const int64_t to = GG_MIN(per_head, from + end - i);
        p.head = head % v->ne[1];
        p.seq = head / v->ne[1];
        p.first = from * per_part;
        p.n_rows = GG_MIN(to * per_part, p.n) - p.first;
        p.to = states + (head * p.n + p.first) * p.n;
        fn(&p);
        i += to - from;
    }
}

void gg_cpu_heads_for_each_part(const struct gguf_tensor *t,
                                const struct gg_cpu_task *task, int state,
                                int64_t per_part,
                                struct gg_cpu_heads_scratch s,
                                void (*fn)(const struct gg_cpu_heads_part *p))
{
    const struct gguf_tensor *v = t->src[VALUES];
    const int64_t n = v->ne[0], heads = v->ne[1] * v->ne[3];
    int64_t i, end;
    if (!n)
        return;
    if (!per_part)
        per_part = n;
    /* Threads that share a head prepare its rows each, so they only do if there
     * are few heads. */
    const int64_t per_head = (n + per_part - 1) / per_part,
                  per_item = heads < 4 * (int64_t)task->nth ? 1 : per_head;
    const struct gg_cpu_heads_part p = {
        .t = t, .task = task, .scratch = s, .n = n, .state = t->src[state]
    };
    while (gg_cpu_claim_items(task, heads * per_head / per_item, &i, &end))
        call_for_parts(p, per_part, i * per_item, end * per_item, fn);
}
