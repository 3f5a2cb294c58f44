/* SPDX-License-Identifier: MIT */
/* memory_rows.c - rows that sequences have in tensors, whatever their contents
 */
#include "config.h"
#include "run/memory_int.h"

#include "gguf/backend.h"

#include <string.h>

size_t gg_memory_n_tensors(const struct gg_memory *m)
{
    return m->t ? GG_MEMORY_TENSORS *
                      (size_t)gg_model_n_unrolled_layers(m->model)
                : 0;
}

struct gg_cells *gg_memory_tensor_table(const struct gg_memory *m, size_t i)
{
    return gg_memory_layer_table(
        m, (uint32_t)(i % gg_model_n_unrolled_layers(m->model)));
}

uint64_t gg_memory_row_size(const struct gg_memory *m, size_t i)
{
    const struct gg_cells *table = gg_memory_tensor_table(m, i);
    return table ? (uint64_t)m->t[i]->nb[1]
                 : gguf_tensor_size(m->t[i]) / m->n_seq;
}

enum gguf_status gg_memory_zero_rows(struct gg_memory *m,
                                     const struct gg_cells *table,
                                     uint32_t row, uint32_t n,
                                     struct gguf_error *err)
{
    for (size_t i = 0; n && i < gg_memory_n_tensors(m); i++) {
        if (!m->t[i] || gg_memory_tensor_table(m, i) != table)
            continue;
        const uint64_t size = gg_memory_row_size(m, i);
        GG_TRY(gguf_tensor_fill(m->t[i], 0, row * size, n * size, err));
    }
    return GGUF_OK;
}

/* Copy size bytes within t through host memory, piece by piece. Ranges may
 * overlap: if they move up, the last piece comes first. */
static enum gguf_status copy_bytes(struct gguf_tensor *t, uint64_t from,
                                   uint64_t to, uint64_t size, void *piece,
                                   uint64_t piece_size, struct gguf_error *err)
{
    for (uint64_t done = 0, n; done < size; done += n) {
        n = GG_MIN(size - done, piece_size);
        const uint64_t at = to > from ? size - done - n : done;
        GG_TRY(gguf_tensor_get(t, piece, from + at, n, err));
        GG_TRY(gguf_tensor_set(t, piece, to + at, n, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_memory_copy_rows(struct gg_memory *m,
                                     const struct gg_cells *table,
                                     uint32_t from, uint32_t to, uint32_t n,
                                     struct gguf_error *err)
{
    for (size_t i = 0; i < gg_memory_n_tensors(m); i++) {
        struct gguf_tensor *t = m->t[i];
        if (!t || gg_memory_tensor_table(m, i) != table)
            continue;
        const uint64_t size = gg_memory_row_size(m, i);
        char *data = t->data;
        if (gguf_buft_is_host(gguf_buffer_buft(t->buffer)))
            memmove(data + to * size, data + from * size, n * size);
        else
            GG_TRY(copy_bytes(t, from * size, to * size, n * size, m->row,
                              m->n_row * sizeof *m->row, err));
    }
    return GGUF_OK;
}
