/* SPDX-License-Identifier: MIT */
/* output_error.c - error of a matrix's outputs on rows that were held out */
#include "config.h"
#include "calibrate/output_error.h"
#include "calibrate/two_sided.h"

#include "base/mem.h"

#include <stdint.h>
#include <string.h>

/* Row of kept inputs that a token sends to an expert; SIZE_MAX: none. */
static size_t find_input(const struct gg_moments *m, size_t token, int32_t id)
{
    const size_t n_used = m->p.n_used;
    for (size_t k = 0; k < n_used; k++)
        if (m->ids[token * n_used + k] == id)
            return m->p.rows_by_expert ? token * n_used + k : token;
    return SIZE_MAX;
}

static enum gguf_status gather_inputs(struct gg_output_error_rows *r,
                                      const struct gg_moments *m, int32_t id,
                                      size_t count, struct gguf_error *err)
{
    const size_t n = r->n, size = n * sizeof(float);
    float *xq = gg_mem_alloc_zero(r->allocator, 2 * count, size);
    float *dx = xq + count * n;
    if (!xq)
        return gg_error_set_nomem(err, 2 * count * size);
    size_t to = 0;
    for (size_t t = 0; t < m->p.heldout.n_rows; t++) {
        const size_t from = find_input(m, t, id);
        if (from == SIZE_MAX)
            continue;
        memcpy(xq + to * n, m->xq + from * n, size);
        memcpy(dx + to * n, m->dx + from * n, size);
        to++;
    }
    r->xq = r->gathered = xq;
    r->dx = dx;
    r->n_inputs = count;
    return GGUF_OK;
}

enum gguf_status gg_output_error_rows_init(struct gg_output_error_rows *r,
                                           const struct gg_moments *m,
                                           size_t product, size_t expert,
                                           struct gguf_error *err)
{
    *r =
        (struct gg_output_error_rows){ .n = m->p.n,
                                       .n_inputs = m->n_kept,
                                       .xq = m->xq,
                                       .dx = m->dx,
                                       .dr = m->dr[product],
                                       .dr_stride = m->product[product].n_rows,
                                       .allocator = m->p.allocator };
    if (expert == SIZE_MAX)
        return GGUF_OK;
    const int32_t id = (int32_t)(m->p.first_expert + expert);
    size_t count = 0;
    for (size_t t = 0; t < m->p.heldout.n_rows; t++)
        count += find_input(m, t, id) != SIZE_MAX;
    if (count < GG_OUTPUT_ERROR_FEW_ROWS)
        return GGUF_OK;
    return gather_inputs(r, m, id, count, err);
}

void gg_output_error_rows_fini(struct gg_output_error_rows *r)
{
    gg_mem_free(r->allocator, r->gathered);
    r->gathered = NULL;
}

/* c = a inputs', or c + a inputs'. */
static enum gguf_status multiply_inputs(const struct gg_output_error_rows *r,
                                        struct gg_linalg *la, const float *a,
                                        const float *inputs, size_t n_rows,
                                        float *c, enum gg_linalg_store store,
                                        struct gguf_error *err)
{
    const struct gg_linalg_product p = { .a = { a, r->n, false },
                                         .b = { inputs, r->n, true },
                                         .c = c,
                                         .c_stride = r->n_inputs,
                                         .m = n_rows,
                                         .n = r->n_inputs,
                                         .k = r->n,
                                         .store = store };
    return gg_linalg_multiply(la, &p, err);
}

enum gguf_status gg_output_error_base(const struct gg_output_error_rows *r,
                                      struct gg_linalg *la, const float *w,
                                      size_t n_rows, float *base,
                                      struct gguf_error *err)
{
    return multiply_inputs(r, la, w, r->dx, n_rows, base, GG_LINALG_SET, err);
}

void gg_output_error_add_residual(const struct gg_output_error_rows *r,
                                  const size_t *row, size_t n_rows,
                                  float *base)
{
    if (!r->dr)
        return;
    for (size_t i = 0; i < n_rows; i++)
        for (size_t t = 0; t < r->n_inputs; t++)
            base[i * r->n_inputs + t] += r->dr[t * r->dr_stride + row[i]];
}

struct squares {
    const float *out;
    size_t n_rows, n;
    const float *curvature;
    double *sum;
};

static double multiply_rows(const struct squares *s, size_t i, size_t j)
{
    const float *a = s->out + i * s->n, *b = s->out + j * s->n;
    double sum = 0;
    for (size_t t = 0; t < s->n; t++)
        sum += (double)a[t] * (double)b[t];
    return sum;
}

/* Row i of a block's share of the weighted errors: with earlier rows of the
 * block. */
static void weigh_share(void *user, unsigned ith, unsigned nth)
{
    enum { BLOCK = GG_TWO_SIDED_BLOCK };
    const struct squares *s = user;
    for (size_t i = ith; i < s->n_rows; i += nth) {
        const size_t first = i - i % BLOCK;
        const float *h = s->curvature + first * BLOCK;
        const size_t rows = GG_MIN((size_t)BLOCK, s->n_rows - first);
        const double damped =
            (double)h[i % BLOCK * (BLOCK + 1)] + gg_two_sided_damping(h, rows);
        double sum = damped * multiply_rows(s, i, i);
        for (size_t j = first; j < i; j++)
            sum += 2 * (double)h[(j - first) * BLOCK + i % BLOCK] *
                   multiply_rows(s, i, j);
        s->sum[i] = sum;
    }
}

static void square_share(void *user, unsigned ith, unsigned nth)
{
    const struct squares *s = user;
    for (size_t i = ith; i < s->n_rows; i += nth) {
        double sum = 0;
        for (size_t t = 0; t < s->n; t++) {
            const double x = (double)s->out[i * s->n + t];
            sum += x * x;
        }
        s->sum[i] = sum;
    }
}

enum gguf_status gg_output_error_sum(const struct gg_output_error_rows *r,
                                     struct gg_linalg *la, const float *base,
                                     const float *e, size_t n_rows,
                                     const float *curvature, float *out,
                                     double *sum, struct gguf_error *err)
{
    memcpy(out, base, n_rows * r->n_inputs * sizeof *out);
    GG_TRY(multiply_inputs(r, la, e, r->xq, n_rows, out, GG_LINALG_ADD, err));
    struct squares s = { out, n_rows, r->n_inputs, curvature, sum };
    gguf_pool_run(la->pool, (struct gguf_pool_callback){
                                curvature ? weigh_share : square_share, &s });
    return GGUF_OK;
}
