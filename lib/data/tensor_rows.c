/* SPDX-License-Identifier: MIT */
/* tensor_rows.c - rows of a file's tensors as floats, for programs */
#include "config.h"
#include "data/tensor_rows.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/gguf_list.h"
#include "kern/cpu_features.h"

struct gguf_rows {
    const struct gguf_allocator *allocator;
    struct gg_codec_kern codec[GG_N_DTYPES];
};

enum gguf_status gguf_rows_create(struct gguf_rows **out,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    *out = gg_mem_alloc_zero(allocator, 1, sizeof **out);
    if (!*out)
        return gg_error_set_nomem(err, sizeof **out);
    (*out)->allocator = allocator;
    gg_codec_kern_init((*out)->codec, gg_kern_cpu_detect());
    return GGUF_OK;
}

void gguf_rows_destroy(struct gguf_rows *rows)
{
    if (rows)
        gg_mem_free(rows->allocator, rows);
}

bool gguf_rows_can_decode(const struct gguf_rows *rows, uint32_t dtype)
{
    int k = gg_dtype_index(dtype);
    return gg_stored_can_decode(rows->codec, k);
}

enum gguf_status gg_data_rows_of(const struct gguf_rows *rows,
                                 const struct gguf_file *file, size_t i,
                                 struct gg_data_rows *out,
                                 struct gguf_error *err)
{
    const struct gg_source from = { .file = file };
    struct gg_data_gguf d;
    if (i >= gguf_file_n_tensors(file))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "tensor %zu does not exist", i);
    gg_data_gguf_init(&d, &from, rows->codec, true);
    return gg_data_rows(&d.list, i, out, err);
}

enum gguf_status gguf_rows_decode(const struct gguf_rows *rows,
                                  const struct gguf_file *file, size_t i,
                                  uint64_t first, uint64_t n, float *dst,
                                  struct gguf_error *err)
{
    struct gg_data_rows r;
    struct gg_str_esc e;
    GG_TRY(gg_data_rows_of(rows, file, i, &r, err));
    const struct gguf_tensor_info *t = gguf_file_tensor(file, i);
    const struct gguf_dtype_info *d = gg_dtype_by_index(r.stored.type);
    if (first > t->n_elements || n > t->n_elements - first ||
        first % d->block_len || n % d->block_len)
        return gg_error_set(err, GGUF_E_INVALID, t->info_off,
                            "tensor '%s': no elements %" PRIu64 " to %" PRIu64,
                            gg_str_esc(&e, t->name), first, first + n);
    gg_data_read(&r, first, n, dst);
    return GGUF_OK;
}
