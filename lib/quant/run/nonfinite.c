/* SPDX-License-Identifier: MIT */
/* nonfinite.c - weights that are not finite, or too large for their new type */
#include "config.h"
#include "quant/run/job_run.h"
#include "base/compiler.h"
#include "base/str.h"
#include "quant/run/finite_rows.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MAX_BLOCK = 256 }; /* elements of a block, and bytes, at most */

/* Byte of the input file with element e of tensor i, or with its block. */
static uint64_t file_offset(const struct gg_quant_run *r, size_t i, uint64_t e)
{
    const struct gg_job_tensor *t = gg_quant_run_first_tensor(r, i);
    const struct gguf_dtype_info *type = gguf_dtype_find(t->pub.from);
    uint64_t ne0 = (uint64_t)t->pub.ne[0];
    if (t->src->off == GGUF_NO_OFFSET)
        return GGUF_NO_OFFSET;
    return t->src->off + e / ne0 * r->cuts[i].row_from + type->row_header +
           e % ne0 / type->block_len * type->block_size;
}

bool gg_quant_run_handle_nonfinite(struct gg_quant_run *r, size_t i,
                                   uint64_t no, uint64_t element, float *x,
                                   size_t n)
{
    const struct gguf_quant *q = r->jobs[0];
    const struct gguf_quant_tensor *t = &gg_quant_run_first_tensor(r, i)->pub;
    if (q->p.nonfinite == GGUF_NONFINITE_ERROR) {
        size_t k = 0;
        while (gg_quant_is_finite(x + k, 1))
            k++;
        uint64_t e = element + k, ne0 = (uint64_t)t->ne[0];
        struct gg_str_esc esc;
        struct gguf_error err;
        gg_error_set(&err, GGUF_E_NONFINITE, file_offset(r, i, e),
                     "tensor '%s': %s at row %" PRIu64 ", column %" PRIu64,
                     gg_str_esc(&esc, gg_str_z(t->name)),
                     x[k] != x[k] ? "NaN" : "infinity", e / ne0, e % ne0);
        gg_quant_run_fail(r, no, &err);
        return false;
    }
    uint64_t count = 0, first = 0;
    for (size_t k = 0; k < n; k++)
        if (!gg_quant_is_finite(x + k, 1)) {
            first = count++ ? first : element + k;
            if (q->p.nonfinite == GGUF_NONFINITE_ZERO)
                x[k] = 0;
        }
    gg_quant_run_count_nonfinite(r, i, count, first);
    return true;
}

/* Index of the largest magnitude in a block of finite elements. */
static size_t find_largest(const float *x, size_t n)
{
    size_t at = 0;
    for (size_t k = 1; k < n; k++)
        if (fabsf(x[k]) > fabsf(x[at]))
            at = k;
    return at;
}

/* Count the elements x of a block that do not fit the type; back is the decoded
 * block. A block with non-finite elements counts 0, since these are counted
 * already. */
static size_t count_unfit(const float *x, const float *back, size_t n,
                          float limit)
{
    size_t count = 0;
    if (!gg_quant_is_finite(x, n))
        return 0;
    for (size_t k = 0; k < n; k++)
        count += fabsf(x[k]) >= limit || !gg_quant_is_finite(back + k, 1);
    return count;
}

static void refuse_block(struct gg_quant_run *r,
                         const struct gg_quant_run_blocks *b, size_t at,
                         const struct gguf_quant_tensor *t)
{
    const struct gguf_dtype_info *type = gguf_dtype_find(t->to);
    const uint64_t e = b->element + at, ne0 = (uint64_t)t->ne[0];
    struct gg_str_esc esc;
    struct gguf_error err;
    gg_error_set(&err, GGUF_E_NONFINITE, file_offset(r, b->tensor, e),
                 "tensor '%s': %g at row %" PRIu64 ", column %" PRIu64
                 " is too large for %s",
                 gg_str_esc(&esc, gg_str_z(t->name)), (double)b->own[at],
                 e / ne0, e % ne0, type->name);
    gg_quant_run_fail(r, b->chunk, &err);
}

/* Decode a block of a row that begins at row. */
static void decode_block(const struct gg_codec_kern *to,
                         const struct gguf_dtype_info *type,
                         const uint8_t *row, const uint8_t *block, float *back)
{
    uint8_t one[MAX_BLOCK];
    if (!type->row_header) {
        to->decode(block, back, type->block_len);
        return;
    }
    assert(type->row_header + type->block_size <= sizeof one);
    memcpy(one, row, type->row_header);
    memcpy(one + type->row_header, block, type->block_size);
    to->decode(one, back, type->block_len);
}

/* Count the elements x of a unit that do not fit: a block, or a row if the type
 * has row headers, whose scale all blocks of the row share. */
static size_t count_in_unit(const struct gg_codec_kern *to,
                            const struct gguf_dtype_info *type, const float *x,
                            const uint8_t *unit, size_t n, float limit)
{
    const uint8_t *block = unit + type->row_header;
    const size_t len = type->block_len;
    float back[MAX_BLOCK];
    size_t count = 0;
    for (size_t at = 0; at < n; at += len, block += type->block_size) {
        decode_block(to, type, unit, block, back);
        count += count_unfit(x + at, back, len, limit);
    }
    return count;
}

/* Make all elements of a unit zero. */
static void clear_unit(const struct gg_codec_kern *to,
                       const struct gguf_dtype_info *type, uint8_t *unit,
                       size_t size, const float *weights)
{
    static const float zeros[MAX_BLOCK];
    if (type->row_header) /* the scale is 0 */
        memset(unit, 0, size);
    else
        to->encode(zeros, unit, 1, type->block_len, weights);
}

bool gg_quant_run_check_blocks(struct gg_quant_run *r,
                               const struct gg_quant_run_blocks *b)
{
    const struct gg_job_tensor *jt = gg_quant_run_tensor(r, b->job, b->tensor);
    const struct gguf_quant_tensor *t = &jt->pub;
    const int dtype = gg_job_row_type(jt);
    const struct gguf_dtype_info *type = gg_dtype_by_index(dtype);
    const struct gg_codec_kern *to = &r->jobs[b->job]->kern.codec[dtype];
    const enum gguf_nonfinite what = r->jobs[0]->p.nonfinite;
    const float limit = gg_codec_max_magnitude(dtype);
    const size_t ne0 = (size_t)t->ne[0];
    const size_t n_unit = type->row_header ? ne0 : type->block_len;
    const size_t size =
        type->row_header + n_unit / type->block_len * type->block_size;
    uint8_t *unit = b->blocks;
    uint64_t count = 0, first = 0;
    if (!to->decode || type->block_len > MAX_BLOCK)
        return true;
    for (size_t at = 0; at < b->n; at += n_unit, unit += size) {
        const size_t n =
            count_in_unit(to, type, b->x + at, unit, n_unit, limit);
        if (!n)
            continue;
        const size_t big = at + find_largest(b->x + at, n_unit);
        if (what == GGUF_NONFINITE_ERROR) {
            refuse_block(r, b, big, t);
            return false;
        }
        first = count ? first : b->element + big;
        count += n;
        if (what == GGUF_NONFINITE_ZERO)
            clear_unit(to, type, unit, size,
                       b->weights ? b->weights + at % ne0 : NULL);
    }
    if (count)
        gg_quant_run_count_nonfinite(r, b->tensor, count, first);
    return true;
}
