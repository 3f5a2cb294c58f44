/* SPDX-License-Identifier: MIT */
/* calibrate_share.c - a calibration that several processes share */
#include "config.h"
#include "calibrate/calibrate_share.h"
#include "calibrate/two_sided.h"

#include "base/compiler.h"
#include "base/mem.h"

#include <string.h>

/* Rows that are never divided: those of a block of the curvature. */
enum { BLOCK = GG_TWO_SIDED_BLOCK };

enum gguf_status
gg_calibrate_check_share(const struct gguf_calibrate_params *p,
                         struct gguf_error *err)
{
    if (!p->exchange.fn || p->n_ranks <= 1 || p->rank < p->n_ranks)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "rank %zu of a calibration, expected less than %zu",
                        p->rank, p->n_ranks);
}

static enum gguf_status exchange_parts(const struct gg_calibrate_job *j,
                                       void *data, const uint64_t *off,
                                       struct gguf_error *err)
{
    const struct gguf_calibrate_exchange_callback *c = &j->p->exchange;
    return c->fn(c->user, data, off)
               ? gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                              "cancelled")
               : GGUF_OK;
}

static uint64_t *allocate_offsets(const struct gg_calibrate_job *j,
                                  struct gguf_error *err)
{
    const size_t n = gg_calibrate_n_ranks(j) + 1;
    uint64_t *off = gg_mem_alloc_zero(j->allocator, n, sizeof *off);
    if (!off)
        (void)gg_error_set_nomem(err, n * sizeof *off);
    return off;
}

enum gguf_status gg_calibrate_exchange(const struct gg_calibrate_job *j,
                                       void *data, size_t size,
                                       struct gguf_error *err)
{
    const size_t n = gg_calibrate_n_ranks(j);
    uint64_t *off = allocate_offsets(j, err);
    if (!off)
        return GGUF_E_NOMEM;
    for (size_t r = 0; r <= n; r++)
        off[r] = (uint64_t)r * size;
    const enum gguf_status st = exchange_parts(j, data, off, err);
    gg_mem_free(j->allocator, off);
    return st;
}

/* ---- inputs of a stage ---- */

/* Rows of the inputs of a chunk. */
static size_t count_rows(const struct gg_calibrate_stage *s)
{
    const struct gg_moments_params *p = &s->moments;
    return s->j->text.n_ctx * (p->rows_by_expert ? p->n_used : 1);
}

static size_t count_residuals(const struct gg_calibrate_stage *s)
{
    size_t n = 0;
    for (size_t k = 0; k < s->n_matrices; k++)
        n += s->product[k].has_residual;
    return n;
}

enum gguf_status
gg_calibrate_share_inputs_init(struct gg_calibrate_share_inputs *i,
                               const struct gg_calibrate_stage *s,
                               struct gguf_error *err)
{
    const struct gguf_allocator *a = s->j->allocator;
    const size_t n_ctx = s->j->text.n_ctx;
    *i = (struct gg_calibrate_share_inputs){ .s = s };
    for (size_t k = 0; k < s->n_matrices; k++)
        if (s->product[k].has_residual)
            i->r_stride = GG_MAX(i->r_stride, s->product[k].n_rows);
    i->x = count_rows(s) * s->n * sizeof(float);
    i->r = n_ctx * i->r_stride * sizeof(float);
    i->ids = n_ctx * s->moments.n_used * sizeof(int32_t);
    i->slot = 2 * (i->x + count_residuals(s) * i->r + i->ids);
    i->data = gg_mem_alloc_zero(a, gg_calibrate_n_ranks(s->j), i->slot);
    i->list[0] = gg_mem_alloc_zero(a, s->n_matrices, sizeof *i->list[0]);
    i->list[1] = gg_mem_alloc_zero(a, s->n_matrices, sizeof *i->list[1]);
    return i->data && i->list[0] && i->list[1]
               ? GGUF_OK
               : gg_error_set_nomem(err, gg_calibrate_n_ranks(s->j) * i->slot);
}

void gg_calibrate_share_inputs_fini(struct gg_calibrate_share_inputs *i)
{
    const struct gguf_allocator *a = i->s->j->allocator;
    gg_mem_free(a, i->data);
    gg_mem_free(a, (void *)i->list[0]);
    gg_mem_free(a, (void *)i->list[1]);
}

/* Copy n rows of `size` floats or ids, whose distances in elements are given.
 * Both have 4 bytes. */
static void copy_rows(void *dst, size_t dst_stride, const void *src,
                      size_t src_stride, size_t size, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy((char *)dst + i * dst_stride * 4,
               (const char *)src + i * src_stride * 4, size * 4);
}

void gg_calibrate_share_inputs_put(struct gg_calibrate_share_inputs *i,
                                   const struct gg_moments_batch *b)
{
    const struct gg_calibrate_stage *s = i->s;
    const size_t n_ctx = s->j->text.n_ctx, n_used = s->moments.n_used;
    char *at = i->data + s->j->p->rank * i->slot;
    copy_rows(at, s->n, b->x, b->x_stride, s->n, count_rows(s));
    copy_rows(at + i->x, s->n, b->xq, b->xq_stride, s->n, count_rows(s));
    at += 2 * i->x;
    for (size_t k = 0; k < s->n_matrices; k++) {
        const size_t n = s->product[k].n_rows;
        if (!s->product[k].has_residual)
            continue;
        copy_rows(at, i->r_stride, b->r[k], b->r_stride, n, n_ctx);
        copy_rows(at + i->r, i->r_stride, b->rq[k], b->rq_stride, n, n_ctx);
        at += 2 * i->r;
    }
    if (!i->ids)
        return;
    copy_rows(at, n_used, b->ids, b->ids_stride, n_used, n_ctx);
    copy_rows(at + i->ids, n_used, b->ids_q, b->ids_q_stride, n_used, n_ctx);
}

void gg_calibrate_share_inputs_get(const struct gg_calibrate_share_inputs *i,
                                   size_t rank, struct gg_moments_batch *b)
{
    const struct gg_calibrate_stage *s = i->s;
    const char *at = i->data + rank * i->slot;
    b->x = (const float *)(const void *)at;
    b->xq = (const float *)(const void *)(at + (s->original_only ? 0 : i->x));
    b->x_stride = b->xq_stride = s->n;
    at += 2 * i->x;
    for (size_t k = 0; k < s->n_matrices; k++) {
        if (!s->product[k].has_residual)
            continue;
        i->list[0][k] = (const float *)(const void *)at;
        i->list[1][k] = (const float *)(const void *)(at + i->r);
        b->r = i->list[0];
        b->rq = i->list[1];
        b->r_stride = b->rq_stride = i->r_stride;
        at += 2 * i->r;
    }
    if (!i->ids)
        return;
    b->ids = (const int32_t *)(const void *)at;
    b->ids_q = (const int32_t *)(const void *)(at + i->ids);
    b->ids_stride = b->ids_q_stride = s->moments.n_used;
}

/* Exchange the rows of a sum of n_rows rows of n floats. */
static enum gguf_status exchange_sum(const struct gg_calibrate_stage *s,
                                     const struct gg_moments *m, float *sum,
                                     size_t n_rows, bool upper,
                                     struct gguf_error *err)
{
    const size_t n = gg_calibrate_n_ranks(s->j);
    uint64_t *off = allocate_offsets(s->j, err);
    if (!off)
        return GGUF_E_NOMEM;
    for (size_t r = 0; r <= n; r++)
        off[r] = (uint64_t)gg_moments_first_row(&m->p, n_rows, upper, r) *
                 m->p.n * sizeof(float);
    const enum gguf_status st = exchange_parts(s->j, sum, off, err);
    gg_mem_free(s->j->allocator, off);
    return st;
}

static enum gguf_status exchange_sums(const struct gg_calibrate_stage *s,
                                      const struct gg_moments *m,
                                      const struct gg_moments_sums *sums,
                                      struct gguf_error *err)
{
    GG_TRY(exchange_sum(s, m, sums->s, m->p.n, true, err));
    return m->differs ? exchange_sum(s, m, sums->c, m->p.n, false, err)
                      : GGUF_OK;
}

enum gguf_status gg_calibrate_share_sums(const struct gg_calibrate_stage *s,
                                         const struct gg_moments *m,
                                         struct gguf_error *err)
{
    GG_TRY(exchange_sums(s, m, &m->all, err));
    for (size_t e = 0; e < m->p.n_experts; e++)
        GG_TRY(exchange_sums(s, m, &m->expert[e], err));
    for (size_t k = 0; k < m->p.n_products; k++)
        if (m->d[k])
            GG_TRY(
                exchange_sum(s, m, m->d[k], m->product[k].n_rows, false, err));
    return GGUF_OK;
}

/* ---- rows ---- */

enum gguf_status gg_calibrate_share_encode(void *user,
                                           const struct gg_targets *t,
                                           const float *curvature,
                                           const float *target, size_t n_rows,
                                           void *bytes, struct gguf_error *err)
{
    const struct gg_calibrate_share_rows *s = user;
    const size_t n = gg_calibrate_n_ranks(s->j);
    const size_t n_blocks = (n_rows + BLOCK - 1) / BLOCK;
    uint64_t *off = allocate_offsets(s->j, err);
    if (!off)
        return GGUF_E_NOMEM;
    for (size_t r = 0; r <= n; r++)
        off[r] = GG_MIN(n_blocks * r / n * BLOCK, n_rows);
    const size_t first = (size_t)off[s->j->p->rank];
    const size_t end = (size_t)off[s->j->p->rank + 1];
    for (size_t r = 0; r <= n; r++)
        off[r] *= s->row_size;
    enum gguf_status st = GGUF_OK;
    if (first < end)
        st = s->encoder.encode(s->encoder.user, t,
                               curvature ? curvature + first * BLOCK : NULL,
                               target + first * t->n, end - first,
                               (char *)bytes + first * s->row_size, err);
    if (st == GGUF_OK)
        st = exchange_parts(s->j, bytes, off, err);
    gg_mem_free(s->j->allocator, off);
    return st;
}
