/* SPDX-License-Identifier: MIT */
/* stats.c - statistics of a tensor, and of the differences of two
 *
 * A tensor is divided into pieces of PIECE elements. Threads take pieces by
 * number and keep a record for each. Records are combined in order, so that the
 * result is the same for any number of threads. Moments are central in each
 * slice, and combined by the formulas of Chan, Golub and LeVeque (1979) and,
 * for the fourth, of Terriberry (2007).
 */
#include "config.h"
#include "gguf/stats.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/str.h"
#include "data/tensor_rows.h"
#include "kern/cpu_features.h"
#include "kern/stat.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    SLICE = 8192,       /* elements decoded at once: 32 KiB */
    PIECE = 64 * SLICE, /* elements of a record; a multiple of every block */
};

/* ---- pieces on all threads ---- */

struct work;
typedef void piece_fn(const struct work *w, uint64_t piece, float *a,
                      float *b);

struct work {
    struct gg_stat_kern kern;
    struct gg_data_rows a, b; /* b is used for comparisons only */
    uint64_t n, n_pieces;
    piece_fn *fn;
    void *records;                  /* one per piece */
    float *buffers;                 /* two slices per thread */
    struct gguf_pool *pool;         /* NULL for a single piece */
    unsigned n_threads;             /* threads with work */
    const struct gguf_stats *stats; /* result of the first pass, for the
                                     * second */
    atomic_uint_fast64_t next;
};

static void run_member(void *user, unsigned ith, unsigned nth)
{
    struct work *w = user;
    float *a = w->buffers + (size_t)2 * SLICE * ith;
    (void)nth;
    if (ith >= w->n_threads)
        return;
    /* Relaxed: a piece's record is read only after the team has joined. */
    for (uint64_t i; (i = atomic_fetch_add_explicit(
                          &w->next, 1, memory_order_relaxed)) < w->n_pieces;)
        w->fn(w, i, a, a + SLICE);
}

static void run_pieces(struct work *w, piece_fn *fn)
{
    atomic_init(&w->next, 0);
    w->fn = fn;
    gguf_pool_run(w->pool, (struct gguf_pool_callback){ run_member, w });
}

/* Get slice number s of a piece: its first element and length; 0 after the
 * last. */
static size_t slice_of(const struct work *w, uint64_t piece, uint64_t s,
                       uint64_t *first)
{
    *first = piece * PIECE + s * SLICE;
    if (s == PIECE / SLICE || *first >= w->n)
        return 0;
    return (size_t)GG_MIN(w->n - *first, (uint64_t)SLICE);
}

/* Prepare to read tensor i of file as w->a. Later steps cannot fail. */
static enum gguf_status begin_work(struct work *w,
                                   const struct gguf_file *file, size_t i,
                                   size_t record_size,
                                   const struct gguf_stats_params *p,
                                   struct gguf_error *err)
{
    if (!p->rows)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_stats_params: rows is NULL");
    GG_TRY(gg_data_rows_of(p->rows, file, i, &w->a, err));
    gg_stat_kern_init(&w->kern, gg_kern_cpu_detect());
    w->n = gguf_file_tensor(file, i)->n_elements;
    w->n_pieces = (w->n + PIECE - 1) / PIECE;
    w->pool = w->n_pieces > 1 ? p->pool : NULL;
    w->n_threads = gguf_pool_n_threads(w->pool);
    if (w->n_threads > w->n_pieces)
        w->n_threads = (unsigned)GG_MAX(w->n_pieces, 1);
    w->records =
        gg_mem_alloc_zero(p->allocator, GG_MAX(w->n_pieces, 1), record_size);
    w->buffers = gg_mem_alloc_aligned(
        p->allocator, (size_t)w->n_threads * 2 * SLICE * sizeof(float), 64);
    if (w->records && w->buffers)
        return GGUF_OK;
    return gg_error_set_nomem(err, (size_t)w->n_pieces * record_size);
}

static void end_work(struct work *w, const struct gguf_allocator *a)
{
    gg_mem_free(a, w->records);
    gg_mem_free_aligned(a, w->buffers);
}

/* ---- moments ---- */

struct moments {
    uint64_t n, n_zero, n_nan, n_inf; /* n counts finite numbers */
    double min, max, mean, m2, m3, m4;
    double sum_sq;
};

static void join_moments(struct moments *a, const struct moments *b)
{
    a->n_zero += b->n_zero;
    a->n_nan += b->n_nan;
    a->n_inf += b->n_inf;
    if (!b->n)
        return;
    a->min = a->n ? fmin(a->min, b->min) : b->min;
    a->max = a->n ? fmax(a->max, b->max) : b->max;
    double na = (double)a->n, nb = (double)b->n, n = na + nb;
    double d = b->mean - a->mean, d2 = d * d;
    a->m4 += b->m4 +
             d2 * d2 * na * nb * (na * na - na * nb + nb * nb) / (n * n * n) +
             6 * d2 * (na * na * b->m2 + nb * nb * a->m2) / (n * n) +
             4 * d * (na * b->m3 - nb * a->m3) / n;
    a->m3 += b->m3 + d * d2 * na * nb * (na - nb) / (n * n) +
             3 * d * (na * b->m2 - nb * a->m2) / n;
    a->m2 += b->m2 + d2 * na * nb / n;
    a->mean += d * nb / n;
    a->sum_sq += b->sum_sq;
    a->n += b->n;
}

static void slice_moments(const struct work *w, struct moments *m,
                          const float *x, size_t n)
{
    struct gg_stat_sums s;
    double central[3];
    w->kern.sums(x, n, &s);
    *m = (struct moments){
        .n = s.n_finite, .n_zero = s.n_zero, .n_nan = s.n_nan, .n_inf = s.n_inf
    };
    if (!m->n)
        return;
    m->min = s.min;
    m->max = s.max;
    m->mean = s.sum / (double)m->n;
    m->sum_sq = s.sum_sq;
    w->kern.central(x, n, m->mean, central);
    m->m2 = central[0];
    m->m3 = central[1];
    m->m4 = central[2];
}

static void piece_moments(const struct work *w, uint64_t piece, float *a,
                          float *b)
{
    struct moments *all = (struct moments *)w->records + piece, m;
    uint64_t first;
    size_t n;
    (void)b;
    for (uint64_t s = 0; (n = slice_of(w, piece, s, &first)) > 0; s++) {
        gg_data_read(&w->a, first, n, a);
        slice_moments(w, &m, a, n);
        join_moments(all, &m);
    }
}

/* ---- histogram ---- */

static void piece_bins(const struct work *w, uint64_t piece, float *a,
                       float *b)
{
    uint64_t *bins = (uint64_t *)w->records + piece * GGUF_STATS_BINS, first;
    double lo = w->stats->lo, range = w->stats->hi - lo;
    double scale = range > 0 ? GGUF_STATS_BINS / range : 0;
    size_t n;
    (void)b;
    for (uint64_t s = 0; (n = slice_of(w, piece, s, &first)) > 0; s++) {
        gg_data_read(&w->a, first, n, a);
        w->kern.bins(a, n, lo, scale, bins, GGUF_STATS_BINS);
    }
}

static void set_stats(struct gguf_stats *s, const struct moments *m,
                      uint64_t n)
{
    *s = (struct gguf_stats){ .struct_size = sizeof *s,
                              .n = n,
                              .n_zero = m->n_zero,
                              .n_nan = m->n_nan,
                              .n_inf = m->n_inf };
    if (!m->n)
        return;
    double k = (double)m->n, var = m->m2 / k;
    s->min = m->min;
    s->max = m->max;
    s->mean = m->mean;
    s->rms = sqrt(m->sum_sq / k);
    s->stddev = sqrt(var);
    s->kurtosis = var > 0 ? m->m4 / k / (var * var) - 3 : 0;
    s->lo = fmax(s->min, s->mean - 4 * s->stddev);
    s->hi = fmin(s->max, s->mean + 4 * s->stddev);
}

enum gguf_status gguf_stats_tensor(const struct gguf_file *file, size_t i,
                                   const struct gguf_stats_params *params,
                                   struct gguf_stats *out,
                                   struct gguf_error *err)
{
    struct gguf_stats_params p = GGUF_INIT(struct gguf_stats_params);
    struct gguf_stats s = GGUF_INIT(struct gguf_stats);
    struct work w = { .n = 0 };
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_stats_params", err));
    GG_TRY(gg_params_give(out, &s, sizeof s, "gguf_stats", err));
    size_t size =
        GG_MAX(sizeof(struct moments), GGUF_STATS_BINS * sizeof(uint64_t));
    enum gguf_status st = begin_work(&w, file, i, size, &p, err);
    if (st == GGUF_OK) {
        struct moments all = { .n = 0 };
        run_pieces(&w, piece_moments);
        for (uint64_t k = 0; k < w.n_pieces; k++)
            join_moments(&all, (struct moments *)w.records + k);
        set_stats(&s, &all, w.n);
        memset(w.records, 0, (size_t)w.n_pieces * size);
        w.stats = &s;
        run_pieces(&w, piece_bins);
        const uint64_t *bins = w.records;
        for (uint64_t k = 0; k < w.n_pieces * GGUF_STATS_BINS; k++)
            s.bins[k % GGUF_STATS_BINS] += bins[k];
        (void)gg_params_give(out, &s, sizeof s, "gguf_stats", NULL);
    }
    end_work(&w, p.allocator);
    return st;
}

/* ---- two tensors ---- */

struct sums {
    uint64_t n, n_differ, n_nan;
    double max_abs, diff, aa, bb, ab;
};

static void piece_compare(const struct work *w, uint64_t piece, float *a,
                          float *b)
{
    struct sums *r = (struct sums *)w->records + piece;
    struct gg_stat_diff d;
    uint64_t first;
    size_t n;
    for (uint64_t s = 0; (n = slice_of(w, piece, s, &first)) > 0; s++) {
        gg_data_read(&w->a, first, n, a);
        gg_data_read(&w->b, first, n, b);
        w->kern.diff(a, b, n, &d);
        r->n += d.n_finite;
        r->n_differ += n - d.n_same;
        r->n_nan += n - d.n_finite;
        r->max_abs = fmax(r->max_abs, d.max_abs);
        r->diff += d.dd;
        r->aa += d.xx;
        r->bb += d.yy;
        r->ab += d.xy;
    }
}

static void set_diff(struct gguf_stats_diff *d, const struct sums *r,
                     uint64_t n)
{
    double k = r->n ? (double)r->n : 1;
    *d = (struct gguf_stats_diff){ .struct_size = sizeof *d,
                                   .n = n,
                                   .n_differ = r->n_differ,
                                   .n_nan = r->n_nan,
                                   .max_abs = r->max_abs,
                                   .rms = sqrt(r->diff / k),
                                   .rms_a = sqrt(r->aa / k),
                                   .rms_b = sqrt(r->bb / k) };
    if (r->aa > 0 && r->bb > 0)
        d->cosine =
            r->diff > 0 ? fmin(1, r->ab / (sqrt(r->aa) * sqrt(r->bb))) : 1;
    else
        d->cosine = r->aa > 0 || r->bb > 0 ? 0 : 1;
}

enum gguf_status gguf_stats_compare(const struct gguf_file *a, size_t ia,
                                    const struct gguf_file *b, size_t ib,
                                    const struct gguf_stats_params *params,
                                    struct gguf_stats_diff *out,
                                    struct gguf_error *err)
{
    struct gguf_stats_params p = GGUF_INIT(struct gguf_stats_params);
    struct work w = { .n = 0 };
    const struct gguf_tensor_info *s = gguf_file_tensor(a, ia);
    const struct gguf_tensor_info *t = gguf_file_tensor(b, ib);
    struct gguf_stats_diff d = GGUF_INIT(struct gguf_stats_diff);
    struct gg_str_esc e;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_stats_params", err));
    GG_TRY(gg_params_give(out, &d, sizeof d, "gguf_stats_diff", err));
    if (s && t && memcmp(s->ne, t->ne, sizeof s->ne) != 0)
        return gg_error_set(err, GGUF_E_SHAPE, t->info_off,
                            "tensor '%s' has another shape",
                            gg_str_esc(&e, t->name));
    enum gguf_status st = begin_work(&w, a, ia, sizeof(struct sums), &p, err);
    if (st == GGUF_OK)
        st = gg_data_rows_of(p.rows, b, ib, &w.b, err);
    if (st == GGUF_OK) {
        struct sums all = { 0, 0, 0, 0, 0, 0, 0, 0 };
        run_pieces(&w, piece_compare);
        for (uint64_t k = 0; k < w.n_pieces; k++) {
            const struct sums *r = (struct sums *)w.records + k;
            all.n += r->n;
            all.n_differ += r->n_differ;
            all.n_nan += r->n_nan;
            all.max_abs = fmax(all.max_abs, r->max_abs);
            all.diff += r->diff;
            all.aa += r->aa;
            all.bb += r->bb;
            all.ab += r->ab;
        }
        set_diff(&d, &all, w.n);
        (void)gg_params_give(out, &d, sizeof d, "gguf_stats_diff", NULL);
    }
    end_work(&w, p.allocator);
    return st;
}
