/* SPDX-License-Identifier: MIT */
/* attn.c - attention: blocks of tokens and heads by blocks of keys
 *
 * A task is some tokens of all the heads that share a head of keys: its
 * columns. For each block of keys it multiplies K by the columns (scores lie
 * with a column's keys side by side), turns scores into weights, and adds V
 * times weights to the columns' outputs. Both are products of panels in a
 * precision of kern/gemm.h; K is packed as a product's weights are, V is in
 * the order of steps already. What a mask opens is found out once for all
 * tasks; a panel of columns meets those keys alone that are open to one of
 * them.
 */
#include "config.h"
#include "cpu/attn_mask.h"

#include "base/barrier.h"
#include "base/compiler.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
    ALIGN = 64,
    N_COLS = 192, /* columns of a task, as far as whole tokens allow: keys and
                   * values are packed once for all of them; */
    N_COLS_LONG = 96, /* of rows that are longer than */
    LONG = 256,       /* together: what a task has at hand is for L2 */
    V_ROWS = 16
};

/* What follows from the arguments; lengths in elements. */
struct dims {
    const struct gg_kern_gemm *g;
    size_t group;     /* heads that share keys */
    size_t block_tok; /* tokens of a task */
    size_t n_blocks;  /* of tokens */
    size_t n_tasks;
    size_t cols;   /* of a task, rounded up to nr */
    size_t dv;     /* rounded up to mr */
    size_t keys;   /* GG_ATTN_KEYS, rounded up to mr */
    size_t v_rows; /* values decoded at a time, whole blocks of steps */
};

/* What the threads share, at the start of work. */
struct shared {
    _Alignas(ALIGN) _Atomic size_t next; /* task */
};

/* Keys of a block that a panel of columns sees, from the first of a packed
 * panel of keys on. */
struct part {
    size_t col, n_cols;
    size_t begin, end; /* in the keys that are packed */
    float *scores;     /* [n_cols][keys], then weights */
    bool masked;
};

/* One thread's buffers. */
struct scratch {
    unsigned char *q;      /* columns of d steps, cols / nr panels */
    unsigned char *k;      /* rows of d steps, keys / mr panels */
    unsigned char *v;      /* rows of a step for each key, dv / mr panels */
    unsigned char *packed; /* weights: columns of as many, a panel */
    struct part *part;     /* [cols / nr] */
    float *scores;         /* [cols][keys], then weights */
    float *out;            /* [cols][dv], not divided by sum yet */
    float *mask;           /* [keys], of a column */
    void *buf;             /* of pack_rows */
    float *values;         /* [v_rows][dv], decoded */
    float *max;            /* [cols], of the scores so far */
    float *shrink;         /* [nr], what was summed so far is worth */
    double *sum;           /* [cols], of exp(score - max) so far */
};

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static void dims_init(struct dims *s, const struct gg_attn_args *a)
{
    const struct gg_kern_gemm *g = &a->kern->gemm[a->form];
    s->g = g;
    s->group = (size_t)(a->n_head / a->n_head_kv);
    const size_t most = a->d + a->dv > LONG ? N_COLS_LONG : N_COLS;
    s->block_tok = GG_MAX(most / s->group, 1);
    if (s->block_tok > g->nr) /* no panel has tokens of two heads */
        s->block_tok -= s->block_tok % g->nr;
    s->block_tok = GG_MIN(s->block_tok, (size_t)a->n_tok);
    s->n_blocks = ((size_t)a->n_tok + s->block_tok - 1) / s->block_tok;
    s->n_tasks = s->n_blocks * (size_t)a->n_head_kv * (size_t)a->n_seq;
    s->cols = round_up(s->group * s->block_tok, g->nr);
    s->dv = round_up((size_t)a->dv, g->mr);
    s->keys = round_up(GG_ATTN_KEYS, g->mr);
    s->v_rows = round_up(V_ROWS, g->k_block);
}

/* Take size bytes of memory, aligned; with base NULL only count. */
static void *take(unsigned char *base, size_t *used, size_t size)
{
    void *p = base ? base + *used : NULL;
    *used += round_up(size, ALIGN);
    return p;
}

/* Divide base into buffers; returns the bytes they take (base NULL: only
 * that). */
static size_t scratch_init(struct scratch *b, unsigned char *base,
                           const struct gg_attn_args *a, const struct dims *s)
{
    const struct gg_kern_gemm *g = s->g;
    const size_t d = (size_t)a->d, f = sizeof(float);
    const size_t col_panels = s->cols / g->nr;
    size_t used = 0;
    b->q = take(base, &used, col_panels * gg_kern_gemm_x_size(g, d));
    b->k = take(base, &used, s->keys / g->mr * gg_kern_gemm_w_size(g, d));
    b->v = take(base, &used, s->dv / g->mr * gg_kern_gemm_w_size(g, s->keys));
    b->packed = take(base, &used, gg_kern_gemm_x_size(g, s->keys));
    b->part = take(base, &used, col_panels * sizeof *b->part);
    b->scores = take(base, &used, s->cols * s->keys * f);
    b->out = take(base, &used, s->cols * s->dv * f);
    b->mask = take(base, &used, s->keys * f);
    b->buf = take(base, &used, g->buf_size);
    b->values = take(base, &used, s->v_rows * s->dv * f);
    b->max = take(base, &used, s->cols * f);
    b->shrink = take(base, &used, g->nr * f);
    b->sum = take(base, &used, s->cols * sizeof *b->sum);
    return used;
}

static bool is_empty(const struct gg_attn_args *a)
{
    return !a->n_tok || !a->n_head || !a->n_seq || !a->dv;
}

static size_t spans_size(const struct gg_attn_mask *m)
{
    return round_up(gg_attn_mask_n_spans(m) * sizeof *m->span, ALIGN);
}

size_t gg_attn_work_size(const struct gg_attn_args *a, unsigned nth)
{
    if (is_empty(a))
        return 0;
    struct dims s;
    struct scratch b;
    struct gg_attn_mask m;
    dims_init(&s, a);
    gg_attn_mask_init(&m, a, NULL);
    return ALIGN + sizeof(struct shared) + spans_size(&m) +
           nth * scratch_init(&b, NULL, a, &s);
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

/* A task in progress. */
struct task {
    const struct gg_attn_args *a;
    const struct dims *s;
    const struct gg_attn_mask *mask;
    struct scratch *b;
    size_t seq, head_kv, head0; /* the first of the group's heads */
    size_t tok0, n_tok;
    size_t n_cols; /* column h * n_tok + t is head head0 + h, token tok0 + t */
};

/* Rows of q into panels. */
static void pack_q(const struct task *t)
{
    const struct gg_attn_args *a = t->a;
    const struct gg_kern_gemm *g = t->s->g;
    const size_t nr = g->nr, d = (size_t)a->d,
                 size = gg_kern_gemm_x_size(g, d);
    const size_t stride = a->q_nb[0] / sizeof(float);
    memset(t->b->q, 0, t->s->cols / nr * size);
    for (size_t h = 0; h < t->s->group; h++) {
        const float *q = (const float *)a->q +
                         (t->tok0 * a->q_nb[0] + (t->head0 + h) * a->q_nb[1] +
                          t->seq * a->q_nb[2]) /
                             sizeof(float);
        for (size_t i = 0, n; i < t->n_tok; i += n) {
            const size_t col = h * t->n_tok + i;
            n = GG_MIN(t->n_tok - i, nr - col % nr);
            g->pack_x(g, t->b->q + col / nr * size, col % nr, q + i * stride,
                      stride, n, d);
        }
    }
}

/* The first of the head's keys, or values, from position first on. */
static const unsigned char *row_at(const struct task *t, const void *rows,
                                   const size_t nb[3], size_t first)
{
    return (const unsigned char *)rows + first * nb[0] + t->head_kv * nb[1] +
           t->seq * nb[2];
}

static bool lies_as_floats(int type, const void *rows, size_t stride)
{
    return type == GG_DT_F32 &&
           ((uintptr_t)rows | stride) % sizeof(float) == 0;
}

/* Rows lie far apart, which hardware does not foresee. */
static void ask_for(const unsigned char *row, size_t stride, size_t n,
                    size_t size)
{
    for (; n--; row += stride)
        for (size_t i = 0; i < size; i += ALIGN)
            GG_PREFETCH(row + i);
}

/* Values of n positions from first on as floats, *stride from row to row, 0
 * beyond dv: where they lie, or decoded. */
static const float *load_values(const struct task *t, size_t first, size_t n,
                                size_t *stride)
{
    const struct gg_attn_args *a = t->a;
    const size_t dv = (size_t)a->dv;
    const unsigned char *v = row_at(t, a->v, a->v_nb, first);
    const size_t size = dv / gg_dtype_by_index(a->v_type)->block_len *
                        gg_dtype_by_index(a->v_type)->block_size;
    ask_for(v + n * a->v_nb[0], a->v_nb[0], n, size);
    if (dv == t->s->dv && lies_as_floats(a->v_type, v, a->v_nb[0])) {
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
static void pack_v(const struct task *t, size_t first, size_t n)
{
    const struct gg_kern_gemm *g = t->s->g;
    const size_t size = gg_kern_gemm_w_size(g, t->s->keys), dv = t->s->dv;
    for (size_t i = 0; i < n; i += t->s->v_rows) {
        const size_t rows = GG_MIN(n - i, t->s->v_rows);
        unsigned char *panel = t->b->v + gg_kern_gemm_w_size(g, i);
        size_t stride;
        const float *v = load_values(t, first + i, rows, &stride);
        for (size_t j = 0; j < dv; j += g->mr, panel += size)
            g->pack_wt(g, panel, 0, v + j, stride, g->mr, rows);
    }
}

/* Products of packed keys with a panel of columns. */
static void multiply_keys(const struct task *t, const struct part *p)
{
    const struct gg_kern_gemm *g = t->s->g;
    const size_t d = (size_t)t->a->d;
    const size_t k_size = gg_kern_gemm_w_size(g, d);
    const unsigned char *q =
        t->b->q + p->col / g->nr * gg_kern_gemm_x_size(g, d);
    for (size_t i = p->begin; i < p->end; i += g->mr)
        g->tile(t->b->k + i / g->mr * k_size, q, gg_kern_gemm_n_blocks(g, d),
                (unsigned)p->n_cols, p->scores + i, t->s->keys, 0);
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
static float score_column(const struct task *t, const struct part *p,
                          size_t col, size_t first, float slope)
{
    const struct gg_attn_args *a = t->a;
    const struct gg_vec_kern *vec = &a->kern->vec;
    const size_t n = p->end - p->begin;
    float *s = p->scores + (col - p->col) * t->s->keys + p->begin;
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

/* A column's scores become weights exp(score - max); what was summed under a
 * smaller maximum is scaled down. */
static void weigh_column(const struct task *t, const struct part *p,
                         size_t col, float shrink)
{
    const struct gg_vec_kern *vec = &t->a->kern->vec;
    const size_t n = p->end - p->begin;
    float *s = p->scores + (col - p->col) * t->s->keys + p->begin;
    if (shrink != 1) {
        float *out = t->b->out + col * t->s->dv;
        t->b->sum[col] *= (double)shrink;
        vec->scale(out, out, t->s->dv, shrink, 0);
    }
    if (t->b->max[col] == -INFINITY) {
        /* Nothing open yet. A NaN among the scores must show. */
        for (size_t i = 0; i < n; i++)
            s[i] = s[i] == -INFINITY ? 0 : s[i];
        return;
    }
    t->b->sum[col] += vec->exp_sum(s, s, n, t->b->max[col]);
}

/* Products of a panel of columns with keys from first on become weights. */
static void weigh(const struct task *t, const struct part *p, size_t first)
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
    a->kern->vec.exp_sum(shrink, shrink, p->n_cols, 0); /* of 0: 1 */
    for (size_t j = 0; j < p->n_cols; j++)
        weigh_column(t, p, p->col + j, shrink[j]);
}

/* The weights of a panel of columns into a panel, and V times these to out. */
static void multiply_values(const struct task *t, const struct part *p)
{
    const struct gg_kern_gemm *g = t->s->g;
    const size_t keys = t->s->keys, dv = t->s->dv, n = p->end - p->begin;
    const size_t v_size = gg_kern_gemm_w_size(g, keys);
    const unsigned char *v = t->b->v + gg_kern_gemm_w_size(g, p->begin);
    g->pack_x(g, t->b->packed, 0, p->scores + p->begin, keys, p->n_cols, n);
    for (size_t i = 0; i < dv; i += g->mr, v += v_size)
        g->tile(v, t->b->packed, gg_kern_gemm_n_blocks(g, n),
                (unsigned)p->n_cols, t->b->out + p->col * dv + i, dv, 1);
}

/* Keys of n positions from first on into panels. */
static void pack_k(const struct task *t, size_t first, size_t n)
{
    const struct gg_attn_args *a = t->a;
    const struct gg_kern_gemm *g = t->s->g;
    const size_t d = (size_t)a->d, size = gg_kern_gemm_w_size(g, d);
    const size_t stride = a->k_nb[0];
    const struct gg_kern_gemm_rows keys = { a->k_type,
                                            row_at(t, a->k, a->k_nb, first),
                                            stride, 0 };
    if (!lies_as_floats(a->k_type, keys.at, stride)) {
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
            ask_for(row + rows * stride, stride, rows, d * sizeof(float));
        g->pack_w(g, panel, 0, (const float *)(const void *)row,
                  stride / sizeof(float), rows, d);
        row += rows * stride;
    }
}

/* Which of n packed keys, from first on, the panel of columns from col on
 * sees; false: none. */
static bool see(const struct task *t, struct part *p, size_t col, size_t first,
                size_t n)
{
    const size_t mr = t->s->g->mr, nr = t->s->g->nr;
    const size_t tok = col % t->n_tok;
    *p = (struct part){ .col = col,
                        .n_cols = GG_MIN(nr, t->n_cols - col),
                        .scores = t->b->scores + col * t->s->keys };
    /* of two heads, or more: all tokens */
    const bool one = tok + p->n_cols <= t->n_tok;
    const struct gg_attn_span s = gg_attn_mask_span(
        t->mask, t->seq, t->head_kv, t->head0, t->tok0 + (one ? tok : 0),
        one ? p->n_cols : t->n_tok, first / GG_ATTN_KEYS);
    if (s.begin >= s.end)
        return false;
    const size_t at = first % GG_ATTN_KEYS; /* in the block of keys */
    p->begin = (s.begin * (size_t)GG_ATTN_UNIT - at) / mr * mr;
    p->end = GG_MIN(s.end * (size_t)GG_ATTN_UNIT - at, n);
    p->masked = !s.plain;
    return true;
}

static void run_block(const struct task *t, size_t first, size_t n)
{
    struct part *const part = t->b->part;
    size_t n_parts = 0;
    for (size_t c = 0; c < t->n_cols; c += t->s->g->nr)
        n_parts += see(t, &part[n_parts], c, first, n);
    pack_k(t, first, n);
    for (size_t i = 0; i < n_parts; i++)
        multiply_keys(t, &part[i]);
    for (size_t i = 0; i < n_parts; i++)
        weigh(t, &part[i], first);
    pack_v(t, first, n);
    for (size_t i = 0; i < n_parts; i++)
        multiply_values(t, &part[i]);
}

/* What column c's output is multiplied by in the end: 1 / sum, with the
 * head's sink, if there is one, in the sum. */
static float last_scale(const struct task *t, size_t c)
{
    const struct gg_attn_args *a = t->a;
    const struct gg_vec_kern *vec = &a->kern->vec;
    double sum = t->b->sum[c];
    float shrink = 1;
    if (a->sinks) {
        const float sink = a->sinks[t->head0 + c / t->n_tok];
        const float max = t->b->max[c];
        if (sink > max) { /* what was summed so far is worth less */
            vec->exp_sum(&shrink, &max, 1, sink);
            sum = sum * (double)shrink + 1;
        } else if (max != -INFINITY) {
            sum += vec->exp_sum(NULL, &sink, 1, max);
        }
    }
    return sum == 0 ? 1 : (float)((double)shrink / sum);
}

static void store_out(const struct task *t)
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

static void run_task(const struct gg_attn_args *a, const struct dims *s,
                     const struct gg_attn_mask *mask, struct scratch *b,
                     size_t i)
{
    struct task t = { .a = a, .s = s, .mask = mask, .b = b };
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
    struct dims s;
    struct scratch b;
    struct gg_attn_mask mask;
    dims_init(&s, a);
    unsigned char *at = work;
    at += (ALIGN - (uintptr_t)at % ALIGN) % ALIGN;
    struct shared *shared = (struct shared *)(void *)at;
    const size_t size = scratch_init(&b, NULL, a, &s);
    at += sizeof *shared;
    gg_attn_mask_init(&mask, a, (void *)at);
    at += spans_size(&mask);
    scratch_init(&b, at + ith * size, a, &s);
    if (ith == 0)
        atomic_store_explicit(&shared->next, 0, memory_order_relaxed);
    gg_attn_mask_scan(&mask, ith, barrier ? barrier->n_threads : 1, b.mask);
    if (barrier)
        gg_barrier_wait(barrier);
    /* relaxed: a claim orders nothing but itself */
    for (size_t i; (i = atomic_fetch_add_explicit(
                        &shared->next, 1, memory_order_relaxed)) < s.n_tasks;)
        run_task(a, &s, &mask, &b, i);
}
