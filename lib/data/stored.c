/* SPDX-License-Identifier: MIT */
/* stored.c - elements of a stored tensor as floats */
#include "config.h"
#include "data/stored.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "dtype/byte_order.h"
#include "dtype/interleave.h"

#include <string.h>

/* Bytes of a buffer for swapped data: at least a block and a row header. */
enum { BUFFER = 4096 };

bool gg_stored_can_decode(const struct gg_codec_kern *codec, int type)
{
    return type >= 0 && codec[gg_interleave_plain(type)].decode;
}

bool gg_stored_init(struct gg_stored *s, const struct gg_codec_kern *codec,
                    uint32_t dtype, const void *data, uint64_t ne0,
                    uint64_t row_size, bool big_endian)
{
    int type = gg_dtype_index(dtype);
    if (!gg_stored_can_decode(codec, type) ||
        (big_endian && !gg_byte_order_is_known(type)))
        return false;
    *s = (struct gg_stored){ .decode = codec[gg_interleave_plain(type)].decode,
                             .data = data,
                             .type = type,
                             .rows = gg_interleave_rows(type),
                             .swap = big_endian,
                             .ne0 = ne0,
                             .row_size = row_size };
    return true;
}

uint64_t gg_stored_offset(const struct gg_stored *s, uint64_t element)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(s->type);
    if (s->rows > 1) /* first byte of the group */
        return element / s->ne0 / s->rows * s->rows * s->row_size;
    return element / s->ne0 * s->row_size + t->row_header +
           element % s->ne0 / t->block_len * t->block_size;
}

float gg_stored_scale(const struct gg_stored *s, uint64_t i)
{
    uint32_t bits = gg_bytes_load32le(s->scale + 4 * i);
    return gg_bytes_f32_from_bits(s->swap ? gg_bytes_swap32(bits) : bits);
}

/* Read n elements of one row from element at on, for types with a row header.
 * src is the first byte of the row. */
static void read_apart(const struct gg_stored *s, const uint8_t *src,
                       uint64_t at, uint64_t n, float *dst)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(s->type);
    uint8_t buf[BUFFER];
    uint64_t most = (BUFFER - t->row_header) / t->block_size;
    for (uint64_t blocks = n / t->block_len, k; blocks; blocks -= k) {
        k = GG_MIN(blocks, most);
        uint64_t off = t->row_header + at / t->block_len * t->block_size;
        size_t size = (size_t)k * t->block_size;
        memcpy(buf, src, t->row_header);
        memcpy(buf + t->row_header, src + off, size);
        if (s->swap && t->row_header)
            gg_byte_order_swap(s->type, s->row_size, 0, buf, t->row_header);
        if (s->swap)
            gg_byte_order_swap(s->type, s->row_size, off, buf + t->row_header,
                               size);
        s->decode(buf, dst, (size_t)k * t->block_len);
        at += k * t->block_len;
        dst += k * t->block_len;
    }
}

/* Read n elements of one row of a group from element at on. */
static void read_interleaved(const struct gg_stored *s, uint64_t row,
                             uint64_t at, uint64_t n, float *dst)
{
    const struct gguf_dtype_info *p =
        gg_dtype_by_index(gg_interleave_plain(s->type));
    const uint64_t unit = gg_interleave_unit(s->type);
    const uint64_t size = unit / p->block_len * p->block_size;
    const uint64_t most = (BUFFER - p->row_header) / size * unit;
    const uint8_t *group = s->data + (row - row % s->rows) * s->row_size;
    uint8_t buf[BUFFER];
    for (uint64_t k; n; n -= k, at += k, dst += k) {
        k = GG_MIN(n, most);
        gg_interleave_take(s->type, group, (unsigned)(row % s->rows), at, k,
                           buf);
        s->decode(buf, dst, (size_t)k);
    }
}

/* Multiply elements by their scales, in the order of the model's operations. */
static void apply_scale(const struct gg_stored *s, uint64_t first, uint64_t n,
                        float *x)
{
    for (uint64_t k; n; first += k, x += k, n -= k) {
        float scale = gg_stored_scale(s, first / s->per_scale);
        k = GG_MIN(n, s->per_scale - first % s->per_scale);
        for (uint64_t i = 0; i < k; i++)
            x[i] *= scale;
    }
}

void gg_stored_read(const struct gg_stored *s, uint64_t first, uint64_t n,
                    float *dst)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(s->type);
    if (!t->row_header && s->rows == 1) { /* rows are contiguous blocks */
        const uint8_t *src = s->data + first / t->block_len * t->block_size;
        if (s->swap)
            read_apart(s, src, 0, n, dst);
        else
            s->decode(src, dst, (size_t)n);
        if (s->scale)
            apply_scale(s, first, n, dst);
        return;
    }
    for (uint64_t k; n; first += k, n -= k, dst += k) {
        const uint8_t *src = s->data + first / s->ne0 * s->row_size;
        uint64_t at = first % s->ne0;
        k = GG_MIN(n, s->ne0 - at);
        if (s->rows > 1)
            read_interleaved(s, first / s->ne0, at, k, dst);
        else if (s->swap || at)
            read_apart(s, src, at, k, dst);
        else
            s->decode(src, dst, (size_t)k);
    }
}
