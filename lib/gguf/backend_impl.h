/* SPDX-License-Identifier: MIT */
/* backend_impl.h - what a backend implements
 *
 * For those who write a backend; who uses one needs backend.h alone. A driver
 * has devices, a device makes backends and has a type of buffer: each is an
 * object of the library, made here from a table of functions, with a pointer
 * of the backend's own (priv). The library's own backends are made of the same
 * tables. doc/backend.md walks through a complete one, doc/backend.c.
 *
 * Tables and parameters begin with their size and only grow at their end. They
 * are copied, so they need not be kept; what a table does not have, because it
 * is older or because the member is NULL, is what the member's comment says of
 * optional ones. One that has more than this library knows is refused
 * (GGUF_E_INVALID), as the backend would wait for calls that never come.
 * Everything is optional that does not say "required".
 *
 * Arguments are checked before a function is called. A function that returns a
 * status fills err, which may be NULL (gguf_error_set), if that is not GGUF_OK.
 *
 * Functions of devices, drivers and types of buffers are called from any
 * thread, those of a buffer or a backend from one at a time; of several
 * backends of a device at the same time.
 */
#ifndef GGUF_BACKEND_IMPL_H
#define GGUF_BACKEND_IMPL_H

#include <gguf/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- memory --------------------------------------------------------------- */

/* Of a type of buffers. set, get, memset and clear may be left out where the
 * processor can use the address that alloc gave: memcpy and memset then. off
 * and size are in bytes, and inside of the tensor. */
struct gguf_buft_iface {
    size_t struct_size;
    /* Required: memory of size > 0 bytes for b, which is told of it by
     * gguf_buffer_set_memory. GGUF_E_NOMEM, or why not. Memory at address 0, or
     * at one that is not aligned as the type is, is freed again, and the buffer
     * is not created (GGUF_E_INVALID). */
    enum gguf_status (*alloc)(const struct gguf_buft *buft,
                              struct gguf_buffer *b, size_t size,
                              struct gguf_error *err);
    /* Bytes of a tensor, if not gguf_tensor_size(). A tensor for which it
     * returns fewer is not placed (GGUF_E_INVALID). */
    uint64_t (*tensor_size)(const struct gguf_buft *buft,
                            const struct gguf_tensor *t);
    /* Free what alloc took. */
    void (*free)(struct gguf_buffer *b);
    /* Done when they return. */
    enum gguf_status (*set)(struct gguf_buffer *b, struct gguf_tensor *t,
                            const void *src, uint64_t off, uint64_t size,
                            struct gguf_error *err);
    enum gguf_status (*get)(struct gguf_buffer *b, const struct gguf_tensor *t,
                            void *dst, uint64_t off, uint64_t size,
                            struct gguf_error *err);
    /* Bytes of t, or all of b, become value. */
    enum gguf_status (*memset)(struct gguf_buffer *b, struct gguf_tensor *t,
                               uint8_t value, uint64_t off, uint64_t size,
                               struct gguf_error *err);
    enum gguf_status (*clear)(struct gguf_buffer *b, uint8_t value,
                              struct gguf_error *err);
    /* Copy src, which lies in another buffer that is not the host's, to dst in
     * b, of the same layout. GGUF_E_UNSUPPORTED: by way of host memory then, as
     * without it. */
    enum gguf_status (*copy)(struct gguf_buffer *b,
                             const struct gguf_tensor *src,
                             struct gguf_tensor *dst, struct gguf_error *err);
    /* t was placed, or is a view of what was; may set t->extra. */
    enum gguf_status (*init_tensor)(struct gguf_buffer *b,
                                    struct gguf_tensor *t,
                                    struct gguf_error *err);
    /* Forget what init_tensor made; other tensors come. */
    void (*reset)(struct gguf_buffer *b);
};

struct gguf_buft_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* of the object; NULL: malloc */
    const struct gguf_buft_iface *iface;    /* required; copied */
    const char *name;                       /* required; kept */
    size_t alignment; /* of tensors, a power of two; 0: GGUF_TENSOR_ALIGN */
    size_t max_size;  /* of one buffer, bytes; 0: no limit */
    bool is_host;     /* the processor reads and writes it by pointers */
    void *priv;       /* the backend's own */
};
#define GGUF_BUFT_PARAMS_INIT GGUF_INIT(struct gguf_buft_params)

/* Destroyed with gguf_buft_destroy, by the driver's destroy as a rule.
 * GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_buft_create(struct gguf_buft **out, const struct gguf_buft_params *params,
                 struct gguf_error *err) GGUF_MUST_CHECK;
/* What it was created with. Since: 0.1 */
GGUF_API void *gguf_buft_priv(const struct gguf_buft *buft);

/* From alloc: where the memory begins, aligned as the type is, and a pointer of
 * the backend's own. What has no address takes any number that is aligned and
 * not 0: tensor->data is counted from it. Since: 0.1 */
GGUF_API void gguf_buffer_set_memory(struct gguf_buffer *buffer, void *base,
                                     void *priv);
/* A buffer of a type around memory that is there, for a device's from_host:
 * buft's alloc is not called, its free is, when the buffer is destroyed. base
 * is where tensors see the memory begin, at any alignment, not NULL; priv is
 * the backend's own. GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_buffer_wrap(struct gguf_buffer **out, const struct gguf_buft *buft,
                 void *base, size_t size, void *priv,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;
/* What gguf_buffer_set_memory was given. Since: 0.1 */
GGUF_API void *gguf_buffer_priv(const struct gguf_buffer *buffer);
/* What buffer was created with: NULL is malloc. Since: 0.1 */
GGUF_API const struct gguf_allocator *
gguf_buffer_allocator(const struct gguf_buffer *buffer);

/* --- drivers and devices -------------------------------------------------- */

struct gguf_driver_iface {
    size_t struct_size;
    /* All backends, buffers and events are gone; the devices go after it. Free
     * priv. */
    void (*destroy)(struct gguf_driver *driver);
    /* gguf_driver_find_function. */
    gguf_any_fn *(*function)(const struct gguf_driver *driver,
                             const char *name);
};

struct gguf_driver_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* of the object; NULL: malloc */
    const struct gguf_driver_iface *iface;  /* required; copied */
    const char *name;                       /* required; kept */
    void *priv;
};
#define GGUF_DRIVER_PARAMS_INIT GGUF_INIT(struct gguf_driver_params)

/* Without devices yet. After a failure priv is still the caller's; after
 * success destroy frees it. GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_driver_create(struct gguf_driver **out,
                   const struct gguf_driver_params *params,
                   struct gguf_error *err) GGUF_MUST_CHECK;
/* What it was created with. Since: 0.1 */
GGUF_API void *gguf_driver_priv(const struct gguf_driver *driver);

struct gguf_device_iface {
    size_t struct_size;
    /* gguf_device_memory; 0 and 0 where unknown, as without it. */
    void (*memory)(const struct gguf_device *d, uint64_t *n_free,
                   uint64_t *n_total);
    /* Required: can it compute t, by its operation, types, shapes, strides and
     * parameters (gguf_tensor_op_params)? Not asked about views. What it
     * refuses a scheduler gives to another backend. */
    bool (*supports_op)(const struct gguf_device *d,
                        const struct gguf_tensor *t);
    /* Can it read and write such buffers? Without it: those of host memory and
     * those of its own type. */
    bool (*supports_buft)(const struct gguf_device *d,
                          const struct gguf_buft *buft);
    /* gguf_device_offloads_op. Without it: no. */
    bool (*offloads_op)(const struct gguf_device *d,
                        const struct gguf_tensor *t);
    /* gguf_device_min_invariant_batch. Without it: 1. */
    uint32_t (*wide)(const struct gguf_device *d);
    /* Required: a backend, by gguf_backend_create. */
    enum gguf_status (*backend)(struct gguf_device *d,
                                struct gguf_backend **out,
                                struct gguf_error *err);
    /* With GGUF_DEVICE_CAP_HOST_BUFT. Without it: gguf_host_buft(). */
    const struct gguf_buft *(*host_buft)(const struct gguf_device *d);
    /* With GGUF_DEVICE_CAP_HOST_PTR. A device that reads its own type of
     * buffers alone makes one of that type, by gguf_buffer_wrap. Without it:
     * gguf_buffer_create_from_host. */
    enum gguf_status (*from_host)(struct gguf_device *d,
                                  struct gguf_buffer **out, void *ptr,
                                  size_t size,
                                  const struct gguf_allocator *allocator,
                                  struct gguf_error *err);
    /* Required with GGUF_DEVICE_CAP_EVENTS: an event, by gguf_event_wrap. */
    enum gguf_status (*event)(struct gguf_device *d, struct gguf_event **out,
                              const struct gguf_allocator *allocator,
                              struct gguf_error *err);
};

struct gguf_device_params {
    size_t struct_size;
    const struct gguf_device_iface *iface; /* required; copied */
    const char *name, *description;        /* required; kept */
    enum gguf_device_kind kind;
    uint32_t caps;                /* GGUF_DEVICE_... */
    const struct gguf_buft *buft; /* required: what it computes in, its own or
                                     gguf_host_buft(); kept */
    void *priv;
};
#define GGUF_DEVICE_PARAMS_INIT                                               \
    {                                                                         \
        sizeof(struct gguf_device_params), NULL, NULL, NULL, GGUF_DEVICE_GPU, \
            0, NULL, NULL                                                     \
    }

/* One more device of driver, which owns it, before anybody uses the driver. out
 * may be NULL. GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status gguf_driver_add_device(
    struct gguf_driver *driver, const struct gguf_device_params *params,
    struct gguf_device **out, struct gguf_error *err) GGUF_MUST_CHECK;
/* What it was created with. Since: 0.1 */
GGUF_API void *gguf_device_priv(const struct gguf_device *d);

/* --- backends ------------------------------------------------------------- */

struct gguf_backend_iface {
    size_t struct_size;
    /* What is under way is waited for; free priv. */
    void (*destroy)(struct gguf_backend *b);
    /* Required. Every node was asked for by supports_op, or is a view, and has
     * memory, as its sources have. Nodes come after their sources. With
     * GGUF_DEVICE_CAP_ASYNC it may return when the work is queued. The message
     * of a failure names the node (gguf_tensor_format). */
    enum gguf_status (*compute)(struct gguf_backend *b,
                                struct gguf_graph *graph,
                                struct gguf_error *err);
    /* Wait for all that is queued: the first failure of it. Without it:
     * everything is done when compute returns. */
    enum gguf_status (*sync)(struct gguf_backend *b, struct gguf_error *err);

    /* Plans: what can be done once for a graph that is computed many times. All
     * of plan_create, plan_compute and plan_destroy, or none: then a plan is
     * the graph, and compute does the rest. *plan is the backend's own. */
    enum gguf_status (*plan_create)(struct gguf_backend *b,
                                    struct gguf_graph *graph, void **plan,
                                    struct gguf_error *err);
    /* Make plan that of another graph, in the memory that it has if that is
     * enough; after a failure it is only destroyed. Without it: destroyed and
     * created. */
    enum gguf_status (*plan_remake)(struct gguf_backend *b, void *plan,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err);
    /* As compute. */
    enum gguf_status (*plan_compute)(struct gguf_backend *b, void *plan,
                                     struct gguf_error *err);
    void (*plan_destroy)(struct gguf_backend *b, void *plan);
    /* gguf_plan_node_threads, gguf_plan_work_size. Without them: 0. */
    unsigned (*plan_threads)(const struct gguf_backend *b, const void *plan,
                             const struct gguf_tensor *node);
    size_t (*plan_work_size)(const struct gguf_backend *b, const void *plan);

    /* In the order of b's work. Without them: a sync, then the buffer's. */
    enum gguf_status (*set_async)(struct gguf_backend *b,
                                  struct gguf_tensor *t, const void *src,
                                  uint64_t off, uint64_t size,
                                  struct gguf_error *err);
    enum gguf_status (*get_async)(struct gguf_backend *b,
                                  const struct gguf_tensor *t, void *dst,
                                  uint64_t off, uint64_t size,
                                  struct gguf_error *err);
    /* Queue a copy of src, which b can reach, to dst anywhere, in the order of
     * b's work; the owner of dst waits for it by an event. GGUF_E_UNSUPPORTED:
     * cannot, as without it. */
    enum gguf_status (*copy_async)(struct gguf_backend *b,
                                   const struct gguf_tensor *src,
                                   struct gguf_tensor *dst,
                                   struct gguf_error *err);
    /* Required with GGUF_DEVICE_CAP_EVENTS; e is of b's device. */
    enum gguf_status (*event_record)(struct gguf_backend *b,
                                     struct gguf_event *e,
                                     struct gguf_error *err);
    /* What is started from now on waits for e, of any device
     * (gguf_event_device). Without it: the caller waits. */
    enum gguf_status (*event_wait)(struct gguf_backend *b,
                                   struct gguf_event *e,
                                   struct gguf_error *err);

    /* Bytes of b's allocator that plan_create would take for graph, whose
     * tensors may have no memory: those of the plan, and those that all plans
     * of b share, as large as the largest of them needs. Without it: not
     * known, and no part of what gguf_session_estimate_peak_memory says. */
    void (*plan_memory)(const struct gguf_backend *b,
                        const struct gguf_graph *graph, size_t *plan,
                        size_t *shared);
};

struct gguf_backend_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* of the object; NULL: malloc */
    const struct gguf_backend_iface *iface; /* required; copied */
    const char *name;                       /* NULL: the device's; kept */
    uint64_t id; /* gguf_backend_id: drawn once for an implementation, not 0 */
    void *priv;
};
#define GGUF_BACKEND_PARAMS_INIT GGUF_INIT(struct gguf_backend_params)

/* From a device's backend function. After a failure priv is still the caller's;
 * after success destroy frees it. GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_create(struct gguf_backend **out, struct gguf_device *device,
                    const struct gguf_backend_params *params,
                    struct gguf_error *err) GGUF_MUST_CHECK;
/* What it was created with. Since: 0.1 */
GGUF_API void *gguf_backend_priv(const struct gguf_backend *backend);

/* --- events --------------------------------------------------------------- */

struct gguf_event_iface {
    size_t struct_size;
    /* Waits until it is past; free priv. */
    void (*destroy)(struct gguf_event *e);
    /* Required: the calling thread waits. */
    enum gguf_status (*sync)(struct gguf_event *e, struct gguf_error *err);
};

/* From a device's event function. allocator NULL: malloc; iface is copied.
 * GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_event_wrap(struct gguf_event **out, struct gguf_device *device,
                const struct gguf_event_iface *iface, void *priv,
                const struct gguf_allocator *allocator,
                struct gguf_error *err) GGUF_MUST_CHECK;
/* What it was created with. Since: 0.1 */
GGUF_API void *gguf_event_priv(const struct gguf_event *event);
/* Where it was made: a backend tells its own from others. Since: 0.1 */
GGUF_API struct gguf_device *gguf_event_device(const struct gguf_event *event);

#ifdef __cplusplus
}
#endif
#endif
