/* gemm.c - dense products: blocks, threads, edges
 *
 * Columns are taken nc at a time. Their activations are packed once, for the
 * whole length k, by all threads together. Then each thread claims blocks of
 * rows until there are no more. In a block, for each kc steps: decode and pack
 * the rows (they stay in L2), then round by round multiply some panels of
 * columns with each panel of rows. Sums are kept tile by tile and go to y at
 * the end: the columns of y mostly lie a power of two apart, so that a block of
 * them would share a few sets of the cache.
 */
#include "config.h"
#include "cpu/gemm.h"

#include "base/barrier.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
    NARROW_LEN = 1024, /* floats decoded at a time, 4 KB of L1 */
    ALIGN = 64,
    PACK_BYTES = 16 << 20, /* most of x that is packed at a time: L3, */
    PACK_COLS = 1024       /* and most columns: their sums are for L2 */
};

/* How the product is cut; the same for every thread. */
struct plan {
    size_t mr, nr, kc, mc;
    size_t nc;       /* columns per pass, a multiple of nr */
    size_t n_panels; /* of rows */
    size_t n_groups; /* of columns within a pass */
    size_t x_floats; /* packed columns */
    size_t w_floats, sum_floats, thread_floats; /* packed rows, sums; both and
                                                   the decoding buffer */
};

static size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* Most columns of a pass. */
static size_t most_cols(const struct gg_gemm_args *a)
{
    const size_t nr = a->kern->gemm.nr;
    const size_t n =
        PACK_BYTES / sizeof(float) / GG_MAX((size_t)a->k, 1) / nr * nr;
    return GG_MIN(GG_MAX(n, 8 * nr), (size_t)PACK_COLS);
}

static void plan_init(struct plan *p, const struct gg_gemm_args *a,
                      unsigned nth)
{
    const struct gg_gemm_kern *g = &a->kern->gemm;
    const size_t k = (size_t)a->k, n = (size_t)a->n;
    p->mr = g->mr;
    p->nr = g->nr;
    p->kc = g->kc;
    p->mc = g->mc;
    p->nc = most_cols(a);
    /* Passes of equal length, up to a panel. */
    const size_t n_passes = ceil_div(n, p->nc);
    p->nc = ceil_div(ceil_div(n, GG_MAX(n_passes, 1)), p->nr) * p->nr;
    p->n_panels = ceil_div((size_t)a->m, p->mr);
    p->n_groups = 1;
    /* Too few rows for the threads: divide the columns, too, and decode the
     * rows once per group. */
    if (p->n_panels && p->n_panels < 2 * (size_t)nth)
        p->n_groups = GG_MIN(ceil_div(2 * (size_t)nth, p->n_panels),
                             ceil_div(p->nc, 4 * p->nr));
    /* Whole cache lines each, as mc * 4 bytes and the buffer are. */
    p->x_floats = ceil_div(p->nc * k, ALIGN) * ALIGN;
    p->w_floats = p->mc * GG_MIN(p->kc, k);
    p->sum_floats = p->mc * p->nc;
    p->thread_floats = p->w_floats + p->sum_floats + GG_GEMM_BUF_FLOATS;
}

/* What the threads share, at the start of work. */
struct shared {
    _Alignas(ALIGN) _Atomic size_t next; /* group * n_panels + panel */
};

size_t gg_gemm_work_size(const struct gg_gemm_args *a, unsigned nth)
{
    if (a->n < GG_GEMM_NARROW)
        return 0;
    struct plan p;
    plan_init(&p, a, nth);
    return ALIGN + sizeof(struct shared) +
           (p.x_floats + nth * p.thread_floats) * sizeof(float);
}

size_t gg_gemm_most_work(const struct gg_gemm_args *a, unsigned nth)
{
    /* more columns than a pass takes are cut into passes of equal length */
    struct gg_gemm_args b = *a;
    b.n = GG_MIN(a->n, (int64_t)most_cols(a));
    return gg_gemm_work_size(&b, nth);
}

/* Ask for the n bytes behind the n bytes at p: rows are far apart, and a short
 * part of each is read at a time, which hardware does not foresee. Their
 * address may be beyond the tensor: asking does no harm. */
static void prefetch(const unsigned char *p, size_t block_size, size_t n_blocks)
{
    const size_t n = block_size * n_blocks;
    const uintptr_t next = (uintptr_t)p + n;
    for (size_t i = 0; i < n; i += ALIGN)
        GG_PREFETCH((const void *)(next + i));
}

void gg_gemm_pack_w(const struct gg_kern *kern, int dtype_index,
                    const void *w, size_t w_stride, size_t n_rows, size_t k,
                    float *panels, float *buf)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(dtype_index);
    gg_decode_fn *decode = kern->codec[dtype_index].decode;
    const size_t mr = kern->gemm.mr;
    for (size_t i0 = 0; i0 < n_rows; i0 += mr, panels += k * mr) {
        const size_t rows = GG_MIN(mr, n_rows - i0);
        if (rows < mr)
            memset(panels, 0, k * mr * sizeof *panels);
        for (size_t r0 = 0; r0 < rows; r0 += GG_GEMM_BUF_ROWS) {
            const size_t nr = GG_MIN(rows - r0, (size_t)GG_GEMM_BUF_ROWS);
            for (size_t p = 0; p < k; p += GG_GEMM_BUF_LEN) {
                const size_t len = GG_MIN(k - p, (size_t)GG_GEMM_BUF_LEN);
                const unsigned char *src =
                    (const unsigned char *)w + (i0 + r0) * w_stride +
                    p / dt->block_len * dt->block_size;
                for (size_t r = 0; r < nr; r++) {
                    prefetch(src + r * w_stride, dt->block_size,
                             len / dt->block_len);
                    decode(src + r * w_stride, buf + r * GG_GEMM_BUF_STRIDE,
                           len);
                }
                kern->gemm.pack(panels + p * mr + r0, mr, buf,
                                GG_GEMM_BUF_STRIDE, nr, len);
            }
        }
    }
}

/* Columns j0 .. j0 + n of x, the panels ith, ith + nth, ... of them. All
 * panels of the first kc steps lie behind each other, then those of the next:
 * a block of rows reads them in that order. */
static void pack_x(const struct gg_gemm_args *a, const struct plan *p,
                   size_t j0, size_t n, float *xp, unsigned ith, unsigned nth)
{
    const size_t k = (size_t)a->k, stride = a->x_stride / sizeof(float);
    for (size_t j = ith * p->nr; j < n; j += nth * p->nr) {
        const size_t cols = GG_MIN(p->nr, n - j);
        for (size_t q = 0; q < k; q += p->kc) {
            const size_t kc = GG_MIN(p->kc, k - q);
            float *panel = xp + q * p->nc + j * kc;
            if (cols < p->nr)
                memset(panel, 0, p->nr * kc * sizeof *panel);
            a->kern->gemm.pack(panel, p->nr, a->x + (j0 + j) * stride + q,
                               stride, cols, kc);
        }
    }
}

/* Some rows and the packed columns jb .. je of the pass that begins with
 * column j0. */
struct block {
    size_t i0, rows, j0, jb, je;
};

/* The sums of a tile, nr columns of mr each. */
static float *tile_at(float *sums, const struct plan *p,
                      const struct block *b, size_t i, size_t j)
{
    return sums + (j - b->jb) * p->mc + i * p->nr;
}

static void store_block(const struct gg_gemm_args *a, const struct plan *p,
                        const struct block *b, float *sums)
{
    for (size_t j = b->jb; j < b->je; j++) {
        const size_t c = (j - b->jb) % p->nr;
        float *y = a->y + (b->j0 + j) * (a->y_stride / sizeof(float)) + b->i0;
        for (size_t i = 0; i < b->rows; i += p->mr)
            memcpy(y + i, tile_at(sums, p, b, i, j - c) + c * p->mr,
                   GG_MIN(b->rows - i, p->mr) * sizeof *y);
    }
}

/* One round: columns j0 and up by all rows, kc steps from q on. */
static void run_round(const struct plan *p, const struct gg_gemm_kern *g,
                      const struct block *b, size_t j0, size_t q, size_t kc,
                      const float *wp, const float *xp, float *sums)
{
    const size_t end = GG_MIN(j0 + g->round, b->je);
    for (size_t i = 0; i < b->rows; i += p->mr)
        for (size_t j = j0; j < end; j += p->nr)
            g->tile(wp + i * kc, xp + j * kc, kc,
                    (unsigned)GG_MIN(p->nr, end - j),
                    tile_at(sums, p, b, i, j), p->mr, q > 0);
}

static void run_block(const struct gg_gemm_args *a, const struct plan *p,
                      const struct block *b, const float *xp, float *wp)
{
    const struct gg_gemm_kern *g = &a->kern->gemm;
    const struct gguf_dtype_info *dt = gg_dtype_by_index(a->dtype_index);
    const unsigned char *w = (const unsigned char *)a->w + b->i0 * a->w_stride;
    const size_t k = (size_t)a->k;
    float *sums = wp + p->w_floats, *buf = sums + p->sum_floats;
    for (size_t q = 0; q < k; q += p->kc) {
        const size_t kc = GG_MIN(p->kc, k - q);
        gg_gemm_pack_w(a->kern, a->dtype_index,
                       w + q / dt->block_len * dt->block_size, a->w_stride,
                       b->rows, kc, wp, buf);
        for (size_t j = b->jb; j < b->je; j += g->round)
            run_round(p, g, b, j, q, kc, wp, xp + q * p->nc, sums);
    }
    store_block(a, p, b, sums);
}

/* Claim the next block of a pass over nc columns from j0 on; false: none left.
 * Blocks get smaller towards the end, so that threads finish together. */
static bool claim(struct shared *s, const struct plan *p, unsigned nth,
                  const struct gg_gemm_args *a, size_t j0, size_t nc,
                  struct block *b)
{
    const size_t total = p->n_groups * p->n_panels;
    /* relaxed: a claim orders nothing but itself */
    size_t at = atomic_load_explicit(&s->next, memory_order_relaxed), n;
    do {
        if (at >= total)
            return false;
        n = GG_MIN(p->mc / p->mr, ceil_div(total - at, 4 * (size_t)nth));
        n = GG_MIN(n, p->n_panels - at % p->n_panels);
    } while (!atomic_compare_exchange_weak_explicit(
        &s->next, &at, at + n, memory_order_relaxed, memory_order_relaxed));
    const size_t group = at / p->n_panels, n_cols = ceil_div(nc, p->nr);
    b->i0 = at % p->n_panels * p->mr;
    b->rows = GG_MIN((size_t)a->m - b->i0, n * p->mr);
    b->j0 = j0;
    b->jb = n_cols * group / p->n_groups * p->nr;
    b->je = GG_MIN(n_cols * (group + 1) / p->n_groups * p->nr, nc);
    return true;
}

static void wait_all(struct gg_barrier *barrier)
{
    if (barrier)
        gg_barrier_wait(barrier);
}

static void run_wide(const struct gg_gemm_args *a, unsigned ith, unsigned nth,
                     void *work, struct gg_barrier *barrier)
{
    struct plan p;
    plan_init(&p, a, nth);
    unsigned char *at = work;
    at += (ALIGN - (uintptr_t)at % ALIGN) % ALIGN;
    struct shared *s = (struct shared *)(void *)at;
    float *xp = (float *)(void *)(at + sizeof *s);
    float *wp = xp + p.x_floats + ith * p.thread_floats;
    const size_t n = (size_t)a->n;
    for (size_t j0 = 0; j0 < n; j0 += p.nc) {
        const size_t nc = GG_MIN(p.nc, n - j0);
        if (j0)
            wait_all(barrier); /* nobody reads the last pass's panels */
        if (ith == 0)
            atomic_store_explicit(&s->next, 0, memory_order_relaxed);
        pack_x(a, &p, j0, nc, xp, ith, nth);
        wait_all(barrier);
        struct block b;
        while (claim(s, &p, nth, a, j0, nc, &b))
            run_block(a, &p, &b, xp, wp);
    }
}

/* Few columns: each row is decoded once and multiplied with all of them. */
static void run_narrow(const struct gg_gemm_args *a, unsigned ith,
                       unsigned nth)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(a->dtype_index);
    gg_decode_fn *decode = a->kern->codec[a->dtype_index].decode;
    gg_vec_dot_fn *dot = a->kern->vec.dot;
    const size_t k = (size_t)a->k, n = (size_t)a->n, m = (size_t)a->m;
    const size_t x_stride = a->x_stride / sizeof(float);
    const size_t y_stride = a->y_stride / sizeof(float);
    _Alignas(ALIGN) float row[NARROW_LEN];
    for (size_t i = m * ith / nth; i < m * (ith + 1) / nth; i++) {
        const unsigned char *w = (const unsigned char *)a->w + i * a->w_stride;
        float acc[GG_GEMM_NARROW] = { 0 };
        for (size_t q = 0; q < k; q += NARROW_LEN) {
            const size_t len = GG_MIN(k - q, (size_t)NARROW_LEN);
            decode(w + q / dt->block_len * dt->block_size, row, len);
            for (size_t j = 0; j < n; j++)
                acc[j] += dot(row, a->x + j * x_stride + q, len);
        }
        for (size_t j = 0; j < n; j++)
            a->y[j * y_stride + i] = acc[j];
    }
}

/* y = 0: the sum of nothing. */
static void run_empty(const struct gg_gemm_args *a, unsigned ith, unsigned nth)
{
    const size_t n = (size_t)a->n, y_stride = a->y_stride / sizeof(float);
    for (size_t j = ith; j < n; j += nth)
        for (size_t i = 0; i < (size_t)a->m; i++)
            a->y[j * y_stride + i] = 0;
}

void gg_gemm_run(const struct gg_gemm_args *a, unsigned ith, unsigned nth,
                 void *work, struct gg_barrier *barrier)
{
    if (a->m == 0 || a->n == 0)
        return;
    if (a->k == 0)
        run_empty(a, ith, nth);
    else if (a->n < GG_GEMM_NARROW)
        run_narrow(a, ith, nth);
    else
        run_wide(a, ith, nth, work, barrier);
}
