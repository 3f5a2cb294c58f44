/* rows.c - elements of tensors as floats */
#include "config.h"
#include "gguf/stats.h"
#include "base/bytes.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/compiler.h"
#include "dtype/order.h"
#include "file/split.h"
#include "kern/cpu.h"
#include "data/rows.h"

#include <math.h>
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

uint64_t gg_row_src_offset(const struct gg_row_src *s, uint64_t element)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(s->type);
    return element / s->ne0 * s->row_size + t->row_header +
           element % s->ne0 / t->block_len * t->block_size;
}

static float scale_at(const struct gg_row_src *s, uint64_t i)
{
    uint32_t bits = gg_load32le(s->scale + 4 * i);
    return gg_f32_from_bits(s->swap ? gg_swap32(bits) : bits);
}

bool gg_scale_name(const struct gguf_tensor_info *t, const char *suffix,
                   char name[GG_SCALE_NAME])
{
    static const char weight[] = ".weight";
    size_t w = sizeof weight - 1, n = t->name.size;
    if (t->dtype != GGUF_DTYPE_NVFP4 || n < w ||
        n - w + strlen(suffix) >= GG_SCALE_NAME ||
        memcmp(t->name.data + n - w, weight, w) ||
        memchr(t->name.data, 0, n))
        return false;
    memcpy(name, t->name.data, n - w);
    strcpy(name + n - w, suffix);
    return true;
}

enum gguf_status gg_row_src_set_scale(struct gg_row_src *s,
                                      const struct gguf_tensor_info *t,
                                      const struct gguf_file *file,
                                      const struct gguf_tensor_info *scale,
                                      struct gguf_error *err)
{
    struct gg_esc e;
    uint64_t n = scale->n_elements;
    uint64_t n_mat = t->n_elements / ((uint64_t)t->ne[0] * (uint64_t)t->ne[1]);
    if (scale->dtype != GGUF_DTYPE_F32 || (n != 1 && n != n_mat))
        return gg_fail(err, GGUF_E_TENSOR, scale->info_off,
                       "tensor '%s' must be F32 of 1 or %" PRIu64
                       " elements, a scale of each matrix: it is of type "
                       "%" PRIu32 ", %" PRIu64 " elements",
                       gg_esc(&e, scale->name), n_mat, scale->dtype, n);
    s->scale = gguf_file_tensor_data(file, scale->index);
    s->per_scale = t->n_elements / n;
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(scale_at(s, i)))
            return gg_fail(err, GGUF_E_TENSOR, scale->info_off,
                           "tensor '%s': scale %" PRIu64 " is not finite",
                           gg_esc(&e, scale->name), i);
    return GGUF_OK;
}

/* As the model would: an element, then its scale. */
static void apply_scale(const struct gg_row_src *s, uint64_t first, uint64_t n,
                        float *x)
{
    for (uint64_t k; n; first += k, x += k, n -= k) {
        float scale = scale_at(s, first / s->per_scale);
        k = GG_MIN(n, s->per_scale - first % s->per_scale);
        for (uint64_t i = 0; i < k; i++)
            x[i] *= scale;
    }
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
        if (s->scale)
            apply_scale(s, first, n, dst);
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

/* The scale of tensor t, from its own file: a shard does not know what is in
 * the others. */
static enum gguf_status find_scale(struct gg_row_src *s,
                                   const struct gguf_file *file,
                                   const struct gguf_tensor_info *t,
                                   struct gguf_error *err)
{
    char name[GG_SCALE_NAME];
    struct gg_esc e;
    uint64_t count;
    if (!gg_scale_name(t, ".scale", name))
        return GGUF_OK;
    const struct gguf_tensor_info *scale = gguf_file_tensor_find(file, name);
    if (scale)
        return gg_row_src_set_scale(s, t, file, scale, err);
    const struct gguf_kv *kv =
        gguf_file_kv_find(file, gg_split_keys[GG_SPLIT_COUNT]);
    if (kv && gguf_kv_get_uint(kv, &count, NULL) == GGUF_OK && count > 1)
        return gg_fail(err, GGUF_E_UNSUPPORTED, t->info_off,
                       "tensor '%s': its scale is not in this file of %" PRIu64
                       ", it may be in another: merge them first",
                       gg_esc(&e, t->name), count);
    return GGUF_OK;
}

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
    GG_TRY(find_scale(&src, file, t, err));
    gg_row_src_read(&src, first, n, dst);
    return GGUF_OK;
}
