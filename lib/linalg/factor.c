/* SPDX-License-Identifier: MIT */
/* factor.c - factorization S = R R' in blocks, and solves with R */
#include "config.h"
#include "linalg/linalg.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "linalg/triangle.h"

#include <math.h>

enum { NB = GG_LINALG_BLOCK };

/* A diagonal block of R in double precision, and its inverse. */
struct block {
    size_t n;
    double r[NB * NB];
    float inverse[NB * NB];
};

static void copy_block(struct block *b, const float *s, size_t stride,
                       size_t n)
{
    b->n = n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            b->r[i * n + j] = (double)s[i * stride + j];
}

static void store_block(const struct block *b, float *s, size_t stride)
{
    for (size_t i = 0; i < b->n; i++)
        for (size_t j = i; j < b->n; j++)
            s[i * stride + j] = (float)b->r[i * b->n + j];
}

static void invert_share(void *user, unsigned ith, unsigned nth)
{
    struct block *b = user;
    double row[NB];
    for (size_t i = ith; i < b->n; i += nth) {
        gg_linalg_invert_row(b->r, b->n, i, row);
        for (size_t j = 0; j < b->n; j++)
            b->inverse[i * b->n + j] = (float)row[j];
    }
}

static void invert_block(struct gg_linalg *la, struct block *b)
{
    gguf_pool_run(la->pool, (struct gguf_pool_callback){ invert_share, b });
}

static enum gguf_status create_block(struct gg_linalg *la, struct block **b,
                                     struct gguf_error *err)
{
    *b = gg_mem_alloc(la->allocator, sizeof **b);
    return *b ? GGUF_OK : gg_error_set_nomem(err, sizeof **b);
}

static size_t first_of_last_block(size_t n)
{
    return (n - 1) / NB * NB;
}

/* c = a inverse, or a inverse' if transposed; c may be a. m rows. */
static enum gguf_status multiply_inverse(struct gg_linalg *la,
                                         const struct block *b, float *c,
                                         size_t stride, size_t m,
                                         bool transposed,
                                         struct gguf_error *err)
{
    const struct gg_linalg_product p = {
        .a = { c, stride, false },
        .b = { b->inverse, b->n, transposed },
        .c = c,
        .c_stride = stride,
        .m = m,
        .n = b->n,
        .k = b->n,
        .store = GG_LINALG_SET,
    };
    return gg_linalg_multiply(la, &p, err);
}

static enum gguf_status report_pivot(double pivot, size_t at, size_t *bad,
                                     struct gguf_error *err)
{
    if (bad)
        *bad = at;
    if (!isfinite(pivot))
        return gg_error_set(err, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                            "pivot %zu of the moments is not finite", at);
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "pivot %zu of the moments is %g, expected a positive "
                        "number",
                        at, pivot);
}

/* Factor the block from row j on, then the panel above it, and subtract the
 * panel's products from the rest. */
static enum gguf_status eliminate_block(struct gg_linalg *la, float *s,
                                        size_t n, size_t j, struct block *b,
                                        size_t *bad, struct gguf_error *err)
{
    float *diagonal = s + j * n + j, *panel = s + j;
    copy_block(b, diagonal, n, GG_MIN((size_t)NB, n - j));
    const size_t got = gg_linalg_factor_block(b->r, b->n);
    if (got < b->n)
        return report_pivot(b->r[got * b->n + got], j + got, bad, err);
    store_block(b, diagonal, n);
    if (!j)
        return GGUF_OK;
    invert_block(la, b);
    GG_TRY(multiply_inverse(la, b, panel, n, j, true, err));
    const struct gg_linalg_product p = { .a = { panel, n, false },
                                         .b = { panel, n, true },
                                         .c = s,
                                         .c_stride = n,
                                         .m = j,
                                         .n = j,
                                         .k = b->n,
                                         .store = GG_LINALG_SUBTRACT,
                                         .upper = true };
    return gg_linalg_multiply(la, &p, err);
}

enum gguf_status gg_linalg_factor_upper(struct gg_linalg *la, float *s,
                                        size_t n, size_t *bad,
                                        struct gguf_error *err)
{
    struct block *b;
    enum gguf_status st = GGUF_OK;
    if (!n)
        return GGUF_OK;
    GG_TRY(create_block(la, &b, err));
    for (size_t j = first_of_last_block(n);; j -= NB) {
        st = eliminate_block(la, s, n, j, b, bad, err);
        if (st || !j)
            break;
    }
    gg_mem_free(la->allocator, b);
    return st;
}

/* Y R' = B: the last block first. */
static enum gguf_status solve_transposed(struct gg_linalg *la, struct block *b,
                                         const float *r, size_t n, float *y,
                                         size_t m, struct gguf_error *err)
{
    for (size_t j = first_of_last_block(n);; j -= NB) {
        copy_block(b, r + j * n + j, n, GG_MIN((size_t)NB, n - j));
        invert_block(la, b);
        GG_TRY(multiply_inverse(la, b, y + j, n, m, true, err));
        const struct gg_linalg_product p = { .a = { y + j, n, false },
                                             .b = { r + j, n, true },
                                             .c = y,
                                             .c_stride = n,
                                             .m = m,
                                             .n = j,
                                             .k = b->n,
                                             .store = GG_LINALG_SUBTRACT };
        GG_TRY(gg_linalg_multiply(la, &p, err));
        if (!j)
            return GGUF_OK;
    }
}

/* X R = Y: the first block first. */
static enum gguf_status solve_plain(struct gg_linalg *la, struct block *b,
                                    const float *r, size_t n, float *x,
                                    size_t m, struct gguf_error *err)
{
    for (size_t j = 0; j < n; j += b->n) {
        copy_block(b, r + j * n + j, n, GG_MIN((size_t)NB, n - j));
        invert_block(la, b);
        GG_TRY(multiply_inverse(la, b, x + j, n, m, false, err));
        const size_t next = j + b->n;
        const struct gg_linalg_product p = { .a = { x + j, n, false },
                                             .b = { r + j * n + next, n,
                                                    false },
                                             .c = x + next,
                                             .c_stride = n,
                                             .m = m,
                                             .n = n - next,
                                             .k = b->n,
                                             .store = GG_LINALG_SUBTRACT };
        GG_TRY(gg_linalg_multiply(la, &p, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_linalg_solve_rows(struct gg_linalg *la, const float *r,
                                      size_t n, float *b, size_t m,
                                      struct gguf_error *err)
{
    struct block *block;
    if (!n || !m)
        return GGUF_OK;
    GG_TRY(create_block(la, &block, err));
    enum gguf_status st = solve_transposed(la, block, r, n, b, m, err);
    if (!st)
        st = solve_plain(la, block, r, n, b, m, err);
    gg_mem_free(la->allocator, block);
    return st;
}

struct mirror {
    float *s;
    size_t n;
};

/* Copy blocks of rows, so that both sides stay in the cache. */
static void mirror_share(void *user, unsigned ith, unsigned nth)
{
    const struct mirror *m = user;
    enum { SIDE = 32 };
    const size_t n = m->n;
    for (size_t i0 = ith * SIDE; i0 < n; i0 += (size_t)nth * SIDE)
        for (size_t j0 = 0; j0 <= i0; j0 += SIDE)
            for (size_t i = i0; i < GG_MIN(i0 + SIDE, n); i++)
                for (size_t j = j0; j < GG_MIN(j0 + SIDE, i); j++)
                    m->s[i * n + j] = m->s[j * n + i];
}

void gg_linalg_mirror(struct gg_linalg *la, float *s, size_t n)
{
    struct mirror m = { s, n };
    gguf_pool_run(la->pool, (struct gguf_pool_callback){ mirror_share, &m });
}
