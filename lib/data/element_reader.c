/* SPDX-License-Identifier: MIT */
/* element_reader.c - a list whose tensors can be read from any element */
#include "config.h"
#include "data/element_reader.h"

#include "base/compiler.h"
#include "gguf/dtype.h"

#include <string.h>

enum { MOST_BLOCK = 256 }; /* elements of the largest block of all types */

struct gg_element_rows {
    struct gg_data_rows of;
    uint64_t ne0, block;
};

static const struct gg_data_elements *as_elements(const struct gg_data *d)
{
    return (const struct gg_data_elements *)d;
}

/* Read n elements of one row. */
static void read_in_row(const struct gg_element_rows *l, uint64_t first,
                        uint64_t n, float *dst)
{
    float buf[MOST_BLOCK];
    const uint64_t at = first % l->ne0 % l->block;
    if (at) {
        const uint64_t k = GG_MIN(n, l->block - at);
        gg_data_read(&l->of, first - at, l->block, buf);
        memcpy(dst, buf + at, k * sizeof *dst);
        first += k;
        dst += k;
        n -= k;
    }
    const uint64_t whole = n / l->block * l->block;
    if (whole)
        gg_data_read(&l->of, first, whole, dst);
    if (n > whole) {
        gg_data_read(&l->of, first + whole, l->block, buf);
        memcpy(dst + whole, buf, (n - whole) * sizeof *dst);
    }
}

static void read_elements(const struct gg_data_rows *r, uint64_t first,
                          uint64_t n, float *dst)
{
    const struct gg_element_rows *l = r->source;
    for (uint64_t k; n; first += k, dst += k, n -= k) {
        k = GG_MIN(n, l->ne0 - first % l->ne0);
        read_in_row(l, first, k, dst);
    }
}

static enum gguf_status prepare_rows(const struct gg_data *d, size_t i,
                                     struct gg_data_rows *out,
                                     struct gguf_error *err)
{
    (void)err;
    *out = (struct gg_data_rows){ .read = read_elements,
                                  .source = &as_elements(d)->rows[i] };
    return GGUF_OK;
}

static const uint8_t *stored_bytes(const struct gg_data *d, size_t i)
{
    return gg_data_bytes(as_elements(d)->over.base, i);
}

/* Hold the whole blocks around the elements. */
static enum gguf_status hold_elements(const struct gg_data *d, size_t i,
                                      uint64_t first, uint64_t n, bool begin,
                                      struct gguf_error *err)
{
    const struct gg_data_elements *l = as_elements(d);
    const uint64_t block = l->rows[i].block, end = first + n;
    const uint64_t low = first / block * block;
    const uint64_t high = (end + block - 1) / block * block;
    if (begin)
        return gg_data_hold(l->over.base, i, low, high - low, err);
    gg_data_release(l->over.base, i, low, high - low);
    return GGUF_OK;
}

static void advise_pages(const struct gg_data *d, size_t i, uint64_t first,
                         uint64_t n, enum gg_mapfile_advice how)
{
    gg_data_advise(as_elements(d)->over.base, i, first, n, how);
}

enum gguf_status gg_data_elements_init(struct gg_data_elements *l,
                                       const struct gg_data *base,
                                       const struct gguf_allocator *allocator,
                                       struct gguf_error *err)
{
    static const struct gg_data_ops ops = {
        .n_tensors = gg_data_overlay_n_tensors,
        .info = gg_data_overlay_info,
        .rows = prepare_rows,
        .bytes = stored_bytes,
        .advise = advise_pages,
        .hold = hold_elements,
    };
    const size_t n = gg_data_n_tensors(base);
    enum gguf_status st = GGUF_OK;
    *l = (struct gg_data_elements){ { { &ops }, base }, allocator, NULL };
    l->rows = gg_mem_alloc_zero(allocator, n + 1, sizeof *l->rows);
    if (!l->rows)
        return gg_error_set_nomem(err, n * sizeof *l->rows);
    for (size_t i = 0; i < n && st == GGUF_OK; i++) {
        struct gg_data_info t;
        gg_data_info(base, i, &t);
        const struct gguf_dtype_info *type = gguf_dtype_find(t.dtype);
        st = gg_data_rows(base, i, &l->rows[i].of, err);
        l->rows[i].ne0 = (uint64_t)t.ne[0];
        l->rows[i].block = type ? type->block_len : 1;
    }
    if (st != GGUF_OK)
        gg_data_elements_fini(l);
    return st;
}

void gg_data_elements_fini(struct gg_data_elements *l)
{
    gg_mem_free(l->allocator, l->rows);
    l->rows = NULL;
}
