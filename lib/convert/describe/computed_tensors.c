/* SPDX-License-Identifier: MIT */
/* computed_tensors.c - tensors that a folder lacks and its file needs, computed
 * from config.json or from other tensors
 */
#include "config.h"
#include "convert/convert_int.h"

#include "base/bytes.h"
#include "base/str.h"

enum gguf_status gg_convert_add_computed(struct gguf_convert *c,
                                         const char *name, const double *x,
                                         size_t n, struct gguf_error *err)
{
    uint8_t *bytes = gg_mem_arena_alloc(&c->arena, 4 * n);
    if (!bytes)
        return gg_error_set_nomem(err, 4 * n);
    for (size_t i = 0; i < n; i++)
        gg_bytes_store32le(bytes + 4 * i, gg_bytes_f32_bits((float)x[i]));
    return gg_safetensors_add(c->folder.weights, gg_str_z(name), bytes, n,
                              err);
}

enum gguf_status gg_convert_read_tensor(const struct gguf_convert *c,
                                        uint32_t no, float **out,
                                        struct gguf_error *err)
{
    const struct gg_data *list = &c->folder.weights->list;
    const uint64_t n = c->folder.weights->tensor[no].n_elements;
    struct gg_data_rows rows;
    *out = NULL;
    GG_TRY(gg_data_rows(list, no, &rows, err));
    if (n > SIZE_MAX / sizeof **out)
        return gg_error_set_nomem(err, SIZE_MAX);
    float *x = gg_mem_alloc(c->p.allocator, (size_t)n * sizeof *x);
    if (!x)
        return gg_error_set_nomem(err, (size_t)n * sizeof *x);
    const enum gguf_status st = gg_data_hold(list, no, 0, n, err);
    if (st != GGUF_OK) {
        gg_mem_free(c->p.allocator, x);
        return st;
    }
    gg_data_read(&rows, 0, n, x);
    gg_data_release(list, no, 0, n);
    *out = x;
    return GGUF_OK;
}
