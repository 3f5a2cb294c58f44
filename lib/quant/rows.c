/* rows.c - elements of tensors as floats */
#include "config.h"
#include "gguf/stats.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/compiler.h"
#include "dtype/order.h"
#include "kern/cpu.h"
#include "quant/rows.h"

#include <string.h>

/* Bytes at which other than the file's own are decoded: all of a block and a
 * row header fit in. */
enum { BUFFER = 4096 };

/* n elements of one row, from element at on, out of src, where the row begins:
 * a header of their own before each few blocks. */
static void read_apart(const struct gg_row_src *s, const uint8_t *src,
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
            gg_order_swap(s->type, s->row_size, 0, buf, t->row_header);
        if (s->swap)
            gg_order_swap(s->type, s->row_size, off, buf + t->row_header,
                          size);
        s->decode(buf, dst, (size_t)k * t->block_len);
        at += k * t->block_len;
        dst += k * t->block_len;
    }
}

bool gg_row_src_init(struct gg_row_src *s, const struct gg_codec_kern *codec,
                     const struct gguf_file *file, size_t i)
{
    const struct gguf_tensor_info *t = gguf_file_tensor(file, i);
    int type = gg_dtype_index(t->dtype);
    bool swap = gguf_file_is_big_endian(file);
    if (type < 0 || !codec[type].decode || t->size_inferred ||
        (swap && !gg_order_known(type)))
        return false;
    uint64_t ne0 = (uint64_t)t->ne[0];
    *s = (struct gg_row_src){ .decode = codec[type].decode,
                              .data = gguf_file_tensor_data(file, i),
                              .type = type,
                              .swap = swap,
                              .ne0 = ne0,
                              .row_size = t->size / (t->n_elements / ne0) };
    return true;
}

void gg_row_src_read(const struct gg_row_src *s, uint64_t first, uint64_t n,
                     float *dst)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(s->type);
    if (!t->row_header) { /* rows follow each other like blocks */
        const uint8_t *src = s->data + first / t->block_len * t->block_size;
        if (s->swap)
            read_apart(s, src, 0, n, dst);
        else
            s->decode(src, dst, (size_t)n);
        return;
    }
    for (uint64_t k; n; first += k, n -= k, dst += k) {
        const uint8_t *src = s->data + first / s->ne0 * s->row_size;
        uint64_t at = first % s->ne0;
        k = GG_MIN(n, s->ne0 - at);
        if (s->swap || at)
            read_apart(s, src, at, k, dst);
        else
            s->decode(src, dst, (size_t)k);
    }
}

/* ----------------------------------------------------- public interface --- */

struct gguf_rows {
    const struct gguf_allocator *allocator;
    struct gg_codec_kern codec[GG_N_DTYPES];
};

enum gguf_status gguf_rows_create(struct gguf_rows **out,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    *out = gg_alloc_zero(allocator, 1, sizeof **out);
    if (!*out)
        return gg_fail_nomem(err, sizeof **out);
    (*out)->allocator = allocator;
    gg_codec_kern_init((*out)->codec, gg_cpu_detect());
    return GGUF_OK;
}

void gguf_rows_destroy(struct gguf_rows *rows)
{
    if (rows)
        gg_free(rows->allocator, rows);
}

int gguf_rows_can(const struct gguf_rows *rows, uint32_t dtype)
{
    int k = gg_dtype_index(dtype);
    return k >= 0 && rows->codec[k].decode != NULL;
}

enum gguf_status gguf_rows_get(const struct gguf_rows *rows,
                               const struct gguf_file *file, size_t i,
                               uint64_t first, uint64_t n, float *dst,
                               struct gguf_error *err)
{
    const struct gguf_tensor_info *t = gguf_file_tensor(file, i);
    struct gg_esc e;
    if (!t)
        return gg_fail(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                       "there is no tensor %zu", i);
    struct gg_row_src src;
    if (!gg_row_src_init(&src, rows->codec, file, i))
        return gg_fail(err, GGUF_E_UNSUPPORTED, t->info_off,
                       "tensor '%s': type %" PRIu32 " is not decoded",
                       gg_esc(&e, t->name), t->dtype);
    const struct gguf_dtype_info *d = gg_dtype_by_index(src.type);
    if (first > t->n_elements || n > t->n_elements - first ||
        first % d->block_len || n % d->block_len)
        return gg_fail(err, GGUF_E_INVALID, t->info_off,
                       "tensor '%s': no elements %" PRIu64 " to %" PRIu64,
                       gg_esc(&e, t->name), first, first + n);
    gg_row_src_read(&src, first, n, dst);
    return GGUF_OK;
}
