/* SPDX-License-Identifier: MIT */
/* dense_product.c - products of floats: panels, blocks, threads
 *
 * For each GG_LINALG_STEPS steps, the threads pack both factors, then claim
 * blocks of c. Rows of c are the columns of a tile (gemm.h), since the tile's
 * vectors lie along them. A block is MC columns of c, whose panels stay in L2,
 * by GROUP panels of rows. */
#include "config.h"
#include "linalg/linalg.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "kern/cpu_features.h"

#include <stdatomic.h>
#include <string.h>

enum {
    ALIGN = 64,
    GROUP = 32,          /* panels of rows of a block */
    MOST_TILE = 32 * 12, /* floats of the largest tile */
    SMALL = 1 << 18      /* multiply-adds that are not worth several threads */
};

struct job {
    const struct gg_kern_gemm *g;
    const struct gg_linalg_product *p;
    float *rows, *cols;         /* packed panels of a and of b */
    size_t n_rows, n_cols;      /* number of panels */
    size_t n_groups;            /* groups of panels of rows */
    size_t panels;              /* panels of columns of a block */
    size_t first, steps;        /* steps of this round */
    enum gg_linalg_store store; /* way to store the round's sums */
    _Atomic size_t next;        /* block to be claimed */
};

static size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

void gg_linalg_init_cpu(struct gg_linalg *la, struct gguf_pool *pool,
                        const struct gguf_allocator *a, uint32_t cpu)
{
    struct gg_kern_gemm forms[GG_GEMM_N_FORMS];
    gg_kern_gemm_init(forms, cpu);
    *la = (struct gg_linalg){ .gemm = forms[GG_GEMM_EXACT],
                              .pool = pool,
                              .allocator = a };
}

void gg_linalg_init(struct gg_linalg *la, struct gguf_pool *pool,
                    const struct gguf_allocator *a)
{
    gg_linalg_init_cpu(la, pool, a, gg_kern_cpu_detect());
}

void gg_linalg_fini(struct gg_linalg *la)
{
    gg_mem_free_aligned(la->allocator, la->work);
    la->work = NULL;
    la->work_size = 0;
}

/* Pack steps of up to nr rows of a, which may be negated. */
static void pack_rows(const struct job *j, size_t panel)
{
    const struct gg_linalg_factor *a = &j->p->a;
    const size_t nr = j->g->nr, r = panel * nr;
    const size_t n = GG_MIN(nr, j->p->m - r);
    float *dst = j->rows + panel * nr * j->steps;
    if (n < nr)
        memset(dst, 0, nr * j->steps * sizeof *dst);
    if (!a->transposed) {
        j->g->pack_x(j->g, dst, 0, a->at + r * a->stride + j->first, a->stride,
                     n, j->steps);
    } else {
        const float *src = a->at + j->first * a->stride + r;
        for (size_t p = 0; p < j->steps; p++, src += a->stride)
            for (size_t i = 0; i < n; i++)
                dst[p * nr + i] = src[i];
    }
    if (j->p->store == GG_LINALG_SUBTRACT)
        for (size_t p = 0; p < j->steps; p++)
            for (size_t i = 0; i < n; i++)
                dst[p * nr + i] = -dst[p * nr + i];
}

/* Pack steps of up to mr columns of b. Missing columns become 0. */
static void pack_cols(const struct job *j, size_t panel)
{
    const struct gg_linalg_factor *b = &j->p->b;
    const size_t mr = j->g->mr, r = panel * mr;
    const size_t n = GG_MIN(mr, j->p->n - r);
    float *dst = j->cols + panel * mr * j->steps;
    if (n < mr)
        memset(dst, 0, mr * j->steps * sizeof *dst);
    if (b->transposed)
        j->g->pack_w(j->g, dst, 0, b->at + r * b->stride + j->first, b->stride,
                     n, j->steps);
    else
        j->g->pack_wt(j->g, dst, 0, b->at + j->first * b->stride + r,
                      b->stride, n, j->steps);
}

static void pack_share(void *user, unsigned ith, unsigned nth)
{
    const struct job *j = user;
    for (size_t i = ith; i < j->n_rows + j->n_cols; i += nth)
        if (i < j->n_rows)
            pack_rows(j, i);
        else
            pack_cols(j, i - j->n_rows);
}

/* Multiply a tile that is cut by an edge of c or by its diagonal. */
static void multiply_edge(const struct job *j, const float *cols,
                          const float *rows, size_t i0, size_t n_i, size_t j0)
{
    const struct gg_linalg_product *p = j->p;
    const size_t mr = j->g->mr, n_j = GG_MIN(mr, p->n - j0);
    _Alignas(ALIGN) float sum[MOST_TILE];
    j->g->tile(cols, rows, j->steps, (unsigned)n_i, sum, mr, 0);
    for (size_t i = 0; i < n_i; i++) {
        float *c = p->c + (i0 + i) * p->c_stride + j0;
        const float *s = sum + i * mr;
        size_t at = 0;
        if (p->upper && i0 + i > j0)
            at = GG_MIN(i0 + i - j0, n_j);
        for (; at < n_j; at++)
            c[at] = j->store == GG_LINALG_SET ? s[at] : c[at] + s[at];
    }
}

static void multiply_tile(const struct job *j, size_t row_panel,
                          size_t col_panel)
{
    const struct gg_linalg_product *p = j->p;
    const size_t mr = j->g->mr, nr = j->g->nr;
    const size_t i0 = row_panel * nr, j0 = col_panel * mr;
    const size_t n_i = GG_MIN(nr, p->m - i0);
    const float *cols = j->cols + col_panel * mr * j->steps;
    const float *rows = j->rows + row_panel * nr * j->steps;
    if (p->upper && j0 + mr <= i0)
        return;
    if (j0 + mr > p->n || (p->upper && i0 + n_i > j0 + 1))
        multiply_edge(j, cols, rows, i0, n_i, j0);
    else
        j->g->tile(cols, rows, j->steps, (unsigned)n_i,
                   p->c + i0 * p->c_stride + j0, p->c_stride,
                   j->store != GG_LINALG_SET);
}

static void multiply_share(void *user, unsigned ith, unsigned nth)
{
    struct job *j = user;
    const size_t n_blocks = ceil_div(j->n_cols, j->panels) * j->n_groups;
    (void)ith;
    (void)nth;
    for (size_t b; (b = atomic_fetch_add(&j->next, 1)) < n_blocks;) {
        const size_t row = b % j->n_groups * GROUP;
        const size_t col = b / j->n_groups * j->panels;
        const size_t row_end = GG_MIN(row + GROUP, j->n_rows);
        const size_t col_end = GG_MIN(col + j->panels, j->n_cols);
        for (size_t r = row; r < row_end; r++)
            for (size_t c = col; c < col_end; c++)
                multiply_tile(j, r, c);
    }
}

/* Set up the memory for panels. */
static enum gguf_status reserve_panels(struct gg_linalg *la, struct job *j,
                                       struct gguf_error *err)
{
    const struct gg_linalg_product *p = j->p;
    const size_t k = GG_MIN(p->k, (size_t)GG_LINALG_STEPS);
    j->n_rows = ceil_div(p->m, j->g->nr);
    j->n_cols = ceil_div(p->n, j->g->mr);
    const size_t rows = ceil_div(j->n_rows * j->g->nr * k, ALIGN) * ALIGN;
    const size_t size = (rows + j->n_cols * j->g->mr * k) * sizeof(float);
    if (size > la->work_size) {
        gg_linalg_fini(la);
        la->work = gg_mem_alloc_huge(la->allocator, size, ALIGN);
        if (!la->work)
            return gg_error_set_nomem(err, size);
        la->work_size = size;
    }
    j->rows = la->work;
    j->cols = j->rows + rows;
    return GGUF_OK;
}

static void clear_part(const struct gg_linalg_product *p)
{
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = p->upper ? i : 0; j < p->n; j++)
            p->c[i * p->c_stride + j] = 0.0f;
}

enum gguf_status gg_linalg_multiply(struct gg_linalg *la,
                                    const struct gg_linalg_product *p,
                                    struct gguf_error *err)
{
    struct job j = { .g = &la->gemm, .p = p, .store = p->store };
    if (!p->m || !p->n)
        return GGUF_OK;
    if (!p->k) {
        if (p->store == GG_LINALG_SET)
            clear_part(p);
        return GGUF_OK;
    }
    GG_TRY(reserve_panels(la, &j, err));
    struct gguf_pool *pool = la->pool;
    if (p->m * p->n < SMALL / GG_MIN(p->k, (size_t)SMALL))
        pool = NULL;
    const unsigned nth = gguf_pool_n_threads(pool);
    j.n_groups = ceil_div(j.n_rows, GROUP);
    /* Blocks of L2's size, or smaller ones if there are few. */
    j.panels = la->gemm.mc / la->gemm.mr;
    while (j.panels > 1 &&
           ceil_div(j.n_cols, j.panels) * j.n_groups < 4 * (size_t)nth)
        j.panels /= 2;
    for (; j.first < p->k; j.first += j.steps) {
        j.steps = GG_MIN(p->k - j.first, (size_t)GG_LINALG_STEPS);
        gguf_pool_run(pool, (struct gguf_pool_callback){ pack_share, &j });
        atomic_store(&j.next, 0);
        gguf_pool_run(pool, (struct gguf_pool_callback){ multiply_share, &j });
        j.store = GG_LINALG_ADD;
    }
    return GGUF_OK;
}

enum gguf_status gg_linalg_add_products(struct gg_linalg *la, float *sum,
                                        size_t sum_stride, const float *x,
                                        size_t x_stride, size_t nx,
                                        const float *y, size_t y_stride,
                                        size_t ny, size_t n_rows, bool upper,
                                        struct gguf_error *err)
{
    const struct gg_linalg_product p = { .a = { x, x_stride, true },
                                         .b = { y, y_stride, false },
                                         .c = sum,
                                         .c_stride = sum_stride,
                                         .m = nx,
                                         .n = ny,
                                         .k = n_rows,
                                         .store = GG_LINALG_ADD,
                                         .upper = upper };
    return gg_linalg_multiply(la, &p, err);
}
