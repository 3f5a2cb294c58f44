/* SPDX-License-Identifier: MIT */
/* measure.c - buffers that have a size and no memory, and an allocator that
 * counts */
#include "config.h"
#include "backend/backend_int.h"

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

/* ---- an allocator ---- */

/* A block's size lies before it. */
struct block {
    alignas(max_align_t) size_t size;
};

static void add_bytes(struct gg_measure *m, uint64_t size)
{
    m->now += size;
    m->most = GG_MAX(m->most, m->now);
}

static void *count_alloc(void *user, size_t size)
{
    struct gg_measure *m = user;
    struct block *b = NULL;
    if (size <= PTRDIFF_MAX - sizeof *b)
        b = gg_mem_alloc(m->under, sizeof *b + size);
    if (!b)
        return NULL;
    b->size = size;
    add_bytes(m, size);
    return b + 1;
}

static void count_free(void *user, void *ptr)
{
    struct gg_measure *m = user;
    struct block *b = (struct block *)ptr - 1;
    m->now -= b->size;
    gg_mem_free(m->under, b);
}

void gg_measure_init(struct gg_measure *m, const struct gguf_allocator *under)
{
    *m = (struct gg_measure){ .under = under };
    m->allocator =
        (struct gguf_allocator){ .struct_size = sizeof(struct gguf_allocator),
                                 .alloc = count_alloc,
                                 .free = count_free,
                                 .user = m };
}

struct gg_measure *gg_measure_find(const struct gguf_allocator *a)
{
    return a && a->alloc == count_alloc ? a->user : NULL;
}

void gg_measure_add(const struct gguf_allocator *a, uint64_t size)
{
    struct gg_measure *m = gg_measure_find(a);
    if (m)
        add_bytes(m, size);
}

void gg_measure_sub(const struct gguf_allocator *a, uint64_t size)
{
    struct gg_measure *m = gg_measure_find(a);
    if (m)
        m->now -= size;
}

void gg_measure_scratch(const struct gguf_allocator *a,
                        const struct gguf_backend *b, uint64_t size)
{
    struct gg_measure *m = gg_measure_find(a);
    unsigned i = 0;
    while (m && i < m->n_backends && m->scratch[i].backend != b)
        i++;
    if (!m || i == GG_LEN(m->scratch))
        return;
    if (i == m->n_backends)
        m->scratch[m->n_backends++].backend = b;
    if (size <= m->scratch[i].size)
        return;
    m->now -= m->scratch[i].size; /* it is freed first */
    add_bytes(m, size);
    m->scratch[i].size = size;
}

/* ---- buffers ---- */

static enum gguf_status ignore_set(struct gguf_buffer *b,
                                   struct gguf_tensor *t, const void *src,
                                   uint64_t off, uint64_t size,
                                   struct gguf_error *err)
{
    (void)b, (void)t, (void)src, (void)off, (void)size, (void)err;
    return GGUF_OK;
}

static enum gguf_status get_zeros(struct gguf_buffer *b,
                                  const struct gguf_tensor *t, void *dst,
                                  uint64_t off, uint64_t size,
                                  struct gguf_error *err)
{
    (void)b, (void)t, (void)off, (void)err;
    memset(dst, 0, (size_t)size);
    return GGUF_OK;
}

static enum gguf_status ignore_fill(struct gguf_buffer *b,
                                    struct gguf_tensor *t, uint8_t value,
                                    uint64_t off, uint64_t size,
                                    struct gguf_error *err)
{
    (void)b, (void)t, (void)value, (void)off, (void)size, (void)err;
    return GGUF_OK;
}

static enum gguf_status ignore_clear(struct gguf_buffer *b, uint8_t value,
                                     struct gguf_error *err)
{
    (void)b, (void)value, (void)err;
    return GGUF_OK;
}

/* The base is only there to be counted from. */
static enum gguf_status alloc_nothing(const struct gguf_buft *buft,
                                      struct gguf_buffer *b, size_t size,
                                      struct gguf_error *err)
{
    (void)err;
    gguf_buffer_set_memory(b, (void *)(uintptr_t)buft->alignment, NULL);
    gg_measure_add(gguf_buffer_allocator(b),
                   gg_mem_aligned_size(size, buft->alignment));
    return GGUF_OK;
}

static void free_buffer(struct gguf_buffer *b)
{
    gg_measure_sub(gguf_buffer_allocator(b),
                   gg_mem_aligned_size(gguf_buffer_size(b),
                                       gguf_buffer_buft(b)->alignment));
}

static const struct gguf_buft_iface iface = {
    .struct_size = sizeof iface,
    .alloc = alloc_nothing,
    .free = free_buffer,
    .set = ignore_set,
    .get = get_zeros,
    .fill = ignore_fill,
    .clear = ignore_clear,
};

static const struct gguf_buft measure_buft = {
    .iface = &iface,
    .name = "measure",
    .alignment = GGUF_TENSOR_ALIGN,
    .max_size = SIZE_MAX / 2,
    .is_host = true,
};

const struct gguf_buft *gg_measure_buft(void)
{
    return &measure_buft;
}

enum gguf_status gg_measure_buffer(struct gguf_buffer **out,
                                   const struct gguf_buft *buft, size_t size,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err)
{
    GG_TRY(gguf_buffer_create(out, &measure_buft, 0, allocator, err));
    (*out)->buft = buft;
    if (!size)
        return GGUF_OK;
    (*out)->iface = &iface;
    (*out)->size = size;
    return alloc_nothing(buft, *out, size, err);
}
