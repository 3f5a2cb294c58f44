/* SPDX-License-Identifier: MIT */
/* rows_apart.c - weights of interleaved types, with their rows apart */
#include "config.h"
#include "model/weight/rows_apart.h"

#include "base/mem.h"
#include "dtype/interleave.h"

/* Bytes of ne0 elements of a row of type GG_DT_..., with its header. */
static uint64_t row_size(int type, uint64_t ne0)
{
    const struct gguf_dtype_info *t = gg_dtype_by_index(type);
    return t->row_header + ne0 / t->block_len * t->block_size;
}

bool gg_rows_apart_is_needed(const struct gguf_tensor_info *t)
{
    const int type = gg_dtype_index(t->dtype);
    return t->n_elements && type >= 0 && gg_interleave_rows(type) > 1;
}

bool gg_rows_apart_is_possible(const struct gguf_file *f,
                               const struct gguf_tensor_info *t)
{
    const int type = gg_dtype_index(t->dtype);
    return !gguf_file_is_big_endian(f) && !t->size_inferred &&
           t->ne[0] % (int64_t)gg_interleave_unit(type) == 0 &&
           t->ne[1] % (int64_t)gg_interleave_rows(type) == 0;
}

uint32_t gg_rows_apart_dtype(const struct gguf_tensor_info *t)
{
    const int type = gg_dtype_index(t->dtype);
    return gg_rows_apart_is_needed(t)
               ? gg_dtype_by_index(gg_interleave_plain(type))->id
               : t->dtype;
}

uint64_t gg_rows_apart_size(const struct gguf_tensor_info *t)
{
    const uint64_t ne0 = (uint64_t)t->ne[0];
    return gg_rows_apart_is_needed(t)
               ? t->n_elements / ne0 *
                     row_size(gg_interleave_plain(gg_dtype_index(t->dtype)),
                              ne0)
               : t->size;
}

enum gguf_status gg_rows_apart_read(const struct gguf_file *f,
                                    const struct gguf_tensor_info *t,
                                    void *dst, const struct gguf_allocator *a,
                                    struct gguf_error *err)
{
    const int type = gg_dtype_index(t->dtype);
    const unsigned rows = gg_interleave_rows(type);
    const uint64_t ne0 = (uint64_t)t->ne[0];
    const uint64_t to_size = row_size(gg_interleave_plain(type), ne0);
    const size_t size = (size_t)(rows * row_size(type, ne0));
    void *group = gg_mem_alloc(a, size);
    enum gguf_status st = group ? GGUF_OK : gg_error_set_nomem(err, size);
    uint8_t *to = dst;
    for (uint64_t off = 0; off < t->size && st == GGUF_OK; off += size) {
        st = gg_file_read_tensor(f, t->index, off, size, group, err);
        for (unsigned k = 0; k < rows && st == GGUF_OK; k++, to += to_size)
            gg_interleave_take(type, group, k, 0, ne0, to);
    }
    gg_mem_free(a, group);
    gguf_file_advise_tensor(f, t->index, 0, t->size, GGUF_ADVICE_DONTNEED);
    return st;
}
