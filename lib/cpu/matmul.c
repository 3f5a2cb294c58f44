/* SPDX-License-Identifier: MIT */
/* matmul.c - dense products: blocks, threads, edges
 *
 * A pass computes nc columns. All threads together pack their activations, for
 * the whole length k. Then each thread claims blocks of rows until all are
 * done. In a block, for each kc steps, it decodes and packs the rows (they
 * stay in L2), and multiplies each panel of rows by some panels of columns,
 * round by round.
 *
 * Sums are kept tile by tile: the columns of y are mostly a power of two
 * apart, so a block of them would share a few sets of the cache. A tile is
 * stored to y after its last steps: y is in no cache, and the next tile is
 * multiplied while its lines arrive. The next weights are prefetched in the
 * same way, a few lines with each tile. */
#include "config.h"
#include "cpu/matmul.h"
#include "cpu/claim.h"

#include "base/barrier.h"
#include "base/compiler.h"
#include "kern/few_columns.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
    ALIGN = 64,
    PACK_BYTES = 16 << 20, /* bytes of x that are packed at a time, for L3 */
    PACK_COLS = 1024,      /* columns that are packed at a time: sums in L2 */
    MOST_ASKED = 24,       /* lines to prefetch with a tile: the misses that a
                            * core can wait for at a time */
    GATHER_PAD = 16        /* floats between columns that are gathered, so that
                            * they are not in the same sets of the cache */
};

/* How the product is cut; the same for every thread. Sizes are bytes, whole
 * cache lines each. */
struct plan {
    const struct gg_kern_gemm *g;
    size_t nc;       /* columns per pass, a multiple of nr */
    size_t n_panels; /* blocks of rows */
    size_t n_groups; /* groups of columns within a pass */
    size_t x_size;   /* packed columns */
    size_t few_size; /* bytes of columns in the order of few columns, or 0 */
    size_t w_size, sum_size, thread_size; /* packed rows, sums; both and the
                                             packers' buffer */
};

static size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static size_t round_up_to_line(size_t size)
{
    return ceil_div(size, ALIGN) * ALIGN;
}

/* Most columns that are multiplied with rows as they lie, but as tiles do
 * it. */
static unsigned most_few(const struct gg_cpu_gemm_args *a)
{
    const struct gg_kern_few_row *few = a->kern->gemm[a->form].few;
    return few ? few[a->dtype_index].most : 0;
}

/* Kernel of such columns, or NULL. */
static gg_kern_few_fn *few_columns(const struct gg_cpu_gemm_args *a)
{
    if (a->n > (int64_t)most_few(a))
        return NULL;
    const struct gg_kern_few_row *few = a->kern->gemm[a->form].few;
    return few ? few[a->dtype_index].run : NULL;
}

/* Kernels of the panels of this number of columns. */
static const struct gg_kern_gemm *
form_kernels(const struct gg_cpu_gemm_args *a)
{
    const struct gg_kern_gemm *g = &a->kern->gemm[a->form];
    return g->few_form && few_columns(a) ? g->few_form : g;
}

int64_t gg_cpu_gemm_max_strided_cols(const struct gg_cpu_gemm_args *a)
{
    return GG_MAX(a->kern->gemm[a->form].narrow, most_few(a));
}

static bool is_narrow(const struct gg_cpu_gemm_args *a)
{
    return a->n < (int64_t)form_kernels(a)->narrow && !few_columns(a);
}

/* Most columns of a pass. */
static size_t most_cols(const struct gg_cpu_gemm_args *a)
{
    const struct gg_kern_gemm *g = form_kernels(a);
    const size_t size =
        GG_MAX(gg_kern_gemm_x_size(g, (size_t)a->k), g->x_block);
    const size_t n = PACK_BYTES / size * g->nr;
    return GG_MIN(GG_MAX(n, 8 * (size_t)g->nr), (size_t)PACK_COLS);
}

/* Floats from column to column of those that are gathered. */
static size_t gathered_stride(size_t kc)
{
    return kc + GATHER_PAD;
}

static void plan_init(struct plan *p, const struct gg_cpu_gemm_args *a,
                      unsigned nth)
{
    const struct gg_kern_gemm *g = form_kernels(a);
    const size_t k = (size_t)a->k, n = (size_t)a->n;
    p->g = g;
    p->nc = most_cols(a);
    /* Passes of equal length, up to a panel. */
    const size_t n_passes = ceil_div(n, p->nc);
    p->nc = ceil_div(ceil_div(n, GG_MAX(n_passes, 1)), g->nr) * g->nr;
    p->n_panels = ceil_div((size_t)a->m, g->mr);
    p->n_groups = 1;
    /* Too few rows for the threads: divide the columns, too, and pack the
     * rows once per group. */
    if (p->n_panels && p->n_panels < 2 * (size_t)nth)
        p->n_groups = GG_MIN(ceil_div(2 * (size_t)nth, p->n_panels),
                             ceil_div(p->nc, 4 * (size_t)g->nr));
    p->x_size = round_up_to_line(p->nc / g->nr * gg_kern_gemm_x_size(g, k));
    p->few_size = 0;
    if (few_columns(a))
        p->few_size =
            round_up_to_line(p->nc / g->nr * gg_kern_few_x_size(g, k));
    const size_t kc = GG_MIN((size_t)g->kc, k);
    p->w_size =
        round_up_to_line(GG_MAX(g->mc / g->mr * gg_kern_gemm_w_size(g, kc),
                                g->nr * gathered_stride(kc) * sizeof(float)));
    p->sum_size = round_up_to_line(g->mc * p->nc * sizeof(float));
    p->thread_size = p->w_size + p->sum_size + round_up_to_line(g->buf_size);
}

/* State that the threads share, at the start of work. */
struct shared {
    _Alignas(ALIGN) _Atomic size_t next; /* group * n_panels + panel */
};

size_t gg_cpu_gemm_work_size(const struct gg_cpu_gemm_args *a, unsigned nth)
{
    if (is_narrow(a))
        return 0;
    struct plan p;
    plan_init(&p, a, nth);
    if (few_columns(a)) /* one thread has a last panel of rows */
        nth = 1;
    return ALIGN + sizeof(struct shared) + p.x_size + p.few_size +
           nth * p.thread_size;
}

size_t gg_cpu_gemm_max_work_size(const struct gg_cpu_gemm_args *a,
                                 unsigned nth)
{
    /* more columns than a pass takes are cut into passes of equal length */
    struct gg_cpu_gemm_args b = *a;
    b.n = GG_MIN(a->n, (int64_t)most_cols(a));
    const size_t most = gg_cpu_gemm_work_size(&b, nth);
    if (!most_few(a)) /* few columns need more than panels */
        return most;
    b.n = GG_MIN(a->n, (int64_t)most_few(a));
    return GG_MAX(most, gg_cpu_gemm_work_size(&b, nth));
}

/* Packed columns for a product of few columns: panel i of the kc steps from q
 * on. */
static unsigned char *few_panel(const struct plan *p, unsigned char *xp,
                                size_t q, size_t kc, size_t i)
{
    const struct gg_kern_gemm *g = p->g;
    const size_t n_panels = p->nc / g->nr;
    if (!p->few_size)
        return xp + n_panels * gg_kern_gemm_x_size(g, q) +
               i * gg_kern_gemm_x_size(g, kc);
    return xp + p->x_size + n_panels * gg_kern_few_x_size(g, q) +
           i * gg_kern_few_x_size(g, kc);
}

/* kc steps of some columns, from step q of column j on, *stride floats apart:
 * where they lie, or in buf. */
static const float *find_columns(const struct gg_cpu_gemm_args *a, size_t j,
                                 size_t n, size_t q, size_t kc, float *buf,
                                 size_t *stride)
{
    if (!a->x_at) {
        *stride = a->x_stride / sizeof(float);
        return a->x + j * *stride + q;
    }
    *stride = gathered_stride(kc);
    for (size_t i = 0; i < n; i++)
        memcpy(buf + i * *stride, a->x_at[j + i] + q, kc * sizeof *buf);
    return buf;
}

/* Columns j0 .. j0 + n of x, the panels ith, ith + nth, ... of them. All
 * panels of the first kc steps lie one after the other, then those of the next:
 * a block of rows reads them in that order. After them, if there are few
 * columns, the same in the order of these. buf: of this thread, w_size bytes,
 * or NULL without x_at. */
static void pack_x(const struct gg_cpu_gemm_args *a, const struct plan *p,
                   size_t j0, size_t n, unsigned char *xp, unsigned ith,
                   unsigned nth, void *buf)
{
    const struct gg_kern_gemm *g = p->g;
    const size_t k = (size_t)a->k;
    const size_t n_panels = p->nc / g->nr;
    for (size_t i = ith; i * g->nr < n; i += nth) {
        const size_t j = i * g->nr, cols = GG_MIN((size_t)g->nr, n - j);
        for (size_t q = 0; q < k; q += g->kc) {
            const size_t kc = GG_MIN((size_t)g->kc, k - q);
            const size_t size = gg_kern_gemm_x_size(g, kc);
            unsigned char *panel =
                xp + n_panels * gg_kern_gemm_x_size(g, q) + i * size;
            size_t stride;
            const float *x =
                find_columns(a, j0 + j, cols, q, kc, buf, &stride);
            if (cols < g->nr)
                memset(panel, 0, size);
            g->pack_x(g, panel, 0, x, stride, cols, kc);
            if (p->few_size)
                gg_kern_few_order_columns(g, a->dtype_index, panel, cols, kc,
                                          few_panel(p, xp, q, kc, i));
        }
    }
}

/* Some rows and the packed columns jb .. je of the pass that begins with
 * column j0. */
struct block {
    size_t i0, rows, j0, jb, je;
    size_t next; /* the first row that this thread is likely to have then, or
                  * m */
};

/* Steps of rows that are likely to be packed next. Packing alone would wait for
 * memory, which tiles leave alone. */
struct ahead {
    const unsigned char *row;
    size_t stride, n_rows, size; /* rows left; bytes of each */
    size_t off;     /* bytes of the first row that are prefetched already */
    size_t n_lines; /* lines to prefetch with a tile */
};

/* Prefetch the rows from i0 on and the steps from q on, for the number of rows
 * in block b, while b is multiplied. */
static struct ahead init_prefetch(const struct gg_cpu_gemm_args *a,
                                  const struct block *b, size_t i0, size_t q)
{
    const struct gg_kern_gemm *g = form_kernels(a);
    const struct gguf_dtype_info *dt = gg_dtype_by_index(a->dtype_index);
    const size_t n = GG_MIN((size_t)g->kc, (size_t)a->k - q);
    const size_t n_tiles =
        ceil_div(b->rows, g->mr) * ceil_div(b->je - b->jb, g->nr);
    struct ahead h = { .row = (const unsigned char *)a->w + i0 * a->w_stride +
                              q / dt->block_len * dt->block_size,
                       .stride = a->w_stride,
                       .n_rows = GG_MIN(b->rows, (size_t)a->m - i0),
                       .size = n / dt->block_len * dt->block_size };
    h.n_lines = ceil_div(h.n_rows * ceil_div(h.size, ALIGN), n_tiles);
    h.n_lines = GG_MIN(h.n_lines, (size_t)MOST_ASKED);
    return h;
}

static void prefetch_next(struct ahead *h)
{
    for (size_t i = 0; h->n_rows && i < h->n_lines; i++) {
        GG_PREFETCH(h->row + h->off);
        h->off += ALIGN;
        if (h->off >= h->size) {
            h->off = 0;
            h->row += h->stride;
            h->n_rows--;
        }
    }
}

/* The sums of a tile, nr columns of mr each. */
static float *tile_at(float *sums, const struct gg_kern_gemm *g,
                      const struct block *b, size_t i, size_t j)
{
    return sums + (j - b->jb) * g->mc + i * g->nr;
}

static float *column_of_y(const struct gg_cpu_gemm_args *a, size_t j)
{
    return a->y_at ? a->y_at[j] : a->y + j * (a->y_stride / sizeof *a->y);
}

/* The tile's n columns from row i and column j of the block on, to y. */
static void store_tile(const struct gg_cpu_gemm_args *a, const struct block *b,
                       size_t i, size_t j, size_t n, const float *tile)
{
    const size_t mr = form_kernels(a)->mr, rows = GG_MIN(b->rows - i, mr);
    for (j += b->j0; n--; j++, tile += mr)
        memcpy(column_of_y(a, j) + b->i0 + i, tile, rows * sizeof *tile);
}

/* Some steps of a block: n_blocks blocks of panels at wp and xp. */
struct part {
    size_t n_blocks;
    const unsigned char *wp, *xp;
    float *sums;
    bool first, last; /* sums begin at 0; are complete */
    struct ahead ahead;
};

/* One round: columns j0 and up by all rows. */
static void run_round(const struct gg_cpu_gemm_args *a, const struct block *b,
                      struct part *t, size_t j0)
{
    const struct gg_kern_gemm *g = form_kernels(a);
    const size_t end = GG_MIN(j0 + g->round, b->je);
    const size_t w_size = t->n_blocks * g->w_block;
    const size_t x_size = t->n_blocks * g->x_block;
    const unsigned char *w = t->wp;
    for (size_t i = 0; i < b->rows; i += g->mr, w += w_size) {
        const unsigned char *x = t->xp + j0 / g->nr * x_size;
        for (size_t j = j0; j < end; j += g->nr, x += x_size) {
            const size_t n = GG_MIN((size_t)g->nr, end - j);
            float *tile = tile_at(t->sums, g, b, i, j);
            prefetch_next(&t->ahead);
            g->tile(w, x, t->n_blocks, (unsigned)n, tile, g->mr, !t->first);
            if (t->last)
                store_tile(a, b, i, j, n, tile);
        }
    }
}

size_t gg_cpu_gemm_count_panels(const struct gg_cpu_gemm_args *a, size_t *size)
{
    const struct gg_kern_gemm *g = form_kernels(a);
    *size = gg_kern_gemm_w_size(g, (size_t)a->k);
    if (a->n == 0 || a->k == 0 || is_narrow(a) || few_columns(a))
        return 0;
    return ceil_div((size_t)a->m, g->mr);
}

/* Where the panels of a block's rows are. */
struct panels {
    unsigned char *kept; /* the first panel's place among those that are kept,
                            or NULL: they are packed into the thread's memory */
    unsigned char *ready;
    bool pack;
};

/* Kept panels are packed by the first block that needs them: in a pass no other
 * one does unless columns are divided, too; then only those that were there
 * before are taken. A barrier comes before the next pass or product. */
static struct panels find_panels(const struct gg_cpu_gemm_args *a,
                                 const struct plan *p, const struct block *b)
{
    const size_t first = b->i0 / p->g->mr;
    struct panels s = { .pack = true };
    if (!a->kept.at)
        return s;
    const unsigned char *ready = a->kept.ready + first;
    s.pack = memchr(ready, 0, ceil_div(b->rows, p->g->mr)) != NULL;
    if (s.pack && p->n_groups > 1)
        return s;
    s.kept = a->kept.at;
    s.ready = a->kept.ready + first;
    return s;
}

/* Panels of kc steps from q on. */
static const unsigned char *pack_w(const struct gg_cpu_gemm_args *a,
                                   const struct plan *p, const struct block *b,
                                   const struct panels *s, size_t q,
                                   unsigned char *wp, void *buf)
{
    const struct gg_kern_gemm *g = p->g;
    const size_t kc = GG_MIN((size_t)g->kc, (size_t)a->k - q);
    const struct gg_kern_gemm_rows rows = { a->dtype_index,
                                            (const unsigned char *)a->w +
                                                b->i0 * a->w_stride,
                                            a->w_stride, q };
    if (s->kept)
        wp = s->kept + p->n_panels * gg_kern_gemm_w_size(g, q) +
             b->i0 / g->mr * gg_kern_gemm_w_size(g, kc);
    if (s->pack)
        g->pack_rows(a->kern, g, &rows, b->rows, kc, wp, buf);
    return wp;
}

/* xp: the pass's packed columns; wp: this thread's memory. */
static void run_block(const struct gg_cpu_gemm_args *a, const struct plan *p,
                      const struct block *b, const unsigned char *xp,
                      unsigned char *wp)
{
    const struct gg_kern_gemm *g = p->g;
    const size_t k = (size_t)a->k, n_panels = p->nc / g->nr;
    const struct panels s = find_panels(a, p, b);
    struct part t = { .sums = (float *)(void *)(wp + p->w_size) };
    void *buf = wp + p->w_size + p->sum_size;
    for (size_t q = 0; q < k; q += g->kc) {
        const size_t kc = GG_MIN((size_t)g->kc, k - q);
        t.wp = pack_w(a, p, b, &s, q, wp, buf);
        t.n_blocks = gg_kern_gemm_n_blocks(g, kc);
        t.xp = xp + n_panels * gg_kern_gemm_x_size(g, q);
        t.first = q == 0;
        t.last = k - q == kc;
        if (s.pack)
            t.ahead = t.last ? init_prefetch(a, b, b->next, 0)
                             : init_prefetch(a, b, b->i0, q + kc);
        for (size_t j = b->jb; j < b->je; j += g->round)
            run_round(a, b, &t, j);
    }
    if (s.kept && s.pack)
        memset(s.ready, 1, ceil_div(b->rows, g->mr));
}

/* Claim the next block of a pass over nc columns from j0 on; false: none
 * left. */
static bool claim_block(struct shared *s, const struct plan *p, unsigned nth,
                        const struct gg_cpu_gemm_args *a, size_t j0, size_t nc,
                        struct block *b)
{
    const struct gg_kern_gemm *g = p->g;
    size_t at;
    const size_t n =
        gg_cpu_claim(&s->next, p->n_groups * p->n_panels, 4 * (size_t)nth, 1,
                     g->mc / g->mr, p->n_panels, &at);
    if (!n)
        return false;
    const size_t group = at / p->n_panels, n_cols = ceil_div(nc, g->nr);
    b->i0 = at % p->n_panels * g->mr;
    b->rows = GG_MIN((size_t)a->m - b->i0, n * g->mr);
    b->next = GG_MIN(b->i0 + nth * n * g->mr, (size_t)a->m);
    b->j0 = j0;
    b->jb = n_cols * group / p->n_groups * g->nr;
    b->je = GG_MIN(n_cols * (group + 1) / p->n_groups * g->nr, nc);
    return true;
}

static void wait_all(struct gg_barrier *barrier)
{
    if (barrier)
        gg_barrier_wait(barrier);
}

static void run_wide(const struct gg_cpu_gemm_args *a, unsigned ith,
                     unsigned nth, void *work, struct gg_barrier *barrier)
{
    struct plan p;
    plan_init(&p, a, nth);
    unsigned char *at = work;
    at += (ALIGN - (uintptr_t)at % ALIGN) % ALIGN;
    struct shared *s = (struct shared *)(void *)at;
    unsigned char *xp = at + sizeof *s;
    unsigned char *wp = xp + p.x_size + ith * p.thread_size;
    const size_t n = (size_t)a->n;
    for (size_t j0 = 0; j0 < n; j0 += p.nc) {
        const size_t nc = GG_MIN(p.nc, n - j0);
        if (j0)
            wait_all(barrier); /* nobody reads the last pass's panels */
        if (ith == 0)
            atomic_store_explicit(&s->next, 0, memory_order_relaxed);
        pack_x(a, &p, j0, nc, xp, ith, nth, wp);
        wait_all(barrier);
        struct block b;
        if (p.g->enter)
            p.g->enter(p.g);
        while (claim_block(s, &p, nth, a, j0, nc, &b))
            run_block(a, &p, &b, xp, wp);
        if (p.g->leave)
            p.g->leave();
    }
}

/* Multiply 16 rows from i0 on by packed columns, in rounds of steps as in
 * run_block(). Each round also prefetches its share of the bytes of the
 * next 16 rows, unless these are the last rows. */
static void few_rows(const struct gg_cpu_gemm_args *a, const struct plan *p,
                     size_t i0, bool last, unsigned char *xp)
{
    const struct gg_kern_gemm *g = p->g;
    const struct gguf_dtype_info *dt = gg_dtype_by_index(a->dtype_index);
    const size_t k = (size_t)a->k, n = (size_t)a->n;
    enum { ROWS = GG_GEMM_PANEL_ROWS };
    const unsigned char *row = (const unsigned char *)a->w + i0 * a->w_stride;
    struct gg_kern_few f = { .w_stride = a->w_stride,
                             .y_stride = a->y_stride / sizeof(float) };
    for (size_t q = 0; q < k; q += g->kc) {
        f.k = GG_MIN((size_t)g->kc, k - q);
        const size_t off = q / dt->block_len * dt->block_size;
        f.w = row + off;
        f.next = last ? f.w : row + ROWS * (a->w_stride + off);
        f.add = q > 0;
        for (size_t j = 0; j < n; j += g->nr) {
            f.x = few_panel(p, xp, q, f.k, j / g->nr);
            f.n_cols = (unsigned)GG_MIN((size_t)g->nr, n - j);
            f.y = a->y + j * f.y_stride + i0;
            few_columns(a)(&f);
        }
    }
}

/* Number of claims by which nth threads divide the rows of a few columns, if
 * all are equally fast. */
static size_t row_parts(unsigned nth)
{
    return nth == 1 ? 1 : 2 * (size_t)nth;
}

/* Product of a few packed columns. Threads claim groups of 16 rows; the rows
 * that are left are computed by way of panels, with the same bits. */
static void run_few(const struct gg_cpu_gemm_args *a, unsigned ith,
                    unsigned nth, void *work, struct gg_barrier *barrier)
{
    enum { ROWS = GG_GEMM_PANEL_ROWS };
    struct plan p;
    plan_init(&p, a, nth);
    unsigned char *at = work;
    at += (ALIGN - (uintptr_t)at % ALIGN) % ALIGN;
    struct shared *s = (struct shared *)(void *)at;
    unsigned char *xp = at + sizeof *s;
    const size_t n = (size_t)a->n, m = (size_t)a->m, groups = m / ROWS;
    if (ith == 0)
        atomic_store_explicit(&s->next, 0, memory_order_relaxed);
    pack_x(a, &p, 0, n, xp, ith, nth, NULL);
    wait_all(barrier);
    const struct block rest = { groups * ROWS, m % ROWS, 0, 0, n, m };
    const size_t total = groups + (rest.rows > 0);
    for (size_t i, k; (k = gg_cpu_claim(&s->next, total, row_parts(nth), 1,
                                        total, total, &i)) > 0;) {
        for (const size_t end = GG_MIN(i + k, groups); i < end; i++, k--)
            few_rows(a, &p, i * ROWS, i + 1 == end, xp);
        struct gg_cpu_gemm_args alone = *a; /* one thread uses its panels */
        alone.kept.at = NULL;
        if (k)
            run_block(&alone, &p, &rest, xp, xp + p.x_size + p.few_size);
    }
}

/* n rows of a narrow product, from i on. */
static void narrow_rows(const struct gg_cpu_gemm_args *a, size_t i, size_t n)
{
    const struct gg_kern_gemm_rows rows = { a->dtype_index,
                                            (const unsigned char *)a->w +
                                                i * a->w_stride,
                                            a->w_stride, 0 };
    form_kernels(a)->dot(a->kern, &rows, n, a->x, a->x_stride / sizeof(float),
                         (size_t)a->n, (size_t)a->k, a->y + i,
                         a->y_stride / sizeof(float));
}

/* Threads claim rows if there is a counter, otherwise have equal shares. */
static void run_narrow(const struct gg_cpu_gemm_args *a, unsigned ith,
                       unsigned nth)
{
    enum { FEWEST = 16 };
    const size_t m = (size_t)a->m, begin = m * ith / nth;
    if (!a->next)
        narrow_rows(a, begin, m * (ith + 1) / nth - begin);
    else
        for (size_t i, n; (n = gg_cpu_claim(a->next, m, row_parts(nth), FEWEST,
                                            m, m, &i)) > 0;)
            narrow_rows(a, i, n);
}

/* y = 0: the sum of nothing. */
static void run_empty(const struct gg_cpu_gemm_args *a, unsigned ith,
                      unsigned nth)
{
    for (size_t j = ith; j < (size_t)a->n; j += nth)
        memset(column_of_y(a, j), 0, (size_t)a->m * sizeof *a->y);
}

void gg_cpu_gemm_run(const struct gg_cpu_gemm_args *a, unsigned ith,
                     unsigned nth, void *work, struct gg_barrier *barrier)
{
    if (a->m == 0 || a->n == 0)
        return;
    assert(!a->x_at == !a->y_at);
    assert(!a->x_at || a->n > gg_cpu_gemm_max_strided_cols(a));
    if (a->k == 0)
        run_empty(a, ith, nth);
    else if (is_narrow(a))
        run_narrow(a, ith, nth);
    else if (few_columns(a))
        run_few(a, ith, nth, work, barrier);
    else
        run_wide(a, ith, nth, work, barrier);
}
