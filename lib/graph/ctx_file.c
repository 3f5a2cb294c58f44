/* SPDX-License-Identifier: MIT */
/* ctx_file.c - a context with the tensors of a GGUF file */
#include "config.h"
#include "base/params.h"
#include "base/str.h"
#include "dtype/byte_order.h"
#include "file/file_int.h"
#include "graph/ctx.h"

#include <string.h>

/* Does tensor i get memory of the context for its data? */
static bool is_copied(const struct gguf_file *f, size_t i,
                      enum gguf_ctx_data data)
{
    return data == GGUF_CTX_DATA_COPY ||
           (data == GGUF_CTX_DATA_MAP && !gg_file_tensor_in_place(f, i));
}

static enum gguf_status check_tensor(const struct gguf_tensor_info *t,
                                     struct gguf_error *err)
{
    struct gg_str_esc e;
    if (t->n_dims > GGUF_TENSOR_DIMS)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, t->info_off,
            "tensor '%s': %" PRIu32 " dimensions, at most %d are supported",
            gg_str_esc(&e, t->name), t->n_dims, GGUF_TENSOR_DIMS);
    if (t->size_inferred)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, t->info_off,
                            "tensor '%s': type %" PRIu32
                            " is unknown or has no known size",
                            gg_str_esc(&e, t->name), t->dtype);
    return GGUF_OK;
}

/* Check every tensor of f, and sum the bytes that they need. */
static enum gguf_status measure_tensors(const struct gguf_file *f,
                                        const struct gguf_ctx_file_params *p,
                                        size_t *size, struct gguf_error *err)
{
    uint64_t sum = p->extra_size;
    bool overflows = false;
    if (p->data == GGUF_CTX_DATA_MAP)
        GG_TRY(gg_file_require_memory(f, err));
    for (size_t i = 0; i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
        GG_TRY(check_tensor(t, err));
        overflows |= gg_ckd_add(&sum, sum, gguf_tensor_overhead());
        if (is_copied(f, i, p->data))
            overflows |= gg_ckd_add(&sum, sum, t->size) ||
                         gg_ckd_add(&sum, sum, 2 * GGUF_TENSOR_ALIGN);
    }
    if (overflows || sum > PTRDIFF_MAX)
        return gg_error_set_nomem(err, SIZE_MAX);
    *size = (size_t)sum;
    return GGUF_OK;
}

static enum gguf_status add_tensor(struct gguf_ctx *ctx,
                                   const struct gguf_file *f, size_t i,
                                   enum gguf_ctx_data data,
                                   struct gguf_error *err)
{
    const struct gguf_tensor_info *info = gguf_file_tensor(f, i);
    const bool copied = is_copied(f, i, data);
    gguf_ctx_set_no_alloc(ctx, !copied);
    struct gguf_tensor *t =
        gguf_tensor_create(ctx, info->dtype, GGUF_TENSOR_DIMS, info->ne);
    GG_TRY(gguf_ctx_status(ctx, err));
    char *name = gg_tensor_storage(t)->name;
    const size_t n = gg_str_utf8_fit(info->name.data, info->name.size,
                                     GGUF_TENSOR_NAME - 1);
    memcpy(name, info->name.data, n);
    name[n] = '\0';
    if (data == GGUF_CTX_DATA_MAP && !copied)
        t->data = (void *)(uintptr_t)gguf_file_tensor_data(f, i);
    if (!copied)
        return GGUF_OK;
    GG_TRY(gguf_file_read_tensor(f, i, 0, t->data, (size_t)info->size, err));
    if (gg_file_tensor_is_swapped(f, i))
        gg_byte_order_swap(gg_dtype_index(t->dtype), (uint64_t)t->nb[1], 0,
                           t->data, (size_t)info->size);
    return GGUF_OK;
}

enum gguf_status
gguf_ctx_create_from_file(struct gguf_ctx **out, const struct gguf_file *file,
                          const struct gguf_ctx_file_params *params,
                          struct gguf_error *err)
{
    struct gguf_ctx_file_params own = GGUF_CTX_FILE_PARAMS_INIT;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *ctx;
    *out = NULL;
    GG_TRY(
        gg_params_take(&own, sizeof own, params, "gguf_ctx_file_params", err));
    GG_TRY(gg_params_need(file, "file", err));
    if ((unsigned)own.data > GGUF_CTX_DATA_COPY)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_ctx_file_params: data is %d", own.data);
    GG_TRY(measure_tensors(file, &own, &p.mem_size, err));
    p.allocator = own.allocator;
    GG_TRY(gguf_ctx_create(&ctx, &p, err));
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; st == GGUF_OK && i < gguf_file_n_tensors(file); i++)
        st = add_tensor(ctx, file, i, own.data, err);
    if (st != GGUF_OK) {
        gguf_ctx_destroy(ctx);
        return st;
    }
    gguf_ctx_set_no_alloc(ctx, own.data != GGUF_CTX_DATA_COPY);
    *out = ctx;
    return GGUF_OK;
}
