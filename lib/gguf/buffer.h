/* SPDX-License-Identifier: MIT */
/* buffer.h - memory for tensors
 *
 * A buffer is a block of a device's memory in which tensors are placed. Its
 * buffer type ("buft", as ggml calls it) says which device's memory that is,
 * how tensors are aligned in it, and how their data is read and written.
 *
 *     struct gguf_buffer *weights;
 *     st = gguf_ctx_alloc_tensors(ctx, gguf_host_buft(), NULL, &weights, &err);
 *     gguf_buffer_set_usage(weights, GGUF_USAGE_WEIGHTS);
 *     st = gguf_tensor_set(w, values, 0, gguf_tensor_size(w), &err);
 *     ...
 *     gguf_buffer_destroy(weights);     after the last use of the tensors
 *
 * galloc.h gives memory to the results of a graph.
 *
 * Threads: buffer types may be used from any thread. A buffer, and the tensors
 * in it, belong to one thread at a time.
 */
#ifndef GGUF_BUFFER_H
#define GGUF_BUFFER_H

#include <gguf/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_buft; /* buffer type */

/* --- buffer types --------------------------------------------------------- */

/* Ordinary memory of the process. The type is static. Since: 0.1 */
GGUF_API const struct gguf_buft *gguf_host_buft(void);

/* Host memory with a limit or an alignment of its own: for a device that maps a
 * limited size at a time, and for testing a program against such limits. */
struct gguf_host_buft_params {
    size_t struct_size;

    /* Source of the memory of the type itself. NULL: malloc. It must outlive
     * the type. */
    const struct gguf_allocator *allocator;

    /* Bytes of the largest buffer. 0: no limit. */
    size_t max_size;

    /* Alignment of each tensor's address in bytes, a power of two. 0:
     * GGUF_TENSOR_ALIGN. */
    size_t alignment;
};
#define GGUF_HOST_BUFT_PARAMS_INIT GGUF_INIT(struct gguf_host_buft_params)

/* Create a type of host memory.
 *
 * out      Receives the type. NULL after a failure.
 * params   Limit and alignment. NULL: the defaults.
 *
 * Free *out with gguf_buft_destroy(), after the buffers of the type and
 * everything else that was created with it.
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_NOMEM     Not enough memory for the type.
 * GGUF_E_INVALID   alignment is not a power of two.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_host_buft_create(struct gguf_buft **out,
                      const struct gguf_host_buft_params *params,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a type from gguf_host_buft_create() or gguf_buft_create(). NULL is
 * ignored. Since: 0.1 */
GGUF_API void gguf_buft_destroy(struct gguf_buft *buft);

/* Name of a type for people, such as "host". It lives as long as the type.
 * Since: 0.1 */
GGUF_API const char *gguf_buft_name(const struct gguf_buft *buft);

/* Alignment of each tensor's address in bytes, a power of two. Since: 0.1 */
GGUF_API size_t gguf_buft_alignment(const struct gguf_buft *buft);

/* Bytes of the largest buffer. SIZE_MAX: no limit. Since: 0.1 */
GGUF_API size_t gguf_buft_max_size(const struct gguf_buft *buft);

/* Bytes that t takes in a buffer of this type: gguf_tensor_size(t) or more.
 * Since: 0.1 */
GGUF_API uint64_t gguf_buft_tensor_size(const struct gguf_buft *buft,
                                        const struct gguf_tensor *t);

/* True if the processor reads and writes buffers of this type through pointers.
 * Since: 0.1 */
GGUF_API bool gguf_buft_is_host(const struct gguf_buft *buft);

/* --- buffers -------------------------------------------------------------- */

/* Use of a buffer. Schedulers and backends look at it. */
enum gguf_buffer_usage {
    GGUF_USAGE_ANY,     /* not known */
    GGUF_USAGE_WEIGHTS, /* constant while graphs run */
    GGUF_USAGE_COMPUTE  /* inputs and results of graphs */
};

/* Create a buffer.
 *
 * out         Receives the buffer. NULL after a failure.
 * buft        Type of the buffer. It must outlive the buffer.
 * size        Bytes. 0 is allowed.
 * allocator   Source of host memory. NULL: malloc. It must outlive the buffer.
 *
 * The memory is not cleared. Free *out with gguf_buffer_destroy().
 *
 * GGUF_OK         *out is ready.
 * GGUF_E_NOMEM    The device or the process has too little memory.
 * GGUF_E_LIMIT    size is above gguf_buft_max_size().
 *
 * A buffer type of a program's own may return other statuses.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_buffer_create(struct gguf_buffer **out, const struct gguf_buft *buft,
                   size_t size, const struct gguf_allocator *allocator,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* Create a host buffer around memory that the program owns, such as a mapped
 * file.
 *
 * out         Receives the buffer. NULL after a failure.
 * ptr         size bytes of any alignment, which must outlive the buffer. They
 *             may be read-only if nothing writes to tensors in them.
 * size        Bytes.
 * allocator   Source of memory for the buffer object. NULL: malloc. It must
 *             outlive the buffer.
 *
 * Free *out with gguf_buffer_destroy(), which leaves ptr alone.
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_NOMEM     Not enough memory for the object.
 * GGUF_E_INVALID   ptr is NULL although size is not 0.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_buffer_create_from_host(struct gguf_buffer **out, void *ptr, size_t size,
                             const struct gguf_allocator *allocator,
                             struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a buffer and its memory. Tensors in it must not be used any more: their
 * data pointers dangle. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_buffer_destroy(struct gguf_buffer *buffer);

/* Type that the buffer was created with. Since: 0.1 */
GGUF_API const struct gguf_buft *
gguf_buffer_buft(const struct gguf_buffer *buffer);

/* Address of the first byte. NULL for a buffer of 0 bytes, and for a buffer
 * that gguf_ctx_alloc_tensors() made of several parts. Since: 0.1 */
GGUF_API void *gguf_buffer_base(const struct gguf_buffer *buffer);

/* Bytes of the buffer, all parts together. Since: 0.1 */
GGUF_API size_t gguf_buffer_size(const struct gguf_buffer *buffer);

/* Use of the buffer as the program set it. GGUF_USAGE_ANY in a new buffer.
 * Since: 0.1 */
GGUF_API enum gguf_buffer_usage
gguf_buffer_usage(const struct gguf_buffer *buffer);

/* Set the use of a buffer. Since: 0.1 */
GGUF_API void gguf_buffer_set_usage(struct gguf_buffer *buffer,
                                    enum gguf_buffer_usage usage);

/* Set every byte of a buffer to value. Returns GGUF_OK, or a failure of the
 * device. Since: 0.1 */
GGUF_API enum gguf_status
gguf_buffer_clear(struct gguf_buffer *buffer, uint8_t value,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Make a buffer forget its tensors. Call it before other tensors are placed in
 * the buffer: a backend may keep data about each. Since: 0.1 */
GGUF_API void gguf_buffer_reset(struct gguf_buffer *buffer);

/* --- placing tensors ------------------------------------------------------ */

/* Allocate one buffer for all tensors of a context.
 *
 * ctx         Context whose tensors to place. Tensors with memory are left
 *             alone. Views get the memory of their roots.
 * buft        Type of the buffer. It must outlive the buffer.
 * allocator   Source of host memory. NULL: malloc. It must outlive the buffer.
 * out         Receives the buffer. NULL after a failure. If the type has a
 *             maximum size, it may be one object of several parts.
 *
 * After a failure all tensors are as they were before. Free *out with
 * gguf_buffer_destroy() after the last use of the tensors.
 *
 * GGUF_OK             Every tensor has memory.
 * GGUF_E_NOMEM        The device or the process has too little memory.
 * GGUF_E_LIMIT        One tensor is larger than gguf_buft_max_size().
 * GGUF_E_OVERFLOW     The sum of all sizes does not fit in 63 bits.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_ctx_alloc_tensors(struct gguf_ctx *ctx, const struct gguf_buft *buft,
                       const struct gguf_allocator *allocator,
                       struct gguf_buffer **out,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* Place one tensor in a buffer: set its data and buffer.
 *
 * buffer   The buffer.
 * t        A tensor that has no memory and is not a view.
 * off      Bytes from the start of the buffer, a multiple of
 *          gguf_buft_alignment(). Buffers around a program's memory accept any
 *          offset.
 *
 * Overlap with other tensors is not checked.
 *
 * GGUF_OK          t lies in the buffer.
 * GGUF_E_INVALID   t has memory or is a view, off is not aligned, or t does not
 *                  fit in.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_buffer_place_tensor(struct gguf_buffer *buffer, struct gguf_tensor *t,
                         uint64_t off, struct gguf_error *err) GGUF_MUST_CHECK;

/* Set the data and buffer of a view from its root.
 *
 * GGUF_OK          view has the memory of its root.
 * GGUF_E_INVALID   view is not a view, or its root has no memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_tensor_bind_view(struct gguf_tensor *view,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* --- data of tensors ------------------------------------------------------ */

/* Copy bytes from the program's memory into a tensor, in any device's memory.
 * The copy is complete when the function returns.
 *
 * t      The tensor.
 * src    size bytes.
 * off    First byte to write, counted from the tensor's first element.
 * size   Bytes; off + size is at most gguf_tensor_size(t).
 *
 * GGUF_OK          The bytes are written.
 * GGUF_E_INVALID   t has no memory, or the range is outside of it.
 *
 * A device may return other statuses.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_tensor_set(struct gguf_tensor *t, const void *src, uint64_t off,
                uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;

/* Copy bytes of a tensor, in any device's memory, to the program's memory. The
 * copy is complete when the function returns.
 *
 * t      The tensor.
 * dst    Receives size bytes.
 * off    First byte to read, counted from the tensor's first element.
 * size   Bytes; off + size is at most gguf_tensor_size(t).
 *
 * GGUF_OK          The bytes are in dst.
 * GGUF_E_INVALID   t has no memory, or the range is outside of it.
 *
 * A device may return other statuses.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_tensor_get(const struct gguf_tensor *t, void *dst, uint64_t off,
                uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;

/* Set bytes of a tensor to one value, in any device's memory. The bytes are
 * written when the function returns.
 *
 * t       The tensor.
 * value   Value of each byte.
 * off     First byte to write, counted from the tensor's first element.
 * size    Bytes; off + size is at most gguf_tensor_size(t).
 *
 * GGUF_OK          The bytes are written.
 * GGUF_E_INVALID   t has no memory, or the range is outside of it.
 *
 * A device may return other statuses.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_tensor_fill(struct gguf_tensor *t, uint8_t value, uint64_t off,
                 uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;

/* Copy the data of one tensor to another of the same layout.
 *
 * src   Tensor to read, in any buffer.
 * dst   Tensor to write, in any buffer.
 *
 * Devices copy directly where one reaches the other's memory; otherwise the
 * copy goes through host memory. It is complete when the function returns.
 *
 * GGUF_OK          dst has the data.
 * GGUF_E_SHAPE     The types, dimensions or strides differ.
 * GGUF_E_INVALID   One of them has no memory.
 * GGUF_E_NOMEM     Not enough host memory for the way through it.
 *
 * A device may return other statuses.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_tensor_copy(const struct gguf_tensor *src, struct gguf_tensor *dst,
                 struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
