/* gemm.c - dense products: blocks, threads, edges
 *
 * Columns are taken nc at a time. Their activations are packed once, for the
 * whole length k, by all threads together. Then each thread claims blocks of
 * rows until there are no more. In a block, for each kc steps: decode and pack
 * the rows (they stay in L2), then for each panel of columns (L1) multiply it
 * with each panel of rows. The part of y that belongs to the block stays in L2
 * from one kc to the next.
 */
#include "config.h"
#include "cpu/gemm.h"

#include "base/barrier.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <string.h>

enum {
    /* Fewer columns than this are dot products: decoding is then most of the
     * work, and transposing as much again. */
    NARROW = 4,
    NARROW_LEN = 1024, /* floats decoded at a time, 4 KB of L1 */
    ALIGN = 64,
    PACK_BYTES = 16 << 20, /* most of x that is packed at a time: L3 */
};

/* How the product is cut; the same for every thread. */
struct plan {
    size_t mr, nr, kc;
    size_t nc;            /* columns per pass, a multiple of nr */
    size_t n_panels;      /* of rows */
    size_t max_claim;     /* panels per block */
    size_t n_groups;      /* of columns within a pass */
    size_t x_floats;      /* packed columns */
    size_t thread_floats; /* packed rows and the decoding buffer */
};

static size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static void plan_init(struct plan *p, const struct gg_gemm_args *a,
                      unsigned nth)
{
    const struct gg_gemm_kern *g = &a->kern->gemm;
    const size_t k = (size_t)a->k, n = (size_t)a->n;
    p->mr = g->mr;
    p->nr = g->nr;
    p->kc = g->kc;
    p->nc = GG_MAX(PACK_BYTES / sizeof(float) / GG_MAX(k, 1) / p->nr, 8) *
            p->nr;
    /* Passes of equal length, up to a panel. */
    const size_t n_passes = ceil_div(n, p->nc);
    p->nc = ceil_div(ceil_div(n, GG_MAX(n_passes, 1)), p->nr) * p->nr;
    p->n_panels = ceil_div((size_t)a->m, p->mr);
    p->max_claim = g->mc / g->mr;
    p->n_groups = 1;
    /* Too few rows for the threads: divide the columns, too, and decode the
     * rows once per group. */
    if (p->n_panels && p->n_panels < 2 * (size_t)nth)
        p->n_groups = GG_MIN(ceil_div(2 * (size_t)nth, p->n_panels),
                             ceil_div(p->nc, 4 * p->nr));
    p->x_floats = ceil_div(p->nc * k, ALIGN) * ALIGN;
    p->thread_floats = g->mc * GG_MIN(p->kc, k) + GG_GEMM_BUF_FLOATS;
    p->thread_floats = ceil_div(p->thread_floats, ALIGN) * ALIGN;
}

/* What the threads share, at the start of work. */
struct shared {
    _Alignas(ALIGN) _Atomic size_t next; /* group * n_panels + panel */
};

size_t gg_gemm_work_size(const struct gg_gemm_args *a, unsigned nth)
{
    if (a->n < NARROW)
        return 0;
    struct plan p;
    plan_init(&p, a, nth);
    return ALIGN + sizeof(struct shared) +
           (p.x_floats + nth * p.thread_floats) * sizeof(float);
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

/* A tile of fewer rows than mr, through a whole one. */
static void edge_tile(const struct gg_gemm_kern *g, size_t rows,
                      const float *w, const float *x, size_t k, unsigned cols,
                      float *y, size_t y_stride, int add)
{
    _Alignas(ALIGN) float t[GG_GEMM_MAX_MR * GG_GEMM_MAX_NR];
    g->tile(w, x, k, cols, t, g->mr, 0);
    for (size_t j = 0; j < cols; j++)
        for (size_t i = 0; i < rows; i++) {
            float *d = y + j * y_stride + i;
            *d = add ? *d + t[j * g->mr + i] : t[j * g->mr + i];
        }
}

/* Rows i0 .. i0 + rows by the packed columns jb .. je of this pass. */
static void run_block(const struct gg_gemm_args *a, const struct plan *p,
                      size_t i0, size_t rows, const float *xp, size_t j0,
                      size_t jb, size_t je, float *wp)
{
    const struct gg_gemm_kern *g = &a->kern->gemm;
    const struct gguf_dtype_info *dt = gg_dtype_by_index(a->dtype_index);
    const size_t k = (size_t)a->k, y_stride = a->y_stride / sizeof(float);
    float *buf = wp + p->thread_floats - GG_GEMM_BUF_FLOATS;
    for (size_t q = 0; q < k; q += p->kc) {
        const size_t kc = GG_MIN(p->kc, k - q);
        gg_gemm_pack_w(a->kern, a->dtype_index,
                       (const unsigned char *)a->w + i0 * a->w_stride +
                           q / dt->block_len * dt->block_size,
                       a->w_stride, rows, kc, wp, buf);
        for (size_t j = jb; j < je; j += p->nr) {
            const unsigned cols = (unsigned)GG_MIN(p->nr, je - j);
            const float *x = xp + q * p->nc + j * kc;
            float *y = a->y + (j0 + j) * y_stride + i0;
            for (size_t i = 0; i < rows; i += p->mr) {
                if (rows - i >= p->mr)
                    g->tile(wp + i * kc, x, kc, cols, y + i, y_stride, q > 0);
                else
                    edge_tile(g, rows - i, wp + i * kc, x, kc, cols, y + i,
                              y_stride, q > 0);
            }
        }
    }
}

/* The next block: panels [*begin, *end) of group *group; 0: none left. Blocks
 * get smaller towards the end, so that threads finish together. */
static int claim(struct shared *s, const struct plan *p, unsigned nth,
                 size_t *group, size_t *begin, size_t *end)
{
    const size_t total = p->n_groups * p->n_panels;
    /* relaxed: a claim orders nothing but itself */
    size_t at = atomic_load_explicit(&s->next, memory_order_relaxed), n;
    do {
        if (at >= total)
            return 0;
        *group = at / p->n_panels;
        *begin = at % p->n_panels;
        n = GG_MIN(p->max_claim, ceil_div(total - at, 4 * (size_t)nth));
        n = GG_MIN(n, p->n_panels - *begin);
    } while (!atomic_compare_exchange_weak_explicit(
        &s->next, &at, at + n, memory_order_relaxed, memory_order_relaxed));
    *end = *begin + n;
    return 1;
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
    const size_t n = (size_t)a->n, m = (size_t)a->m;
    for (size_t j0 = 0; j0 < n; j0 += p.nc) {
        const size_t nc = GG_MIN(p.nc, n - j0);
        if (j0)
            wait_all(barrier); /* nobody reads the last pass's panels */
        if (ith == 0)
            atomic_store_explicit(&s->next, 0, memory_order_relaxed);
        pack_x(a, &p, j0, nc, xp, ith, nth);
        wait_all(barrier);
        const size_t n_col_panels = ceil_div(nc, p.nr);
        size_t group, begin, end;
        while (claim(s, &p, nth, &group, &begin, &end)) {
            const size_t i0 = begin * p.mr;
            const size_t jb = n_col_panels * group / p.n_groups * p.nr;
            const size_t je =
                n_col_panels * (group + 1) / p.n_groups * p.nr;
            run_block(a, &p, i0, GG_MIN(m, end * p.mr) - i0, xp, j0, jb,
                      GG_MIN(je, nc), wp);
        }
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
        float acc[NARROW] = { 0 };
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
    else if (a->n < NARROW)
        run_narrow(a, ith, nth);
    else
        run_wide(a, ith, nth, work, barrier);
}
