/* SPDX-License-Identifier: MIT */
/* composed.c - tensors assembled from those of another list */
#include "config.h"
#include "data/composed.h"

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/dtype.h"

#include <string.h>

/* Size in elements up to which scattered parts are released at once. */
#define SPREAD (UINT64_C(1) << 22)

static const struct gg_data_composed *as_composed(const struct gg_data *d)
{
    return (const struct gg_data_composed *)d;
}

/* ---- reading ---- */

/* Destination of elements: floats, or blocks of the type. */
struct sink {
    float *x;
    uint8_t *blocks;
    const struct gguf_dtype_info *type; /* type of blocks */
};

/* Read n elements of the base, step apart. */
static void copy_strided(const struct gg_data_rows *rows, uint64_t src,
                         uint64_t step, uint64_t n, struct sink *to)
{
    if (to->blocks) {
        rows->blocks(rows, src, n, to->blocks);
        to->blocks += n / to->type->block_len * to->type->block_size;
        return;
    }
    if (step == 1)
        gg_data_read(rows, src, n, to->x);
    else
        for (uint64_t i = 0; i < n; i++)
            gg_data_read(rows, src + i * step, 1, to->x + i);
    to->x += n;
}

/* Read n elements of a part, from element first on. */
static void read_part(const struct gg_composed_part *p,
                      const struct gg_data_rows *rows, uint64_t first,
                      uint64_t n, struct sink *to)
{
    uint64_t at[GG_COMPOSED_DIMS] = { 0 }, src = p->first, rest = first;
    for (unsigned d = 0; d < p->n_dims; d++) {
        at[d] = rest % p->ne[d];
        rest /= p->ne[d];
        src += at[d] * p->step[d];
    }
    while (n) {
        const uint64_t k = GG_MIN(n, p->ne[0] - at[0]);
        copy_strided(rows, src, p->step[0], k, to);
        n -= k;
        src -= at[0] * p->step[0];
        at[0] = 0;
        for (unsigned d = 1; d < p->n_dims; d++) {
            src += p->step[d];
            if (++at[d] < p->ne[d])
                break;
            src -= p->ne[d] * p->step[d];
            at[d] = 0;
        }
    }
}

static void multiply_by(float *x, uint64_t n, float y)
{
    for (uint64_t i = 0; i < n; i++)
        x[i] *= y;
}

static void put_zeros(uint64_t n, struct sink *to)
{
    if (to->blocks) { /* blocks of one number: has_blocks */
        memset(to->blocks, 0, n * to->type->block_size);
        to->blocks += n * to->type->block_size;
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        to->x[i] = 0;
    to->x += n;
}

/* Read a part, with its factors and changes. */
static void read_changed(const struct gg_composed_tensor *t, size_t no,
                         uint64_t first, uint64_t n, struct sink *to)
{
    const struct gg_composed_part *p = &t->part[no];
    float *const x = to->x;
    read_part(p, &t->rows[no], first, n, to);
    for (size_t s = 0; s < 2 && p->scale[s] != 0; s++)
        multiply_by(x, n, p->scale[s]);
    if (t->change && x)
        t->change(x, (size_t)n);
    if (p->after != 0)
        multiply_by(x, n, p->after);
    for (uint64_t i = 0; p->run && i < n; i++)
        if ((first + i) / p->run % 2)
            x[i] = -x[i];
}

/* First element of the tensor that part k gives. */
static uint64_t part_begin(const struct gg_composed_tensor *t, size_t k)
{
    return k && !t->product ? t->end[k - 1] : 0;
}

static void read_product(const struct gg_composed_tensor *t, uint64_t first,
                         uint64_t n, struct sink *to)
{
    float x[256], *const y = to->x;
    read_changed(t, 0, first, n, to);
    for (size_t k = 1; k < t->n_parts; k++)
        for (uint64_t at = 0, m; at < n; at += m) {
            struct sink factor = { .x = x };
            m = GG_MIN(n - at, GG_LEN(x));
            read_changed(t, k, first + at, m, &factor);
            for (uint64_t i = 0; i < m; i++)
                y[at + i] *= x[i];
        }
}

static void read_parts(const struct gg_composed_tensor *t, uint64_t first,
                       uint64_t n, struct sink *to)
{
    size_t low = 0, high = t->n_parts;
    if (t->product) {
        read_product(t, first, n, to);
        return;
    }
    while (low < high) { /* find the part with element first */
        const size_t mid = low + (high - low) / 2;
        if (t->end[mid] <= first)
            low = mid + 1;
        else
            high = mid;
    }
    for (; n; low++) {
        const uint64_t begin = part_begin(t, low);
        const uint64_t k = GG_MIN(n, t->end[low] - first);
        if (t->part[low].zero)
            put_zeros(k, to);
        else
            read_changed(t, low, first - begin, k, to);
        first += k;
        n -= k;
    }
}

static void read_composed(const struct gg_data_rows *r, uint64_t first,
                          uint64_t n, float *dst)
{
    const struct gg_composed_tensor *t = r->source;
    struct sink to = { .x = dst };
    read_parts(t, first, n, &to);
}

static void store_composed(const struct gg_data_rows *r, uint64_t first,
                           uint64_t n, uint8_t *dst)
{
    const struct gg_composed_tensor *t = r->source;
    struct sink to = { .blocks = dst, .type = gguf_dtype_find(t->dtype) };
    read_parts(t, first, n, &to);
}

/* Does the tensor consist of whole blocks of its parts? */
static bool has_blocks(const struct gg_data_composed *m,
                       const struct gg_composed_tensor *t)
{
    const struct gguf_dtype_info *type = gguf_dtype_find(t->dtype);
    if (t->product)
        return false;
    for (size_t i = 0; i < t->n_parts; i++) {
        const struct gg_composed_part *p = &t->part[i];
        struct gg_data_info base;
        if (p->zero && type->block_len == 1)
            continue;
        gg_data_info(m->base, p->from, &base);
        if (t->change || p->zero || p->scale[0] != 0 || p->after != 0 ||
            p->run || !t->rows[i].blocks || base.dtype != t->dtype ||
            p->step[0] != 1 || p->ne[0] % type->block_len)
            return false;
    }
    return true;
}

/* ---- the list ---- */

static uint64_t n_elements(const struct gg_composed_tensor *t)
{
    return (uint64_t)t->ne[0] * (uint64_t)t->ne[1] * (uint64_t)t->ne[2] *
           (uint64_t)t->ne[3];
}

static size_t n_tensors(const struct gg_data *d)
{
    return as_composed(d)->n_tensors;
}

static void tensor_info(const struct gg_data *d, size_t i,
                        struct gg_data_info *out)
{
    const struct gg_composed_tensor *t = &as_composed(d)->tensor[i];
    uint64_t row = 0;
    *out = (struct gg_data_info){ .name = t->name,
                                  .dtype = t->dtype,
                                  .keeps_type = t->keeps_type,
                                  .n_dims = t->n_dims,
                                  .n_elements = n_elements(t),
                                  .info_off = GGUF_NO_OFFSET,
                                  .off = GGUF_NO_OFFSET };
    for (size_t k = 0; k < GGUF_MAX_DIMS; k++)
        out->ne[k] = k < 4 ? t->ne[k] : 1;
    if (out->n_elements && gguf_dtype_row_size(t->dtype, (uint64_t)t->ne[0],
                                               &row, NULL) == GGUF_OK)
        out->size = row * (out->n_elements / (uint64_t)t->ne[0]);
}

static enum gguf_status prepare_rows(const struct gg_data *d, size_t i,
                                     struct gg_data_rows *out,
                                     struct gguf_error *err)
{
    const struct gg_composed_tensor *t = &as_composed(d)->tensor[i];
    (void)err;
    *out = (struct gg_data_rows){ .read = read_composed, .source = t };
    if (has_blocks(as_composed(d), t))
        out->blocks = store_composed;
    return GGUF_OK;
}

/* Is the part a whole tensor of the base, in its order? */
static bool is_whole(const struct gg_composed_tensor *t,
                     const struct gg_data_info *base)
{
    const struct gg_composed_part *p = t->part;
    uint64_t step = 1;
    for (unsigned d = 0; d < p->n_dims; d++) {
        if (p->step[d] != step && p->ne[d] > 1)
            return false;
        step *= p->ne[d];
    }
    return t->n_parts == 1 && !t->change && p->scale[0] == 0 &&
           p->after == 0 && !p->run && !p->zero && !p->first &&
           step == base->n_elements && base->dtype == t->dtype;
}

static bool is_stored(const struct gg_data_composed *m, size_t i)
{
    struct gg_data_info base;
    if (!m->tensor[i].n_parts)
        return false;
    gg_data_info(m->base, m->tensor[i].part[0].from, &base);
    return is_whole(&m->tensor[i], &base);
}

static const uint8_t *stored_bytes(const struct gg_data *d, size_t i)
{
    const struct gg_data_composed *m = as_composed(d);
    return is_stored(m, i) ? gg_data_bytes(m->base, m->tensor[i].part[0].from)
                           : NULL;
}

static bool input_file(const struct gg_data *d, size_t i,
                       struct gg_data_file *out)
{
    return gg_data_file(as_composed(d)->base, i, out);
}

/* Find the range of base elements that elements first to last of a part come
 * from: the lowest one, and the length. Dimensions that first and last share
 * contribute one place; the slowest dimension in which they differ contributes
 * the range between; faster dimensions contribute everything. */
static void find_reach(const struct gg_composed_part *p, uint64_t first,
                       uint64_t last, uint64_t *low, uint64_t *n)
{
    uint64_t a[GG_COMPOSED_DIMS], b[GG_COMPOSED_DIMS], high;
    bool same = true;
    for (unsigned d = 0; d < p->n_dims; d++) {
        a[d] = first % p->ne[d];
        b[d] = last % p->ne[d];
        first /= p->ne[d];
        last /= p->ne[d];
    }
    *low = high = p->first;
    for (unsigned d = p->n_dims; d--;) {
        *low += (same ? a[d] : 0) * p->step[d];
        high += (same ? b[d] : p->ne[d] - 1) * p->step[d];
        same = same && a[d] == b[d];
    }
    *n = high - *low + 1;
}

/* If rows lie apart, the elements between them belong to later chunks. Such a
 * part is released at its end, unless it is small. */
static void advise_pages(const struct gg_data *d, size_t i, uint64_t first,
                         uint64_t n, enum gg_mapfile_advice how)
{
    const struct gg_data_composed *m = as_composed(d);
    const struct gg_composed_tensor *t = &m->tensor[i];
    for (size_t k = 0; m->base->ops->advise && k < t->n_parts; k++) {
        const uint64_t begin = part_begin(t, k);
        const uint64_t from = GG_MAX(first, begin);
        const uint64_t to = GG_MIN(first + n, t->end[k]);
        uint64_t low, size;
        if (from >= to || t->part[k].zero)
            continue;
        const bool ends = how == GG_ADVISE_DONTNEED && to == t->end[k];
        find_reach(&t->part[k], from - begin, to - 1 - begin, &low, &size);
        if (size > SPREAD && size / 2 > to - from) {
            if (!ends)
                continue;
            find_reach(&t->part[k], 0, to - 1 - begin, &low, &size);
        }
        gg_data_advise(m->base, t->part[k].from, low, size, how);
    }
}

static enum gguf_status hold_elements(const struct gg_data *d, size_t i,
                                      uint64_t first, uint64_t n, bool begin,
                                      struct gguf_error *err)
{
    const struct gg_data_composed *m = as_composed(d);
    const struct gg_composed_tensor *t = &m->tensor[i];
    for (size_t k = 0; m->base->ops->hold && k < t->n_parts; k++) {
        const uint64_t start = part_begin(t, k);
        const uint64_t from = GG_MAX(first, start);
        const uint64_t to = GG_MIN(first + n, t->end[k]);
        uint64_t low, size;
        if (from >= to || t->part[k].zero)
            continue;
        find_reach(&t->part[k], from - start, to - 1 - start, &low, &size);
        GG_TRY(m->base->ops->hold(m->base, t->part[k].from, low, size, begin,
                                  err));
    }
    return GGUF_OK;
}

/* ---- making it ---- */

/* Join dimensions that follow each other without a gap. */
static void join_dims(struct gg_composed_part *p)
{
    unsigned n = 0;
    for (unsigned d = 0; d < p->n_dims; d++) {
        if (p->ne[d] == 1 && (n || d + 1 < p->n_dims))
            continue;
        if (n && p->step[d] == p->step[n - 1] * p->ne[n - 1]) {
            p->ne[n - 1] *= p->ne[d];
            continue;
        }
        p->ne[n] = p->ne[d];
        p->step[n++] = p->step[d];
    }
    p->n_dims = n;
}

/* Count the elements of a part. Returns false if it reaches outside of the
 * tensor's n elements. */
static bool count_part(const struct gg_composed_part *p, uint64_t n,
                       uint64_t *out)
{
    uint64_t last = p->first, far, count = 1;
    if (!p->n_dims || p->n_dims > GG_COMPOSED_DIMS)
        return false;
    for (unsigned d = 0; d < p->n_dims; d++)
        if (!p->ne[d] || gg_ckd_mul(&count, count, p->ne[d]) ||
            gg_ckd_mul(&far, p->ne[d] - 1, p->step[d]) ||
            gg_ckd_add(&last, last, far))
            return false;
    *out = count;
    return last < n;
}

static enum gguf_status make_tensor(struct gg_data_composed *m,
                                    struct gg_composed_tensor *t,
                                    struct gguf_error *err)
{
    uint64_t at = 0, n = 0;
    struct gg_str_esc e;
    if (!t->n_parts && !n_elements(t))
        return GGUF_OK;
    t->rows = gg_mem_alloc_zero(m->allocator, t->n_parts, sizeof *t->rows);
    t->end = gg_mem_alloc_zero(m->allocator, t->n_parts, sizeof *t->end);
    if (!t->rows || !t->end)
        return gg_error_set_nomem(err, t->n_parts * sizeof *t->rows);
    for (size_t i = 0; i < t->n_parts; i++) {
        struct gg_data_info base;
        gg_data_info(m->base, t->part[i].from, &base);
        if (t->product)
            at = 0;
        if (!count_part(&t->part[i], base.n_elements, &n) ||
            gg_ckd_add(&at, at, n) || gg_ckd_exceeds_cap(at))
            return gg_error_set(err, GGUF_E_SHAPE, GGUF_NO_OFFSET,
                                "tensor '%s': part %zu reaches outside of its "
                                "source",
                                gg_str_esc(&e, t->name), i);
        t->end[i] = at;
        join_dims(&t->part[i]);
        GG_TRY(gg_data_rows(m->base, t->part[i].from, &t->rows[i], err));
        if (t->product && at != n_elements(t))
            break;
    }
    if (!t->n_parts || at != n_elements(t))
        return gg_error_set(err, GGUF_E_SHAPE, GGUF_NO_OFFSET,
                            "tensor '%s': its parts have %" PRIu64
                            " elements %s, expected %" PRIu64,
                            gg_str_esc(&e, t->name), at,
                            t->product ? "each" : "together", n_elements(t));
    return GGUF_OK;
}

enum gguf_status gg_data_composed_init(struct gg_data_composed *m,
                                       const struct gg_data *base,
                                       struct gg_composed_tensor *tensor,
                                       size_t n,
                                       const struct gguf_allocator *allocator,
                                       struct gguf_error *err)
{
    static const struct gg_data_ops ops = { n_tensors,    tensor_info,
                                            prepare_rows, stored_bytes,
                                            input_file,   advise_pages,
                                            hold_elements };
    *m = (struct gg_data_composed){ { &ops }, base, allocator, tensor, n };
    for (size_t i = 0; i < n; i++) {
        tensor[i].rows = NULL;
        tensor[i].end = NULL;
    }
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; i < n && st == GGUF_OK; i++)
        st = make_tensor(m, &tensor[i], err);
    if (st != GGUF_OK)
        gg_data_composed_fini(m);
    return st;
}

void gg_data_composed_fini(struct gg_data_composed *m)
{
    for (size_t i = 0; i < m->n_tensors; i++) {
        gg_mem_free(m->allocator, m->tensor[i].rows);
        gg_mem_free(m->allocator, m->tensor[i].end);
    }
    m->n_tensors = 0;
}
