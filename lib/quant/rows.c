/* rows.c - elements of tensors as floats */
#include "config.h"
#include "gguf/stats.h"
#include "base/ckd.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "dtype/dtype.h"
#include "kern/codec.h"
#include "kern/cpu.h"

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
    return k >= 0 && rows->codec[k].decode && !gg_dtype_by_index(k)->row_header;
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
    if (gguf_file_is_big_endian(file))
        return gg_fail(err, GGUF_E_UNSUPPORTED, 4,
                       "data of big-endian files is not decoded");
    if (!gguf_rows_can(rows, t->dtype))
        return gg_fail(err, GGUF_E_UNSUPPORTED, t->info_off,
                       "tensor '%s': type %" PRIu32 " is not decoded",
                       gg_esc(&e, t->name), t->dtype);
    int k = gg_dtype_index(t->dtype);
    const struct gguf_dtype_info *d = gg_dtype_by_index(k);
    if (first > t->n_elements || n > t->n_elements - first ||
        first % d->block_len || n % d->block_len)
        return gg_fail(err, GGUF_E_INVALID, t->info_off,
                       "tensor '%s': no elements %" PRIu64 " to %" PRIu64,
                       gg_esc(&e, t->name), first, first + n);
    const uint8_t *src = gguf_file_tensor_data(file, i);
    rows->codec[k].decode(src + first / d->block_len * d->block_size, dst,
                          (size_t)n);
    return GGUF_OK;
}
