/* SPDX-License-Identifier: MIT */
/* tensor_data.c - data of tensors: set, get, memset, copy */
#include "config.h"
#include "backend/buffer_version.h"
#include "backend/backend_int.h"

#include <string.h>

enum gguf_status gg_backend_tensor_check_data(const struct gguf_tensor *t,
                                              struct gguf_error *err)
{
    if (t->data || gguf_tensor_is_empty(t))
        return GGUF_OK;
    char name[160];
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "%s has no memory",
                        gguf_tensor_format(t, name, sizeof name));
}

enum gguf_status gg_backend_tensor_check_range(const struct gguf_tensor *t,
                                               uint64_t off, uint64_t size,
                                               struct gguf_error *err)
{
    uint64_t all = gguf_tensor_size(t);
    char name[160];
    if (off > all || size > all - off)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "bytes %" PRIu64 " to %" PRIu64 " of %s, which has %" PRIu64, off,
            off + size, gguf_tensor_format(t, name, sizeof name), all);
    return gg_backend_tensor_check_data(t, err);
}

enum gguf_status gguf_tensor_set(struct gguf_tensor *t, const void *src,
                                 uint64_t off, uint64_t size,
                                 struct gguf_error *err)
{
    GG_TRY(gg_backend_tensor_check_range(t, off, size, err));
    if (!size)
        return GGUF_OK;
    gg_buffer_version_change(t->buffer);
    if (t->buffer && t->buffer->iface->set)
        return t->buffer->iface->set(t->buffer, t, src, off, size, err);
    memcpy((char *)t->data + off, src, (size_t)size);
    return GGUF_OK;
}

enum gguf_status gguf_tensor_get(const struct gguf_tensor *t, void *dst,
                                 uint64_t off, uint64_t size,
                                 struct gguf_error *err)
{
    GG_TRY(gg_backend_tensor_check_range(t, off, size, err));
    if (!size)
        return GGUF_OK;
    if (t->buffer && t->buffer->iface->get)
        return t->buffer->iface->get(t->buffer, t, dst, off, size, err);
    memcpy(dst, (const char *)t->data + off, (size_t)size);
    return GGUF_OK;
}

enum gguf_status gguf_tensor_fill(struct gguf_tensor *t, uint8_t value,
                                  uint64_t off, uint64_t size,
                                  struct gguf_error *err)
{
    GG_TRY(gg_backend_tensor_check_range(t, off, size, err));
    if (!size)
        return GGUF_OK;
    gg_buffer_version_change(t->buffer);
    if (t->buffer && t->buffer->iface->fill)
        return t->buffer->iface->fill(t->buffer, t, value, off, size, err);
    memset((char *)t->data + off, value, (size_t)size);
    return GGUF_OK;
}

static bool on_host(const struct gguf_tensor *t)
{
    return !t->buffer || t->buffer->buft->is_host;
}

/* By way of host memory, in pieces. */
static enum gguf_status copy_by_host(const struct gguf_tensor *src,
                                     struct gguf_tensor *dst, uint64_t size,
                                     struct gguf_error *err)
{
    const struct gguf_allocator *a = dst->buffer->allocator;
    const size_t piece = (size_t)GG_MIN(size, UINT64_C(1) << 22);
    void *p = gg_mem_alloc(a, piece);
    if (!p)
        return gg_error_set_nomem(err, piece);
    enum gguf_status st = GGUF_OK;
    for (uint64_t at = 0; st == GGUF_OK && at < size; at += piece) {
        uint64_t n = GG_MIN(size - at, (uint64_t)piece);
        st = gguf_tensor_get(src, p, at, n, err);
        if (st == GGUF_OK)
            st = gguf_tensor_set(dst, p, at, n, err);
    }
    gg_mem_free(a, p);
    return st;
}

enum gguf_status gg_backend_tensor_check_copy(const struct gguf_tensor *src,
                                              const struct gguf_tensor *dst,
                                              struct gguf_error *err)
{
    if (!gguf_tensor_same_layout(src, dst)) {
        char a[160], b[160];
        return gg_error_set(err, GGUF_E_SHAPE, GGUF_NO_OFFSET,
                            "cannot copy %s to %s: the layouts differ",
                            gguf_tensor_format(src, a, sizeof a),
                            gguf_tensor_format(dst, b, sizeof b));
    }
    GG_TRY(gg_backend_tensor_check_data(src, err));
    return gg_backend_tensor_check_data(dst, err);
}

enum gguf_status gguf_tensor_copy(const struct gguf_tensor *src,
                                  struct gguf_tensor *dst,
                                  struct gguf_error *err)
{
    GG_TRY(gg_backend_tensor_check_copy(src, dst, err));
    uint64_t size = gguf_tensor_size(src);
    if (!size || src == dst)
        return GGUF_OK;
    gg_buffer_version_change(dst->buffer);
    if (on_host(src))
        return gguf_tensor_set(dst, src->data, 0, size, err);
    if (on_host(dst))
        return gguf_tensor_get(src, dst->data, 0, size, err);
    const struct gguf_buft_iface *i = dst->buffer->iface;
    if (i->copy) {
        const enum gguf_status st = i->copy(dst->buffer, src, dst, err);
        if (st != GGUF_E_UNSUPPORTED)
            return st;
    }
    return copy_by_host(src, dst, size, err);
}
