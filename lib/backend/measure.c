/* measure.c - buffers that have a size and no memory */
#include "config.h"
#include "backend/backend.h"

#include <string.h>

static void set(struct gguf_buffer *b, struct gguf_tensor *t, const void *src,
                uint64_t off, uint64_t size)
{
    (void)b, (void)t, (void)src, (void)off, (void)size;
}

static void get(struct gguf_buffer *b, const struct gguf_tensor *t, void *dst,
                uint64_t off, uint64_t size)
{
    (void)b, (void)t, (void)off;
    memset(dst, 0, (size_t)size);
}

static void fill(struct gguf_buffer *b, struct gguf_tensor *t, uint8_t value,
                 uint64_t off, uint64_t size)
{
    (void)b, (void)t, (void)value, (void)off, (void)size;
}

static void clear(struct gguf_buffer *b, uint8_t value)
{
    (void)b, (void)value;
}

static const struct gg_buffer_iface iface = {
    .set = set, .get = get, .memset = fill, .clear = clear
};

/* The base is only there to be counted from. */
static enum gguf_status alloc(const struct gguf_buft *buft,
                              struct gguf_buffer *b, size_t size,
                              struct gguf_error *err)
{
    (void)size, (void)err;
    b->iface = &iface;
    b->base = (void *)(uintptr_t)buft->alignment;
    return GGUF_OK;
}

static const struct gguf_buft measure_buft = {
    .name = "measure",
    .alignment = GGUF_TENSOR_ALIGN,
    .max_size = SIZE_MAX / 2,
    .is_host = true,
    .alloc = alloc,
};

const struct gguf_buft *gg_measure_buft(void)
{
    return &measure_buft;
}
