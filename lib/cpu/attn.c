/* SPDX-License-Identifier: MIT */
/* attn.c - attention: tasks, blocks of keys, softmax
 *
 * The columns of a task are some tokens of all heads that share a head of
 * keys. For each block of keys, a task packs K and V; then, for one panel of
 * columns after another, it multiplies K by the columns (the scores of a
 * column are adjacent), turns scores into weights, and adds V times the
 * weights to the outputs. The mask is summarised once for all tasks; a panel
 * of columns is multiplied only by keys that are open to one of its columns. */
#include "config.h"
#include "cpu/attn_task.h"
#include "cpu/cpu_task.h"

#include "base/barrier.h"
#include "base/compiler.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
    ALIGN = 64,
    /* Bytes of queries and outputs of a task, for which keys and values are
     * packed once. A block of keys passes over them once, which L3 serves as
     * fast as they are multiplied. */
    COLUMNS_SIZE = 2 << 20,
    N_COLS = 96,       /* least columns of a task, in whole tokens */
    N_COLS_MORE = 192, /* columns that a task keeps if tasks are made smaller
                        * to give all threads work */
    TASKS = 4          /* tasks for each thread to aim at */
};

/* State that the threads share, at the start of work. */
struct shared {
    _Alignas(ALIGN) _Atomic size_t next; /* task */
};

/* Columns of a task for nth threads. */
static size_t task_columns(const struct gg_attn_dims *s,
                           const struct gg_attn_args *a, unsigned nth)
{
    const size_t one = s->q_size / s->nr + s->dv * sizeof(float);
    const size_t most = GG_MAX(COLUMNS_SIZE / one, (size_t)N_COLS);
    const size_t heads = (size_t)(a->n_head_kv * a->n_seq);
    const size_t n = (TASKS * nth + heads - 1) / heads; /* tasks of a head */
    const size_t share = ((size_t)a->n_tok + n - 1) / n * s->group;
    return nth == 1 ? most : GG_MIN(most, GG_MAX(share, (size_t)N_COLS_MORE));
}

static void dims_init(struct gg_attn_dims *s, const struct gg_attn_args *a,
                      unsigned nth)
{
    *s = (struct gg_attn_dims){
        .form = a->ints ? &gg_attn_ints : &gg_attn_floats,
        .group = (size_t)(a->n_head / a->n_head_kv),
    };
    s->form->tile(s, a);
    s->dv = gg_attn_round_up((size_t)a->dv, s->mr);
    s->keys = gg_attn_round_up(GG_ATTN_KEYS, s->mr);
    s->form->sizes(s, a);
    const size_t n_tok = (size_t)a->n_tok;
    const size_t most = GG_MAX(task_columns(s, a, nth) / s->group, 1);
    s->n_blocks = (n_tok + most - 1) / most;
    s->block_tok = (n_tok + s->n_blocks - 1) / s->n_blocks;
    if (s->block_tok > s->nr) /* no panel has tokens of two heads */
        s->block_tok = GG_MIN(gg_attn_round_up(s->block_tok, s->nr), n_tok);
    s->n_blocks = (n_tok + s->block_tok - 1) / s->block_tok;
    s->n_tasks = s->n_blocks * (size_t)a->n_head_kv * (size_t)a->n_seq;
    s->cols = gg_attn_round_up(s->group * s->block_tok, s->nr);
}

/* Divide base into buffers; returns the bytes they take (base NULL: only
 * that). */
static size_t scratch_init(struct gg_attn_scratch *b, unsigned char *base,
                           const struct gg_attn_dims *s)
{
    const size_t f = sizeof(float);
    size_t used = 0;
    b->q = gg_cpu_take_scratch(base, &used, s->cols / s->nr * s->q_size);
    b->k = gg_cpu_take_scratch(base, &used, s->keys / s->mr * s->k_size);
    b->v = gg_cpu_take_scratch(base, &used, s->dv / s->mr * s->v_size);
    b->w = gg_cpu_take_scratch(base, &used, s->w_size);
    b->scores = gg_cpu_take_scratch(base, &used, s->nr * s->keys * f);
    b->out = gg_cpu_take_scratch(base, &used, s->cols * s->dv * f);
    b->mask = gg_cpu_take_scratch(base, &used, s->keys * f);
    b->buf = gg_cpu_take_scratch(base, &used, s->buf_size);
    b->values = gg_cpu_take_scratch(base, &used, s->v_steps * s->dv * f);
    b->max = gg_cpu_take_scratch(base, &used, s->cols * f);
    b->shrink = gg_cpu_take_scratch(base, &used, s->nr * f);
    b->sum = gg_cpu_take_scratch(base, &used, s->cols * sizeof *b->sum);
    b->q_scale = gg_cpu_take_scratch(base, &used, s->cols * f);
    b->k_scale = gg_cpu_take_scratch(base, &used, s->keys * f);
    b->v_scale = gg_cpu_take_scratch(base, &used, s->keys * f);
    b->w_scale = gg_cpu_take_scratch(base, &used, s->nr * f);
    return used;
}

static bool is_empty(const struct gg_attn_args *a)
{
    return !a->n_tok || !a->n_head || !a->n_seq || !a->dv;
}

static size_t spans_size(const struct gg_attn_mask *m)
{
    return gg_attn_round_up(gg_attn_mask_n_spans(m) * sizeof *m->span, ALIGN);
}

size_t gg_attn_work_size(const struct gg_attn_args *a, unsigned nth)
{
    if (is_empty(a))
        return 0;
    struct gg_attn_dims s;
    struct gg_attn_scratch b;
    struct gg_attn_mask m;
    dims_init(&s, a, nth);
    gg_attn_mask_init(&m, a, NULL);
    return ALIGN + sizeof(struct shared) + spans_size(&m) +
           nth * scratch_init(&b, NULL, &s);
}

float gg_attn_slope(float max_bias, int64_t head, int64_t n_head)
{
    if (max_bias == 0)
        return 1;
    int64_t n = 1;
    while (n <= n_head / 2)
        n *= 2;
    const double step =
        head < n ? (double)(head + 1) : (double)(2 * (head - n) + 1) / 2;
    return (float)exp2(-(double)max_bias * step / (double)n);
}

/* Rows of q into panels. */
static void pack_q(const struct gg_attn_task *t)
{
    const struct gg_attn_args *a = t->a;
    const size_t nr = t->s->nr, stride = a->q_nb[0] / sizeof(float);
    memset(t->b->q, 0, t->s->cols / nr * t->s->q_size);
    for (size_t h = 0; h < t->s->group; h++) {
        const float *q = (const float *)a->q +
                         (t->tok0 * a->q_nb[0] + (t->head0 + h) * a->q_nb[1] +
                          t->seq * a->q_nb[2]) /
                             sizeof(float);
        for (size_t i = 0, n; i < t->n_tok; i += n) {
            const size_t col = h * t->n_tok + i;
            n = GG_MIN(t->n_tok - i, nr - col % nr);
            t->s->form->pack_q(t, col, q + i * stride, stride, n);
        }
    }
}

/* The first of the head's keys, or values, from position first on. */
static const unsigned char *row_at(const struct gg_attn_task *t,
                                   const void *rows, const size_t nb[3],
                                   size_t first)
{
    return (const unsigned char *)rows + first * nb[0] + t->head_kv * nb[1] +
           t->seq * nb[2];
}

bool gg_attn_rows_are_f32(int type, const void *rows, size_t stride)
{
    return type == GG_DT_F32 &&
           ((uintptr_t)rows | stride) % sizeof(float) == 0;
}

struct gg_kern_gemm_rows gg_attn_key_rows(const struct gg_attn_task *t,
                                          size_t first)
{
    const struct gg_attn_args *a = t->a;
    return (struct gg_kern_gemm_rows){ a->k_type,
                                       row_at(t, a->k, a->k_nb, first),
                                       a->k_nb[0], 0 };
}

void gg_attn_prefetch_rows(const void *row, size_t stride, size_t n,
                           size_t size)
{
    const unsigned char *p = row;
    for (; n--; p += stride)
        for (size_t i = 0; i < size; i += ALIGN)
            GG_PREFETCH(p + i);
}

/* Values of n positions from first on as floats, *stride from row to row, 0
 * beyond dv: where they lie, or decoded. */
static const float *load_values(const struct gg_attn_task *t, size_t first,
                                size_t n, size_t *stride)
{
    const struct gg_attn_args *a = t->a;
    const size_t dv = (size_t)a->dv;
    const unsigned char *v = row_at(t, a->v, a->v_nb, first);
    const size_t size = dv / gg_dtype_by_index(a->v_type)->block_len *
                        gg_dtype_by_index(a->v_type)->block_size;
    gg_attn_prefetch_rows(v + n * a->v_nb[0], a->v_nb[0], n, size);
    if (dv == t->s->dv && gg_attn_rows_are_f32(a->v_type, v, a->v_nb[0])) {
        *stride = a->v_nb[0] / sizeof(float);
        return (const float *)(const void *)v;
    }
    *stride = t->s->dv;
    for (size_t i = 0; i < n; i++, v += a->v_nb[0]) {
        float *row = t->b->values + i * t->s->dv;
        a->kern->codec[a->v_type].decode(v, row, dv);
        for (size_t j = dv; j < t->s->dv; j++)
            row[j] = 0;
    }
    return t->b->values;
}

/* Values of n positions from first on into panels, in which a position is a
 * step. */
static void pack_v(const struct gg_attn_task *t, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i += t->s->v_steps) {
        const size_t rows = GG_MIN(n - i, t->s->v_steps);
        size_t stride;
        const float *v = load_values(t, first + i, rows, &stride);
        t->s->form->pack_v(t, i, v, stride, rows);
    }
}

static void cap_scores(const struct gg_vec_kern *vec, float *s, size_t n,
                       float scale, float cap)
{
    for (size_t i = 0; i < n; i++)
        s[i] = s[i] * scale / cap;
    vec->tanh(s, s, n);
}

/* A column's products with keys from first on become scores; returns the
 * largest. */
static float score_column(const struct gg_attn_task *t,
                          const struct gg_attn_part *p, size_t col,
                          size_t first, float slope)
{
    const struct gg_attn_args *a = t->a;
    const struct gg_vec_kern *vec = &a->kern->vec;
    const size_t n = p->end - p->begin;
    float *s = t->b->scores + (col - p->col) * t->s->keys + p->begin;
    float scale = a->scale;
    if (a->softcap != 0) {
        cap_scores(vec, s, n, scale, a->softcap);
        scale = a->softcap;
    }
    const float *mask = p->masked
                            ? gg_attn_mask_row(a, t->seq, t->head_kv,
                                               t->head0 + col / t->n_tok,
                                               t->tok0 + col % t->n_tok,
                                               first + p->begin, n, t->b->mask)
                            : NULL;
    return vec->scores(s, s, mask, n, scale, slope);
}

/* Turn a column's scores into weights exp(score - max), and scale down the
 * sums under a smaller maximum. */
static void weigh_column(const struct gg_attn_task *t,
                         const struct gg_attn_part *p, size_t col,
                         float shrink)
{
    const struct gg_vec_kern *vec = &t->a->kern->vec;
    const size_t n = p->end - p->begin;
    float *s = t->b->scores + (col - p->col) * t->s->keys + p->begin;
    if (shrink != 1) {
        float *out = t->b->out + col * t->s->dv;
        t->b->sum[col] *= (double)shrink;
        vec->scale(out, out, t->s->dv, shrink, 0);
    }
    if (t->b->max[col] == -INFINITY) {
        /* No key is open yet. A NaN among the scores must show. */
        for (size_t i = 0; i < n; i++)
            s[i] = s[i] == -INFINITY ? 0 : s[i];
        return;
    }
    t->b->sum[col] += t->s->form->weigh(t, s, p->begin, n, t->b->max[col]);
}

/* Products of a panel of columns with keys from first on become weights. */
static void weigh_keys(const struct gg_attn_task *t,
                       const struct gg_attn_part *p, size_t first)
{
    const struct gg_attn_args *a = t->a;
    float *shrink = t->b->shrink, slope = 1;
    for (size_t j = 0; j < p->n_cols; j++) {
        const size_t c = p->col + j, head = t->head0 + c / t->n_tok;
        if (j == 0 || c % t->n_tok == 0)
            slope = gg_attn_slope(a->max_bias, (int64_t)head, a->n_head);
        const float max = score_column(t, p, c, first, slope);
        const float old = t->b->max[c];
        /* before there was anything there is nothing to scale */
        shrink[j] = max > old && old != -INFINITY ? old - max : 0;
        t->b->max[c] = max > old ? max : old;
    }
    a->kern->vec.exp_sum(shrink, shrink, p->n_cols, 0); /* exp(0) is 1 */
    for (size_t j = 0; j < p->n_cols; j++)
        weigh_column(t, p, p->col + j, shrink[j]);
}

/* Find the packed keys, of n from first on, that the panel of columns from col
 * on needs. False: none. */
static bool mask_keys(const struct gg_attn_task *t, struct gg_attn_part *p,
                      size_t col, size_t first, size_t n)
{
    const size_t mr = t->s->mr, nr = t->s->nr;
    const size_t tok = col % t->n_tok;
    *p = (struct gg_attn_part){ .col = col,
                                .n_cols = GG_MIN(nr, t->n_cols - col) };
    /* columns of several heads: all tokens */
    const bool one = tok + p->n_cols <= t->n_tok;
    const struct gg_attn_span s = gg_attn_mask_span(
        t->mask, t->seq, t->head_kv, t->head0, t->tok0 + (one ? tok : 0),
        one ? p->n_cols : t->n_tok, first / GG_ATTN_KEYS);
    if (s.begin >= s.end)
        return false;
    const size_t at = first % GG_ATTN_KEYS; /* offset in the block of keys */
    p->begin = (s.begin * (size_t)GG_ATTN_UNIT - at) / mr * mr;
    p->end = GG_MIN(s.end * (size_t)GG_ATTN_UNIT - at, n);
    p->masked = !s.plain;
    return true;
}

static void run_block(const struct gg_attn_task *t, size_t first, size_t n)
{
    const struct gg_attn_form *form = t->s->form;
    form->pack_k(t, first, n);
    pack_v(t, first, n);
    for (size_t c = 0; c < t->n_cols; c += t->s->nr) {
        struct gg_attn_part p;
        if (!mask_keys(t, &p, c, first, n))
            continue;
        form->multiply_keys(t, &p);
        weigh_keys(t, &p, first);
        form->multiply_values(t, &p);
    }
}

/* Final factor of column c's output: 1 / sum, where the sum includes the
 * head's attention sink. */
static float last_scale(const struct gg_attn_task *t, size_t c)
{
    const struct gg_attn_args *a = t->a;
    const struct gg_vec_kern *vec = &a->kern->vec;
    double sum = t->b->sum[c];
    float shrink = 1;
    if (a->sinks) {
        const float sink = a->sinks[t->head0 + c / t->n_tok];
        const float max = t->b->max[c];
        if (sink > max) { /* the sums so far are scaled down */
            vec->exp_sum(&shrink, &max, 1, sink);
            sum = sum * (double)shrink + 1;
        } else if (max != -INFINITY) {
            sum += vec->exp_sum(NULL, &sink, 1, max);
        }
    }
    return sum == 0 ? 1 : (float)((double)shrink / sum);
}

static void store_out(const struct gg_attn_task *t)
{
    const struct gg_attn_args *a = t->a;
    for (size_t c = 0; c < t->n_cols; c++) {
        float *out = a->out + ((t->head0 + c / t->n_tok) * a->out_nb[0] +
                               (t->tok0 + c % t->n_tok) * a->out_nb[1] +
                               t->seq * a->out_nb[2]) /
                                  sizeof(float);
        a->kern->vec.scale(out, t->b->out + c * t->s->dv, (size_t)a->dv,
                           last_scale(t, c), 0);
    }
}

static void run_task(const struct gg_attn_args *a,
                     const struct gg_attn_dims *s,
                     const struct gg_attn_mask *mask,
                     struct gg_attn_scratch *b, size_t i)
{
    struct gg_attn_task t = { .a = a, .s = s, .mask = mask, .b = b };
    /* The last tokens first: with a causal mask they take longest. */
    t.tok0 = (s->n_blocks - 1 - i % s->n_blocks) * s->block_tok;
    t.head_kv = i / s->n_blocks % (size_t)a->n_head_kv;
    t.seq = i / s->n_blocks / (size_t)a->n_head_kv;
    t.head0 = t.head_kv * s->group;
    t.n_tok = GG_MIN(s->block_tok, (size_t)a->n_tok - t.tok0);
    t.n_cols = t.n_tok * s->group;
    pack_q(&t);
    memset(b->out, 0, t.n_cols * s->dv * sizeof(float));
    for (size_t c = 0; c < t.n_cols; c++) {
        b->max[c] = -INFINITY;
        b->sum[c] = 0;
    }
    for (size_t k = 0; k < (size_t)a->n_kv; k += GG_ATTN_KEYS) {
        const struct gg_attn_span open =
            gg_attn_mask_span(mask, t.seq, t.head_kv, t.head0, t.tok0, t.n_tok,
                              k / GG_ATTN_KEYS);
        const size_t first = k + open.begin * GG_ATTN_UNIT;
        if (open.begin < open.end)
            run_block(&t, first,
                      GG_MIN(k + open.end * GG_ATTN_UNIT, (size_t)a->n_kv) -
                          first);
    }
    store_out(&t);
}

void gg_attn_run(const struct gg_attn_args *a, unsigned ith, void *work,
                 struct gg_barrier *barrier)
{
    if (is_empty(a))
        return;
    struct gg_attn_dims s;
    struct gg_attn_scratch b;
    struct gg_attn_mask mask;
    const unsigned nth = barrier ? barrier->n_threads : 1;
    dims_init(&s, a, nth);
    unsigned char *at = work;
    at += (ALIGN - (uintptr_t)at % ALIGN) % ALIGN;
    struct shared *shared = (struct shared *)(void *)at;
    const size_t size = scratch_init(&b, NULL, &s);
    at += sizeof *shared;
    gg_attn_mask_init(&mask, a, (void *)at);
    at += spans_size(&mask);
    scratch_init(&b, at + ith * size, &s);
    if (ith == 0)
        atomic_store_explicit(&shared->next, 0, memory_order_relaxed);
    gg_attn_mask_scan(&mask, ith, nth, b.mask);
    if (barrier)
        gg_barrier_wait(barrier);
    /* relaxed: a claim orders nothing but itself */
    for (size_t i; (i = atomic_fetch_add_explicit(
                        &shared->next, 1, memory_order_relaxed)) < s.n_tasks;)
        run_task(a, &s, &mask, &b, i);
}
