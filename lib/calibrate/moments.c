/* SPDX-License-Identifier: MIT */
/* moments.c - second moments of the inputs of a stage: memory and means */
#include "config.h"
#include "calibrate/moments.h"

#include "base/ckd.h"
#include "base/compiler.h"
#include "base/mem.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Allocate zeroed rows of n floats. */
static enum gguf_status alloc_rows(const struct gguf_allocator *a, size_t rows,
                                   size_t n, float **out,
                                   struct gguf_error *err)
{
    uint64_t total;
    size_t size;
    if (gg_ckd_mul(&total, rows, n) ||
        gg_ckd_array(&size, total, sizeof(float)))
        return gg_error_set(err, GGUF_E_OVERFLOW, GGUF_NO_OFFSET,
                            "%zu rows of %zu floats do not fit memory", rows,
                            n);
    *out = gg_mem_alloc_zero(a, total, sizeof(float));
    return *out ? GGUF_OK : gg_error_set_nomem(err, size);
}

static enum gguf_status alloc_sums(const struct gg_moments *m,
                                   struct gg_moments_sums *sums,
                                   struct gguf_error *err)
{
    GG_TRY(alloc_rows(m->p.allocator, m->p.n, m->p.n, &sums->s, err));
    return alloc_rows(m->p.allocator, m->p.n, m->p.n, &sums->c, err);
}

/* Allocate an array of n items of a size; *out is NULL if n is 0. */
static enum gguf_status alloc_items(const struct gguf_allocator *a, size_t n,
                                    size_t size, void *out,
                                    struct gguf_error *err)
{
    void *p = NULL;
    if (n && !(p = gg_mem_alloc_zero(a, n, size)))
        return gg_error_set_nomem(err, n * size);
    memcpy(out, &p, sizeof p);
    return GGUF_OK;
}

static enum gguf_status alloc_products(struct gg_moments *m,
                                       struct gguf_error *err)
{
    const struct gguf_allocator *a = m->p.allocator;
    const size_t n = m->p.n_products;
    GG_TRY(alloc_items(a, n, sizeof *m->product, &m->product, err));
    GG_TRY(alloc_items(a, n, sizeof *m->d, &m->d, err));
    GG_TRY(alloc_items(a, n, sizeof *m->dr, &m->dr, err));
    for (size_t i = 0; i < n; i++) {
        const struct gg_moments_product *p = m->p.product + i;
        m->product[i] = *p;
        if (!p->has_residual)
            continue;
        GG_TRY(alloc_rows(a, p->n_rows, m->p.n, &m->d[i], err));
        GG_TRY(alloc_rows(a, m->p.heldout.n_rows, p->n_rows, &m->dr[i], err));
    }
    m->p.product = m->product;
    return GGUF_OK;
}

static enum gguf_status alloc_moments(struct gg_moments *m,
                                      struct gguf_error *err)
{
    const struct gguf_allocator *a = m->p.allocator;
    const struct gg_moments_params *p = &m->p;
    GG_TRY(alloc_products(m, err));
    GG_TRY(alloc_sums(m, &m->all, err));
    GG_TRY(alloc_items(a, p->n_experts, sizeof *m->expert, &m->expert, err));
    for (size_t i = 0; i < p->n_experts; i++)
        GG_TRY(alloc_sums(m, m->expert + i, err));
    GG_TRY(alloc_rows(a, m->n_kept, p->n, &m->xq, err));
    GG_TRY(alloc_rows(a, m->n_kept, p->n, &m->dx, err));
    return alloc_items(a, p->heldout.n_rows * p->n_used, sizeof *m->ids,
                       &m->ids, err);
}

enum gguf_status gg_moments_create(struct gg_moments **out,
                                   const struct gg_moments_params *params,
                                   struct gguf_error *err)
{
    *out = NULL;
    struct gg_moments *m = gg_mem_alloc_zero(params->allocator, 1, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    m->p = *params;
    m->rows_per_token = params->rows_by_expert ? params->n_used : 1;
    m->n_kept = params->heldout.n_rows * m->rows_per_token;
    enum gguf_status st = alloc_moments(m, err);
    if (st) {
        gg_moments_destroy(m);
        return st;
    }
    *out = m;
    return GGUF_OK;
}

void gg_moments_destroy(struct gg_moments *m)
{
    if (!m)
        return;
    const struct gguf_allocator *a = m->p.allocator;
    for (size_t i = 0; i < m->p.n_products; i++) {
        if (m->d)
            gg_mem_free(a, m->d[i]);
        if (m->dr)
            gg_mem_free(a, m->dr[i]);
    }
    for (size_t i = 0; m->expert && i < m->p.n_experts; i++) {
        gg_mem_free(a, m->expert[i].s);
        gg_mem_free(a, m->expert[i].c);
    }
    void *const rest[] = { m->d,     m->dr,     m->expert, m->all.s,
                           m->all.c, m->xq,     m->dx,     m->ids,
                           m->diff,  m->gather, m->product };
    for (size_t i = 0; i < GG_LEN(rest); i++)
        gg_mem_free(a, rest[i]);
    gg_mem_free(a, m);
}

size_t gg_moments_first_row(const struct gg_moments_params *p, size_t n_rows,
                            bool upper, size_t part)
{
    enum { BLOCK = 64 };
    const double n = (double)GG_MAX(p->n_parts, 1);
    const double share = (double)part / n;
    if (share >= 1)
        return n_rows;
    /* rows from r on have the part (1 - r / n_rows)^2 of the elements */
    const double rows = (double)n_rows * (upper ? 1 - sqrt(1 - share) : share);
    return (size_t)rows / BLOCK * BLOCK;
}

/* Elements of an array, shared out to the threads. */
struct elements {
    float *x;
    const float *y;
    size_t n;
    float scale, y_scale;
    atomic_bool is_bad;
};

static size_t share_begin(const struct elements *e, unsigned ith, unsigned nth)
{
    return e->n / nth * ith + GG_MIN(e->n % nth, ith);
}

/* x = scale x */
static void scale_share(void *user, unsigned ith, unsigned nth)
{
    const struct elements *e = user;
    const size_t end = share_begin(e, ith + 1, nth);
    for (size_t i = share_begin(e, ith, nth); i < end; i++)
        e->x[i] *= e->scale;
}

/* x = scale x + y_scale y */
static void blend_share(void *user, unsigned ith, unsigned nth)
{
    const struct elements *e = user;
    const size_t end = share_begin(e, ith + 1, nth);
    for (size_t i = share_begin(e, ith, nth); i < end; i++)
        e->x[i] = e->scale * e->x[i] + e->y_scale * e->y[i];
}

static void test_share(void *user, unsigned ith, unsigned nth)
{
    struct elements *e = user;
    const size_t end = share_begin(e, ith + 1, nth);
    float sum = 0;
    for (size_t i = share_begin(e, ith, nth); i < end; i++)
        sum += e->y[i] * 0.0f; /* NaN if the element is not finite */
    if (sum != 0.0f)
        atomic_store(&e->is_bad, true);
}

static bool is_finite(struct gg_linalg *la, const float *y, size_t n)
{
    struct elements e = { .y = y, .n = n };
    gguf_pool_run(la->pool, (struct gguf_pool_callback){ test_share, &e });
    return !atomic_load(&e.is_bad);
}

static void scale_elements(struct gg_linalg *la, float *x, size_t n,
                           float scale)
{
    struct elements e = { .x = x, .n = n, .scale = scale };
    gguf_pool_run(la->pool, (struct gguf_pool_callback){ scale_share, &e });
}

double gg_moments_mean_diagonal(const float *s, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)s[i * n + i];
    return n ? sum / (double)n : 0;
}

enum gg_moments_state gg_moments_check(struct gg_linalg *la, const float *s,
                                       const float *c, size_t n, size_t n_rows)
{
    const double mean = gg_moments_mean_diagonal(s, n);
    if (!n_rows)
        return GG_MOMENTS_EMPTY;
    if (!is_finite(la, s, n * n) || !is_finite(la, c, n * n))
        return GG_MOMENTS_NONFINITE;
    /* A damping of .01 of a smaller mean is not a normal float. */
    return mean < 1e-30 ? GG_MOMENTS_ZERO : GG_MOMENTS_GOOD;
}

void gg_moments_finish(struct gg_moments *m, struct gg_linalg *la)
{
    const size_t n = m->p.n;
    struct gg_moments_sums *all = &m->all;
    const float scale = all->n_rows ? 1.0f / (float)all->n_rows : 0.0f;
    gg_linalg_mirror(la, all->s, n);
    scale_elements(la, all->s, n * n, scale);
    scale_elements(la, all->c, n * n, scale);
    m->state = gg_moments_check(la, all->s, all->c, n, all->n_rows);
    for (size_t i = 0; i < m->p.n_products; i++) {
        if (!m->d[i])
            continue;
        const size_t size = m->product[i].n_rows * n;
        scale_elements(la, m->d[i], size, scale);
        if (m->state == GG_MOMENTS_GOOD && !is_finite(la, m->d[i], size))
            m->state = GG_MOMENTS_NONFINITE;
    }
}

void gg_moments_shrink(const struct gg_moments *m, struct gg_linalg *la,
                       size_t expert, float *s, float *c)
{
    const struct gg_moments_sums *e = m->expert + expert;
    const size_t n = m->p.n;
    const double k = (double)n / 4, total = (double)e->n_rows + k;
    memcpy(s, e->s, n * n * sizeof *s);
    memcpy(c, e->c, n * n * sizeof *c);
    gg_linalg_mirror(la, s, n);
    struct elements blend = { .x = s,
                              .y = m->all.s,
                              .n = n * n,
                              .scale = (float)(1 / total),
                              .y_scale = (float)(k / total) };
    gguf_pool_run(la->pool,
                  (struct gguf_pool_callback){ blend_share, &blend });
    scale_elements(la, c, n * n, (float)(1 / total));
}
