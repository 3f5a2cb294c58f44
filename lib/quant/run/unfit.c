/* SPDX-License-Identifier: MIT */
/* unfit.c - weights that are not finite, or would not be in the type they
 * get */
#include "config.h"
#include "quant/run/run.h"
#include "base/compiler.h"
#include "base/str.h"
#include "quant/run/finite.h"

#include <math.h>

enum { MAX_BLOCK = 256 }; /* elements of a block that is encoded */

/* Byte of the input's file where element e of tensor i lies, or its block. */
static uint64_t file_offset(const struct gg_quant_run *r, size_t i, uint64_t e)
{
    const struct gg_job_tensor *t = gg_quant_run_any(r, i);
    const struct gguf_split_tensor *src = t->src;
    const struct gguf_dtype_info *type = gguf_dtype_find(t->pub.from);
    uint64_t ne0 = (uint64_t)t->pub.ne[0];
    if (r->jobs[0]->in.numbers)
        return GGUF_NO_OFFSET; /* it may be computed of several */
    return gguf_file_data_off(src->file) + src->info->off +
           e / ne0 * r->cuts[i].row_from + type->row_header +
           e % ne0 / type->block_len * type->block_size;
}

bool gg_quant_run_meet_nonfinite(struct gg_quant_run *r, size_t i, uint64_t no,
                                 uint64_t element, float *x, size_t n)
{
    const struct gguf_quant *q = r->jobs[0];
    const struct gguf_quant_tensor *t = &gg_quant_run_any(r, i)->pub;
    if (q->p.nonfinite == GGUF_NONFINITE_ERROR) {
        size_t k = 0;
        while (gg_quant_finite(x + k, 1))
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
        if (!gg_quant_finite(x + k, 1)) {
            first = count++ ? first : element + k;
            if (q->p.nonfinite == GGUF_NONFINITE_ZERO)
                x[k] = 0;
        }
    gg_quant_run_count_nonfinite(r, i, count, first);
    return true;
}

/* Of a block's finite elements: the place of the largest. */
static size_t find_largest(const float *x, size_t n)
{
    size_t at = 0;
    for (size_t k = 1; k < n; k++)
        if (fabsf(x[k]) > fabsf(x[at]))
            at = k;
    return at;
}

bool gg_quant_run_check_blocks(struct gg_quant_run *r, size_t k, size_t i,
                               uint64_t no, uint64_t element, const float *x,
                               size_t n, const float *weights, uint8_t *blocks)
{
    const struct gguf_quant_tensor *t = &gg_quant_run_tensor(r, k, i)->pub;
    const struct gguf_dtype_info *type = gguf_dtype_find(t->to);
    const struct gg_codec_kern *to =
        &r->jobs[k]->kern.codec[gg_dtype_index(t->to)];
    enum gguf_nonfinite what = r->jobs[0]->p.nonfinite;
    size_t len = type->block_len, ne0 = (size_t)t->ne[0];
    float back[MAX_BLOCK];
    uint64_t count = 0, first = 0;
    for (size_t at = 0; to->decode && len <= MAX_BLOCK && at < n;
         at += len, blocks += type->block_size) {
        to->decode(blocks, back, len);
        if (gg_quant_finite(back, len) || !gg_quant_finite(x + at, len))
            continue; /* weights that were not finite before are counted
                       * already */
        size_t big = at + find_largest(x + at, len);
        uint64_t e = element + big;
        if (what == GGUF_NONFINITE_ERROR) {
            struct gg_str_esc esc;
            struct gguf_error err;
            gg_error_set(&err, GGUF_E_NONFINITE, file_offset(r, i, e),
                         "tensor '%s': %g at row %" PRIu64 ", column %" PRIu64
                         " is more than %s holds",
                         gg_str_esc(&esc, gg_str_z(t->name)), (double)x[big],
                         e / ne0, e % ne0, type->name);
            gg_quant_run_fail(r, no, &err);
            return false;
        }
        first = count ? first : e;
        for (size_t b = 0; b < len; b++)
            count += !gg_quant_finite(back + b, 1);
        if (what == GGUF_NONFINITE_ZERO) {
            static const float zeros[MAX_BLOCK];
            to->encode(zeros, blocks, 1, len,
                       weights ? weights + at % ne0 : NULL);
        }
    }
    if (count)
        gg_quant_run_count_nonfinite(r, i, count, first);
    return true;
}
