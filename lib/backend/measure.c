/* measure.c - buffers that have a size and no memory */
#include "config.h"
#include "backend/backend.h"

#include <string.h>

static enum gguf_status set(struct gguf_buffer *b, struct gguf_tensor *t,
                            const void *src, uint64_t off, uint64_t size,
                            struct gguf_error *err)
{
    (void)b, (void)t, (void)src, (void)off, (void)size, (void)err;
    return GGUF_OK;
}

static enum gguf_status get(struct gguf_buffer *b, const struct gguf_tensor *t,
                            void *dst, uint64_t off, uint64_t size,
                            struct gguf_error *err)
{
    (void)b, (void)t, (void)off, (void)err;
    memset(dst, 0, (size_t)size);
    return GGUF_OK;
}

static enum gguf_status fill(struct gguf_buffer *b, struct gguf_tensor *t,
                             uint8_t value, uint64_t off, uint64_t size,
                             struct gguf_error *err)
{
    (void)b, (void)t, (void)value, (void)off, (void)size, (void)err;
    return GGUF_OK;
}

static enum gguf_status clear(struct gguf_buffer *b, uint8_t value,
                              struct gguf_error *err)
{
    (void)b, (void)value, (void)err;
    return GGUF_OK;
}

/* The base is only there to be counted from. */
static enum gguf_status alloc(const struct gguf_buft *buft,
                              struct gguf_buffer *b, size_t size,
                              struct gguf_error *err)
{
    (void)size, (void)err;
    gguf_buffer_set_memory(b, (void *)(uintptr_t)buft->alignment, NULL);
    return GGUF_OK;
}

static const struct gguf_buft_iface iface = {
    .struct_size = sizeof iface,
    .alloc = alloc,
    .set = set,
    .get = get,
    .memset = fill,
    .clear = clear,
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
