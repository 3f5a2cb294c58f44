/* SPDX-License-Identifier: MIT */
/* moments_add.c - sums over a batch of activations */
#include "config.h"
#include "calibrate/moments.h"

#include "base/compiler.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>

/* Differences of rows: out[i] = (x[i] - y[i]) * scale; 0 without x[i]. */
struct difference {
    const struct gg_moments_batch *b;
    size_t n, rows_per_token, n_rows;
    const float *x, *y;
    size_t x_stride, y_stride;
    float scale;
    bool by_expert;
    float *out;
    atomic_bool differs;
};

/* Row of x for row i of y: the same row, or with inputs by expert that of the
 * same expert. NULL: the original model does not use this expert. */
static const float *find_row(const struct difference *d, size_t i)
{
    if (!d->by_expert)
        return d->x + i * d->x_stride;
    const size_t n_used = d->rows_per_token, token = i / n_used;
    const int32_t *ids = d->b->ids + token * d->b->ids_stride;
    const int32_t id = d->b->ids_q[token * d->b->ids_q_stride + i % n_used];
    for (size_t k = 0; k < n_used; k++)
        if (ids[k] == id)
            return d->x + (token * n_used + k) * d->x_stride;
    return NULL;
}

static void subtract_share(void *user, unsigned ith, unsigned nth)
{
    struct difference *d = user;
    bool differs = false;
    for (size_t i = ith; i < d->n_rows; i += nth) {
        const float *x = find_row(d, i), *y = d->y + i * d->y_stride;
        float *out = d->out + i * d->n;
        if (!x) {
            memset(out, 0, d->n * sizeof *out);
            continue;
        }
        for (size_t j = 0; j < d->n; j++) {
            out[j] = (x[j] - y[j]) * d->scale;
            differs |= out[j] != 0.0f;
        }
    }
    if (differs)
        atomic_store(&d->differs, true);
}

/* Compute the differences in m->diff. */
static enum gguf_status subtract_rows(struct gg_moments *m,
                                      struct gg_linalg *la,
                                      struct difference *d,
                                      struct gguf_error *err)
{
    const size_t room = d->n_rows * d->n;
    m->diff = gg_mem_renew(m->p.allocator, m->diff, &m->diff_room,
                           sizeof *m->diff, room, err);
    if (!m->diff)
        return GGUF_E_NOMEM;
    d->out = m->diff;
    gguf_pool_run(la->pool, (struct gguf_pool_callback){ subtract_share, d });
    m->differs |= atomic_load(&d->differs);
    return GGUF_OK;
}

/* Next run of tokens that are not held out: *first to *end of the batch. */
static bool next_run(const struct gg_moments *m,
                     const struct gg_moments_batch *b, size_t *first,
                     size_t *end)
{
    const struct gg_heldout *h = &m->p.heldout;
    size_t t = *end;
    while (t < b->n_tokens && gg_heldout_has(h, b->first_token + t))
        t++;
    *first = t;
    while (t < b->n_tokens && !gg_heldout_has(h, b->first_token + t))
        t++;
    *end = t;
    return *first < t;
}

/* Rows of a sum that are computed here. */
struct part {
    size_t first, n;
};

static struct part find_part(const struct gg_moments *m, size_t n_rows,
                             bool upper)
{
    const struct gg_moments_params *p = &m->p;
    const size_t first = gg_moments_first_row(p, n_rows, upper, p->part);
    const size_t end = gg_moments_first_row(p, n_rows, upper, p->part + 1);
    return (struct part){ first, end - first };
}

static enum gguf_status add_sums(const struct gg_moments *m,
                                 struct gg_linalg *la,
                                 struct gg_moments_sums *sums, const float *xq,
                                 size_t xq_stride, const float *dx,
                                 size_t n_rows, struct gguf_error *err)
{
    const size_t n = m->p.n;
    const struct part s = find_part(m, n, true), c = find_part(m, n, false);
    sums->n_rows += n_rows;
    if (s.n)
        GG_TRY(gg_linalg_add_products(
            la, sums->s + s.first * (n + 1), n, xq + s.first, xq_stride, s.n,
            xq + s.first, xq_stride, n - s.first, n_rows, true, err));
    if (!m->differs || !c.n) /* all differences are 0 */
        return GGUF_OK;
    return gg_linalg_add_products(la, sums->c + c.first * n, n, dx + c.first,
                                  n, c.n, xq, xq_stride, n, n_rows, false,
                                  err);
}

/* Keep the inputs of tokens that are held out. */
static void keep_rows(struct gg_moments *m, const struct gg_moments_batch *b)
{
    const size_t n = m->p.n, per = m->rows_per_token, n_used = m->p.n_used;
    for (size_t t = 0; t < b->n_tokens; t++) {
        const size_t to = gg_heldout_row(&m->p.heldout, b->first_token + t);
        if (to == SIZE_MAX)
            continue;
        for (size_t k = 0; k < per; k++) {
            memcpy(m->xq + (to * per + k) * n,
                   b->xq + (t * per + k) * b->xq_stride, n * sizeof *m->xq);
            memcpy(m->dx + (to * per + k) * n, m->diff + (t * per + k) * n,
                   n * sizeof *m->dx);
        }
        if (n_used)
            memcpy(m->ids + to * n_used, b->ids_q + t * b->ids_q_stride,
                   n_used * sizeof *m->ids);
    }
}

/* Add the residual of product i to D, and keep its rows held out. */
static enum gguf_status add_residual(struct gg_moments *m,
                                     struct gg_linalg *la,
                                     const struct gg_moments_batch *b,
                                     size_t i, struct gguf_error *err)
{
    const struct gg_moments_product *p = m->product + i;
    struct difference d = { .b = b,
                            .n = p->n_rows,
                            .rows_per_token = 1,
                            .n_rows = b->n_tokens,
                            .x = b->r[i],
                            .y = b->rq[i],
                            .x_stride = b->r_stride,
                            .y_stride = b->rq_stride,
                            .scale = 1.0f / p->factor };
    const struct part rows = find_part(m, d.n, false);
    GG_TRY(subtract_rows(m, la, &d, err));
    for (size_t first, end = 0; rows.n && next_run(m, b, &first, &end);)
        GG_TRY(gg_linalg_add_products(
            la, m->d[i] + rows.first * m->p.n, m->p.n,
            m->diff + first * d.n + rows.first, d.n, rows.n,
            b->xq + first * b->xq_stride, b->xq_stride, m->p.n, end - first,
            false, err));
    for (size_t t = 0; t < b->n_tokens; t++) {
        const size_t to = gg_heldout_row(&m->p.heldout, b->first_token + t);
        if (to != SIZE_MAX)
            memcpy(m->dr[i] + to * d.n, m->diff + t * d.n,
                   d.n * sizeof *m->diff);
    }
    return GGUF_OK;
}

/* Add the rows that the batch sends to an expert. Rows are gathered: Xq, then
 * X - Xq. */
static enum gguf_status add_expert(struct gg_moments *m, struct gg_linalg *la,
                                   const struct gg_moments_batch *b, size_t e,
                                   struct gguf_error *err)
{
    const size_t n = m->p.n, per = m->rows_per_token, n_used = m->p.n_used;
    const int32_t id = (int32_t)(m->p.first_expert + e);
    size_t n_rows = 0;
    float *xq = m->gather, *dx = m->gather + b->n_tokens * n;
    for (size_t t = 0; t < b->n_tokens; t++) {
        const int32_t *ids = b->ids_q + t * b->ids_q_stride;
        size_t k = 0;
        while (k < n_used && ids[k] != id)
            k++;
        if (k == n_used || gg_heldout_has(&m->p.heldout, b->first_token + t))
            continue;
        const size_t row = per == 1 ? t : t * per + k;
        memcpy(xq + n_rows * n, b->xq + row * b->xq_stride, n * sizeof *xq);
        memcpy(dx + n_rows * n, m->diff + row * n, n * sizeof *dx);
        n_rows++;
    }
    return add_sums(m, la, m->expert + e, xq, n, dx, n_rows, err);
}

static enum gguf_status add_experts(struct gg_moments *m, struct gg_linalg *la,
                                    const struct gg_moments_batch *b,
                                    struct gguf_error *err)
{
    const size_t room = 2 * b->n_tokens * m->p.n;
    m->gather = gg_mem_renew(m->p.allocator, m->gather, &m->gather_room,
                             sizeof *m->gather, room, err);
    if (!m->gather)
        return GGUF_E_NOMEM;
    for (size_t e = 0; e < m->p.n_experts; e++)
        GG_TRY(add_expert(m, la, b, e, err));
    return GGUF_OK;
}

enum gguf_status gg_moments_add(struct gg_moments *m, struct gg_linalg *la,
                                const struct gg_moments_batch *b,
                                struct gguf_error *err)
{
    const size_t per = m->rows_per_token;
    struct difference d = { .b = b,
                            .n = m->p.n,
                            .rows_per_token = per,
                            .n_rows = b->n_tokens * per,
                            .x = b->x,
                            .y = b->xq,
                            .x_stride = b->x_stride,
                            .y_stride = b->xq_stride,
                            .scale = 1.0f,
                            .by_expert = m->p.rows_by_expert };
    if (!b->n_tokens)
        return GGUF_OK;
    GG_TRY(subtract_rows(m, la, &d, err));
    keep_rows(m, b);
    for (size_t first, end = 0; next_run(m, b, &first, &end);)
        GG_TRY(add_sums(m, la, &m->all, b->xq + first * per * b->xq_stride,
                        b->xq_stride, m->diff + first * per * m->p.n,
                        (end - first) * per, err));
    if (m->p.n_experts)
        GG_TRY(add_experts(m, la, b, err));
    for (size_t i = 0; b->r && i < m->p.n_products; i++)
        if (m->d[i])
            GG_TRY(add_residual(m, la, b, i, err));
    return GGUF_OK;
}
