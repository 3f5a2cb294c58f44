/* SPDX-License-Identifier: MIT */
/* row.c - rows of tensors of any type and stride as floats */
#include "config.h"
#include "cpu/row.h"

#include <string.h>

static const struct gg_codec_kern *codec_of(const struct gg_kern *k,
                                            const struct gguf_tensor *t)
{
    int i = gg_dtype_index(t->dtype);
    return i < 0 ? NULL : &k->codec[i];
}

/* Blocks side by side, or blocks of one element anywhere. */
static bool rows_reachable(const struct gguf_tensor *t)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    return info && (gguf_tensor_has_contiguous_rows(t) ||
                    (info->block_len == 1 && !info->row_header));
}

bool gg_row_can_load(const struct gg_kern *k, const struct gguf_tensor *t)
{
    const struct gg_codec_kern *c = codec_of(k, t);
    return c && c->decode && rows_reachable(t);
}

bool gg_row_can_store(const struct gg_kern *k, const struct gguf_tensor *t)
{
    const struct gg_codec_kern *c = codec_of(k, t);
    return c && c->encode && !(c->flags & GG_CODEC_NEEDS_WEIGHT) &&
           rows_reachable(t);
}

const float *gg_row_load(const struct gg_kern *k, const struct gguf_tensor *t,
                         const void *row, float *tmp, int64_t n)
{
    if (gg_row_is_plain(t))
        return row;
    gg_kern_decode_fn *decode = codec_of(k, t)->decode;
    if (gguf_tensor_has_contiguous_rows(t)) {
        decode(row, tmp, (size_t)n);
        return tmp;
    }
    for (int64_t i = 0; i < n; i++)
        decode((const char *)row + i * t->nb[0], &tmp[i], 1);
    return tmp;
}

void gg_row_store(const struct gg_kern *k, const struct gguf_tensor *t,
                  void *row, const float *src)
{
    if (gg_row_is_plain(t)) {
        if (src != row)
            memcpy(row, src, (size_t)t->ne[0] * sizeof *src);
        return;
    }
    gg_kern_encode_fn *encode = codec_of(k, t)->encode;
    if (gguf_tensor_has_contiguous_rows(t)) {
        encode(src, row, 1, (size_t)t->ne[0], NULL);
        return;
    }
    for (int64_t i = 0; i < t->ne[0]; i++)
        encode(&src[i], (char *)row + i * t->nb[0], 1, 1, NULL);
}

static size_t padded_size(int64_t n)
{
    return ((size_t)n * sizeof(float) + 63) & ~(size_t)63;
}

size_t gg_row_work(int64_t n, unsigned n_rows, unsigned nth)
{
    return padded_size(n) * n_rows * nth;
}

float *gg_row_tmp(const struct gg_cpu_task *task, int64_t n, unsigned n_rows,
                  unsigned i)
{
    return (float *)((char *)task->work +
                     padded_size(n) * ((size_t)task->ith * n_rows + i));
}
