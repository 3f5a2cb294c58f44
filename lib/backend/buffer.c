/* SPDX-License-Identifier: MIT */
/* buffer.c - buffer types and buffers; host memory */
#include "config.h"
#include "backend/buffer_version.h"
#include "backend/backend_int.h"
#include "base/os/os.h"
#include "base/params.h"

#include <string.h>

/* --- host memory ---------------------------------------------------------- */

static void host_free(struct gguf_buffer *b)
{
    gg_mem_free_aligned(b->allocator, b->base);
}

/* Functions of a buffer that has no memory, or memory that it must not free. */
static const struct gguf_buft_iface host_foreign = { .struct_size =
                                                         sizeof host_foreign };

static enum gguf_status host_alloc(const struct gguf_buft *buft,
                                   struct gguf_buffer *b, size_t size,
                                   struct gguf_error *err)
{
    void *p = gg_mem_alloc_aligned(b->allocator, size, buft->alignment);
    if (!p)
        return gg_error_set_nomem(err, size);
    gguf_buffer_set_memory(b, p, NULL);
    return GGUF_OK;
}

const struct gguf_buft_iface gg_backend_host_iface = {
    .struct_size = sizeof gg_backend_host_iface,
    .alloc = host_alloc,
    .free = host_free,
};

static const struct gguf_buft host_buft = { .iface = &gg_backend_host_iface,
                                            .name = "host",
                                            .alignment = GGUF_TENSOR_ALIGN,
                                            .max_size = SIZE_MAX,
                                            .is_host = true };

const struct gguf_buft *gguf_host_buft(void)
{
    return &host_buft;
}

enum gguf_status
gguf_host_buft_create(struct gguf_buft **out,
                      const struct gguf_host_buft_params *params,
                      struct gguf_error *err)
{
    struct gguf_host_buft_params p = GGUF_HOST_BUFT_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_host_buft_params", err));
    struct gguf_buft_params all = GGUF_BUFT_PARAMS_INIT;
    all.allocator = p.allocator;
    all.iface = &gg_backend_host_iface;
    all.name = host_buft.name;
    all.alignment = p.alignment;
    all.max_size = p.max_size;
    all.is_host = true;
    return gguf_buft_create(out, &all, err);
}

void gg_backend_host_memory(const struct gguf_device *d, uint64_t *n_free,
                            uint64_t *n_total)
{
    (void)d;
    gg_os_memory_size(n_free, n_total);
}

/* --- buffer types --------------------------------------------------------- */

const char *gguf_buft_name(const struct gguf_buft *buft)
{
    return buft->name;
}

size_t gguf_buft_alignment(const struct gguf_buft *buft)
{
    return buft->alignment;
}

size_t gguf_buft_max_size(const struct gguf_buft *buft)
{
    return buft->max_size;
}

uint64_t gguf_buft_tensor_size(const struct gguf_buft *buft,
                               const struct gguf_tensor *t)
{
    return buft->iface->tensor_size ? buft->iface->tensor_size(buft, t)
                                    : gguf_tensor_size(t);
}

bool gguf_buft_is_host(const struct gguf_buft *buft)
{
    return buft->is_host;
}

/* --- buffers -------------------------------------------------------------- */

static void drop_memory(struct gguf_buffer *b)
{
    if (b->iface->free)
        b->iface->free(b);
    b->iface = &host_foreign;
    b->base = b->priv = NULL;
    b->size = 0;
}

/* Refuse memory that tensors cannot lie in. */
static enum gguf_status check_memory(struct gguf_buffer *b,
                                     struct gguf_error *err)
{
    const struct gguf_buft *t = b->buft;
    if (b->base && (uintptr_t)b->base % t->alignment == 0)
        return GGUF_OK;
    gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                 "buffer type '%s': alloc gave memory at address 0x%" PRIxPTR
                 ", must be a multiple of %zu and not 0",
                 t->name, (uintptr_t)b->base, t->alignment);
    if (!b->base && !b->priv) /* alloc took nothing that free could know */
        b->iface = &host_foreign;
    drop_memory(b);
    return GGUF_E_INVALID;
}

static enum gguf_status get_memory(struct gguf_buffer *b, size_t size,
                                   struct gguf_error *err)
{
    const struct gguf_buft *t = b->buft;
    if (size > t->max_size)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "a buffer of %zu bytes: the limit of '%s' is %zu",
                            size, t->name, t->max_size);
    b->iface = &host_foreign;
    b->base = b->priv = NULL;
    b->size = 0;
    if (!size)
        return GGUF_OK;
    GG_TRY(t->iface->alloc(t, b, size, err));
    b->iface = t->iface;
    b->size = size;
    return check_memory(b, err);
}

enum gguf_status gguf_buffer_create(struct gguf_buffer **out,
                                    const struct gguf_buft *buft, size_t size,
                                    const struct gguf_allocator *allocator,
                                    struct gguf_error *err)
{
    *out = NULL;
    struct gguf_buffer *b = gg_mem_alloc(allocator, sizeof *b);
    if (!b)
        return gg_error_set_nomem(err, sizeof *b);
    *b = (struct gguf_buffer){ .buft = buft, .allocator = allocator };
    enum gguf_status st = get_memory(b, size, err);
    if (st != GGUF_OK)
        gg_mem_free(allocator, b);
    else
        *out = b;
    return st;
}

/* A copy of proto, which is around memory that is there. */
static enum gguf_status wrap_buffer(struct gguf_buffer **out,
                                    const struct gguf_buffer *proto,
                                    struct gguf_error *err)
{
    *out = NULL;
    if (!proto->base && proto->size)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a buffer around a null pointer");
    struct gguf_buffer *b = gg_mem_alloc(proto->allocator, sizeof *b);
    if (!b)
        return gg_error_set_nomem(err, sizeof *b);
    *b = *proto;
    b->foreign = true;
    *out = b;
    return GGUF_OK;
}

enum gguf_status
gguf_buffer_create_from_host(struct gguf_buffer **out, void *ptr, size_t size,
                             const struct gguf_allocator *allocator,
                             struct gguf_error *err)
{
    const struct gguf_buffer proto = { .iface = &host_foreign,
                                       .buft = &host_buft,
                                       .allocator = allocator,
                                       .base = ptr,
                                       .size = size };
    return wrap_buffer(out, &proto, err);
}

enum gguf_status gguf_buffer_wrap(struct gguf_buffer **out,
                                  const struct gguf_buft *buft, void *base,
                                  size_t size, void *priv,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err)
{
    const struct gguf_buffer proto = { .iface = buft->iface,
                                       .buft = buft,
                                       .allocator = allocator,
                                       .base = base,
                                       .size = size,
                                       .priv = priv };
    return wrap_buffer(out, &proto, err);
}

enum gguf_status gg_buffer_resize(struct gguf_buffer *b, size_t size,
                                  struct gguf_error *err)
{
    gg_buffer_version_change(b);
    drop_memory(b);
    return get_memory(b, size, err);
}

void gguf_buffer_destroy(struct gguf_buffer *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->n_parts; i++)
        gguf_buffer_destroy(b->parts[i]);
    gg_buffer_version_end(b);
    gg_mem_free(b->allocator, b->parts);
    drop_memory(b);
    gg_mem_free(b->allocator, b);
}

enum gguf_status gg_buffer_join(struct gguf_buffer **out,
                                struct gguf_buffer **parts, size_t n,
                                const struct gguf_allocator *allocator,
                                struct gguf_error *err)
{
    *out = NULL;
    struct gguf_buffer *b = gg_mem_alloc(allocator, sizeof *b);
    struct gguf_buffer **list = gg_mem_alloc_zero(allocator, n, sizeof *list);
    if (!b || !list) {
        gg_mem_free(allocator, b);
        gg_mem_free(allocator, list);
        return gg_error_set_nomem(err, n * sizeof *list);
    }
    *b = (struct gguf_buffer){ .iface = &host_foreign,
                               .buft = parts[0]->buft,
                               .allocator = allocator,
                               .parts = list,
                               .n_parts = n };
    for (size_t i = 0; i < n; i++) {
        list[i] = parts[i];
        b->size += parts[i]->size;
    }
    *out = b;
    return GGUF_OK;
}

const struct gguf_buft *gguf_buffer_buft(const struct gguf_buffer *b)
{
    return b->buft;
}

void *gguf_buffer_base(const struct gguf_buffer *b)
{
    return b->base;
}

size_t gguf_buffer_size(const struct gguf_buffer *b)
{
    return b->size;
}

enum gguf_buffer_usage gguf_buffer_usage(const struct gguf_buffer *b)
{
    return b->usage;
}

void gguf_buffer_set_usage(struct gguf_buffer *b, enum gguf_buffer_usage usage)
{
    b->usage = usage;
    for (size_t i = 0; i < b->n_parts; i++)
        gguf_buffer_set_usage(b->parts[i], usage);
}

enum gguf_status gguf_buffer_clear(struct gguf_buffer *b, uint8_t value,
                                   struct gguf_error *err)
{
    for (size_t i = 0; i < b->n_parts; i++)
        GG_TRY(gguf_buffer_clear(b->parts[i], value, err));
    gg_buffer_version_change(b);
    if (b->iface->clear)
        return b->iface->clear(b, value, err);
    if (b->size && !b->n_parts)
        memset(b->base, value, b->size);
    return GGUF_OK;
}

void gguf_buffer_set_memory(struct gguf_buffer *b, void *base, void *priv)
{
    b->base = base;
    b->priv = priv;
}

void *gguf_buffer_priv(const struct gguf_buffer *b)
{
    return b->priv;
}

const struct gguf_allocator *gguf_buffer_allocator(const struct gguf_buffer *b)
{
    return b->allocator;
}

void gguf_buffer_reset(struct gguf_buffer *b)
{
    for (size_t i = 0; i < b->n_parts; i++)
        gguf_buffer_reset(b->parts[i]);
    if (b->iface->reset)
        b->iface->reset(b);
}

enum gguf_status gguf_buffer_place_tensor(struct gguf_buffer *b,
                                          struct gguf_tensor *t, uint64_t off,
                                          struct gguf_error *err)
{
    char name[160];
    uint64_t size = gguf_buft_tensor_size(b->buft, t);
    const char *why = NULL;
    if (t->data || t->view_src)
        why = "it has memory, or is a view";
    else if (size < gguf_tensor_size(t))
        why = "tensor_size of its buffer type is less than the tensor's size";
    else if (off > b->size || size > b->size - off)
        why = "it does not fit";
    else if (!b->foreign && off % b->buft->alignment)
        why = "the offset is not aligned";
    if (why)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "cannot place %s at byte %" PRIu64 " of a buffer of %zu: %s",
            gguf_tensor_format(t, name, sizeof name), off, b->size, why);
    t->buffer = b;
    t->data = b->base ? (char *)b->base + off : NULL;
    return b->iface->init_tensor ? b->iface->init_tensor(b, t, err) : GGUF_OK;
}

enum gguf_status gguf_tensor_bind_view(struct gguf_tensor *t,
                                       struct gguf_error *err)
{
    const struct gguf_tensor *root = t->view_src;
    char name[160];
    if (!root || (!root->data && !root->buffer))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%s: the viewed tensor has no memory",
                            gguf_tensor_format(t, name, sizeof name));
    t->buffer = root->buffer;
    t->data = root->data ? (char *)root->data + t->view_off : NULL;
    if (t->buffer && t->buffer->iface->init_tensor)
        return t->buffer->iface->init_tensor(t->buffer, t, err);
    return GGUF_OK;
}
