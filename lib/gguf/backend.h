/* SPDX-License-Identifier: MIT */
/* backend.h - memory for tensors, and running graphs
 *
 * A registry lists drivers, those that the library has and those that the
 * caller adds; a driver lists devices, a device has a type of buffer and makes
 * backends: streams of work.
 * A buffer is a block of a device's memory in which tensors are placed.
 *
 *     struct gguf_backend *cpu;
 *     struct gguf_cpu_params p = GGUF_CPU_PARAMS_INIT;
 *     p.pool = pool;
 *     gguf_cpu_backend_create(&cpu, &p, &err);              (gguf/cpu.h)
 *     gguf_galloc_create(&mem, NULL, gguf_backend_buft(cpu), &err);
 *     gguf_galloc_alloc(mem, graph, &err);        memory for inputs and nodes
 *     gguf_tensor_set(x, values, 0, gguf_tensor_size(x), &err);
 *     gguf_backend_compute(cpu, graph, &err);
 *     gguf_tensor_get(y, result, 0, gguf_tensor_size(y), &err);
 *
 * Order of destruction: graph allocators and buffers, events, backends,
 * registry or drivers. Devices, buffer types, drivers and events may be used
 * from any thread; a buffer, backend or graph allocator from one at a time.
 */
#ifndef GGUF_BACKEND_H
#define GGUF_BACKEND_H

#include <gguf/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_buft; /* a type of buffer */
struct gguf_device;
struct gguf_driver; /* registration of a kind of backend */
struct gguf_registry;
struct gguf_backend;
struct gguf_event; /* a point in the work of a backend */

/* --- buffer types --------------------------------------------------------- */

/* Ordinary memory of the process. Static, always there. Since: 0.1 */
GGUF_API const struct gguf_buft *gguf_host_buft(void);

/* The same with buffers of limited size: for devices that map no more at a
 * time, and to test programs against such limits. */
struct gguf_host_buft_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    size_t max_size;  /* bytes of the largest buffer; 0: no limit */
    size_t alignment; /* of each tensor's address, a power of two; 0:
                       * GGUF_TENSOR_ALIGN */
};
#define GGUF_HOST_BUFT_PARAMS_INIT GGUF_INIT(struct gguf_host_buft_params)
/* params NULL: the defaults. The type must outlive its buffers and whatever
 * was created with it. GGUF_E_NOMEM, GGUF_E_INVALID. Since: 0.1 */
GGUF_API enum gguf_status
gguf_host_buft_create(struct gguf_buft **out,
                      const struct gguf_host_buft_params *params,
                      struct gguf_error *err) GGUF_MUST_CHECK;
/* Only for a type from gguf_host_buft_create() or gguf_buft_create(). NULL is
 * fine. Since: 0.1 */
GGUF_API void gguf_buft_destroy(struct gguf_buft *buft);

/* Its name for people, such as "host". Owned by buft. Since: 0.1 */
GGUF_API const char *gguf_buft_name(const struct gguf_buft *buft);
/* Alignment of every tensor's address, a power of two. Since: 0.1 */
GGUF_API size_t gguf_buft_alignment(const struct gguf_buft *buft);
/* Bytes of the largest buffer; SIZE_MAX for no limit. Since: 0.1 */
GGUF_API size_t gguf_buft_max_size(const struct gguf_buft *buft);
/* Bytes that t needs in a buffer of this type, >= gguf_tensor_size(t).
 * Since: 0.1 */
GGUF_API uint64_t gguf_buft_tensor_size(const struct gguf_buft *buft,
                                        const struct gguf_tensor *t);
/* Whether the processor can reach its buffers through pointers. Since: 0.1 */
GGUF_API bool gguf_buft_is_host(const struct gguf_buft *buft);

/* --- buffers -------------------------------------------------------------- */

enum gguf_buffer_usage {
    GGUF_USAGE_ANY,
    GGUF_USAGE_WEIGHTS, /* constant while graphs run */
    GGUF_USAGE_COMPUTE  /* results and inputs of graphs */
};

/* size bytes (0 is fine) of buft's memory, not cleared. allocator NULL:
 * malloc; kept. GGUF_E_NOMEM, GGUF_E_LIMIT. Since: 0.1 */
GGUF_API enum gguf_status
gguf_buffer_create(struct gguf_buffer **out, const struct gguf_buft *buft,
                   size_t size, const struct gguf_allocator *allocator,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* A host buffer around memory that somebody else owns, such as a mapped file.
 * ptr must outlive the buffer, may have any alignment, and may be read-only if
 * nothing writes to tensors in it. Since: 0.1 */
GGUF_API enum gguf_status
gguf_buffer_create_from_host(struct gguf_buffer **out, void *ptr, size_t size,
                             const struct gguf_allocator *allocator,
                             struct gguf_error *err) GGUF_MUST_CHECK;

/* Tensors that lie in it lose their memory (their data pointers dangle).
 * NULL is fine. Since: 0.1 */
GGUF_API void gguf_buffer_destroy(struct gguf_buffer *buffer);

/* The type with which it was created. Since: 0.1 */
GGUF_API const struct gguf_buft *gguf_buffer_buft(const struct gguf_buffer *b);
/* NULL for a buffer of several parts and for one of 0 bytes. Since: 0.1 */
GGUF_API void *gguf_buffer_base(const struct gguf_buffer *buffer);
/* Bytes, of all parts together. Since: 0.1 */
GGUF_API size_t gguf_buffer_size(const struct gguf_buffer *buffer);
/* What it is used for, as set by the caller: at first GGUF_USAGE_ANY.
 * Since: 0.1 */
GGUF_API enum gguf_buffer_usage
gguf_buffer_usage(const struct gguf_buffer *buffer);
GGUF_API void gguf_buffer_set_usage(struct gguf_buffer *buffer,
                                    enum gguf_buffer_usage usage);
/* Every byte becomes value. Fails as the device does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_buffer_clear(struct gguf_buffer *buffer, uint8_t value,
                  struct gguf_error *err) GGUF_MUST_CHECK;
/* Forget what the buffer keeps about its tensors, before others are placed in
 * it. Since: 0.1 */
GGUF_API void gguf_buffer_reset(struct gguf_buffer *buffer);

/* Place t, which has no data yet, off bytes into the buffer: sets t->data and
 * t->buffer. Overlap with others is not checked. GGUF_E_INVALID (has memory
 * already, does not fit in size, alignment: host buffers around foreign memory
 * accept any). Since: 0.1 */
GGUF_API enum gguf_status
gguf_buffer_place_tensor(struct gguf_buffer *buffer, struct gguf_tensor *t,
                         uint64_t off, struct gguf_error *err) GGUF_MUST_CHECK;
/* Give a view the memory of its root, which must have some. Since: 0.1 */
GGUF_API enum gguf_status
gguf_tensor_bind_view(struct gguf_tensor *view,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Allocate every tensor of ctx that has no memory yet and is not a view,
 * packed in one buffer (one object that holds several buffers if buft has a
 * maximum size); views are bound. The caller owns *out and destroys it after
 * the last use of the tensors; a failure leaves all tensors as they were.
 * GGUF_E_NOMEM, GGUF_E_LIMIT (one tensor is too large), GGUF_E_OVERFLOW.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_ctx_alloc_tensors(struct gguf_ctx *ctx, const struct gguf_buft *buft,
                       const struct gguf_allocator *allocator,
                       struct gguf_buffer **out,
                       struct gguf_error *err) GGUF_MUST_CHECK;

/* --- data of tensors ------------------------------------------------------ */

/* Copy size bytes between the caller's memory and a tensor's, there from byte
 * off on; off + size <= gguf_tensor_size(t). Works wherever t lies; complete
 * when it returns. GGUF_E_INVALID (no memory, range). Since: 0.1 */
GGUF_API enum gguf_status
gguf_tensor_set(struct gguf_tensor *t, const void *src, uint64_t off,
                uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_tensor_get(const struct gguf_tensor *t, void *dst, uint64_t off,
                uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_tensor_fill(struct gguf_tensor *t, uint8_t value, uint64_t off,
                 uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;
/* Copy between tensors of the same layout in any two buffers: directly where
 * one side can reach the other, else through host memory. GGUF_E_SHAPE,
 * GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_tensor_copy(const struct gguf_tensor *src, struct gguf_tensor *dst,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* --- memory for a graph --------------------------------------------------- */

/* Lays the tensors of a graph into one buffer so that memory is reused: a
 * result's memory is free again when its last reader is done, unless it is an
 * output or nobody reads it (what a view that nobody reads looks at counts as
 * an output); an operation that can works in place. Tensors that have memory
 * already (weights, caches) are left alone; leaves without memory get some that
 * no node takes over before their last reader is done or, flagged as
 * GGUF_TENSOR_INPUT, at all: such a graph can be computed again as it is.
 *
 * What is in the buffer is undefined after alloc: set inputs then. */
struct gguf_galloc;

/* buft is kept. allocator NULL: malloc; kept. Since: 0.1 */
GGUF_API enum gguf_status gguf_galloc_create(
    struct gguf_galloc **out, const struct gguf_allocator *allocator,
    const struct gguf_buft *buft, struct gguf_error *err) GGUF_MUST_CHECK;

/* The same over several types of buffer: one buffer each, and one together for
 * types that are the same. Since: 0.1 */
GGUF_API enum gguf_status
gguf_galloc_create_n(struct gguf_galloc **out,
                     const struct gguf_allocator *allocator,
                     const struct gguf_buft *const *bufts, unsigned n_bufts,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Frees the buffers: tensors placed in them lose their memory. NULL is fine.
 * Since: 0.1 */
GGUF_API void gguf_galloc_destroy(struct gguf_galloc *ga);

/* Plan graph, the worst case that will come, and allocate the buffers; tensors
 * are not placed. GGUF_E_NOMEM, GGUF_E_LIMIT. Since: 0.1 */
GGUF_API enum gguf_status
gguf_galloc_reserve(struct gguf_galloc *ga, const struct gguf_graph *graph,
                    struct gguf_error *err) GGUF_MUST_CHECK;
/* The same with the number of a buffer type for each node and each leaf;
 * graphs of this structure that are placed later use it too. All other graphs
 * lie in the first type. Since: 0.1 */
GGUF_API enum gguf_status
gguf_galloc_reserve_n(struct gguf_galloc *ga, const struct gguf_graph *graph,
                      const int *node_buft, const int *leaf_buft,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Place the tensors of graph. A graph like one that was planned (same
 * operations, same sources, no tensor larger; the last four structures are
 * remembered) costs one walk; another is planned anew, and the buffers grow if
 * it does not fit. Since: 0.1 */
GGUF_API enum gguf_status
gguf_galloc_alloc(struct gguf_galloc *ga, struct gguf_graph *graph,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Bytes of the buffer of type i; 0 if an earlier type is the same.
 * Since: 0.1 */
GGUF_API size_t gguf_galloc_buffer_size(const struct gguf_galloc *ga,
                                        unsigned i);
/* How often graphs were planned so far. Since: 0.1 */
GGUF_API unsigned gguf_galloc_n_plans(const struct gguf_galloc *ga);

/* --- devices, drivers, registry ------------------------------------------- */

enum gguf_device_kind {
    GGUF_DEVICE_CPU,
    GGUF_DEVICE_GPU,
    GGUF_DEVICE_ACCEL /* works on host memory beside the processor */
};
enum gguf_device_cap {
    GGUF_DEVICE_CAP_ASYNC = 1,     /* compute may return before it is done */
    GGUF_DEVICE_CAP_HOST_BUFT = 2, /* has a buffer type in host memory */
    GGUF_DEVICE_CAP_HOST_PTR = 4,  /* buffers around host pointers */
    GGUF_DEVICE_CAP_EVENTS = 8
};

/* Its name ("CPU"), a line about it for people, its kind, and GGUF_DEVICE_...
 * caps. The texts are the device's. Since: 0.1 */
GGUF_API const char *gguf_device_name(const struct gguf_device *d);
GGUF_API const char *gguf_device_description(const struct gguf_device *d);
GGUF_API enum gguf_device_kind gguf_device_kind(const struct gguf_device *d);
GGUF_API uint32_t gguf_device_caps(const struct gguf_device *d);
/* The driver that it belongs to, or NULL. Since: 0.1 */
GGUF_API struct gguf_driver *gguf_device_driver(const struct gguf_device *d);
/* Bytes; 0 where unknown. Since: 0.1 */
GGUF_API void gguf_device_memory(const struct gguf_device *d, uint64_t *n_free,
                                 uint64_t *n_total);
/* The buffer type that it prefers to compute in. Since: 0.1 */
GGUF_API const struct gguf_buft *gguf_device_buft(const struct gguf_device *d);
/* Host memory that the device reads and writes quickly; NULL without
 * GGUF_DEVICE_CAP_HOST_BUFT. Since: 0.1 */
GGUF_API const struct gguf_buft *
gguf_device_host_buft(const struct gguf_device *d);
/* A buffer of the device around memory that somebody else owns, as
 * gguf_buffer_create_from_host. GGUF_E_UNSUPPORTED without
 * GGUF_DEVICE_CAP_HOST_PTR, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status gguf_device_create_buffer_from_host(
    struct gguf_device *d, struct gguf_buffer **out, void *ptr, size_t size,
    const struct gguf_allocator *allocator,
    struct gguf_error *err) GGUF_MUST_CHECK;
/* Whether the device can compute t (its types, shapes and sources; data is not
 * looked at), and read and write buffers of buft. Since: 0.1 */
GGUF_API bool gguf_device_supports_op(const struct gguf_device *d,
                                      const struct gguf_tensor *t);
GGUF_API bool gguf_device_supports_buft(const struct gguf_device *d,
                                        const struct gguf_buft *buft);
/* Whether it prefers to compute t although t's weights lie on another device.
 * Since: 0.1 */
GGUF_API bool gguf_device_offloads_op(const struct gguf_device *d,
                                      const struct gguf_tensor *t);
/* As many columns of a matrix product or more are summed in one order, however
 * many they are; fewer may take a shorter way, whose last bits are others. At
 * least 1. Since: 0.1 */
GGUF_API uint32_t gguf_device_min_invariant_batch(const struct gguf_device *d);
/* A backend on the device, with its defaults. Since: 0.1 */
GGUF_API enum gguf_status
gguf_device_create_backend(struct gguf_device *d, struct gguf_backend **out,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Destroys its devices too; their backends must be gone. Not for a driver that
 * was given to a registry. NULL is fine. Since: 0.1 */
GGUF_API void gguf_driver_destroy(struct gguf_driver *driver);
/* Its name and its devices; NULL if i is out of range. Since: 0.1 */
GGUF_API const char *gguf_driver_name(const struct gguf_driver *driver);
GGUF_API size_t gguf_driver_n_devices(const struct gguf_driver *driver);
GGUF_API struct gguf_device *
gguf_driver_device(const struct gguf_driver *driver, size_t i);
/* A further function of the driver by name, to be cast to the type that its
 * header gives; NULL if it has none of that name. Since: 0.1 */
typedef void gguf_any_fn(void);
GGUF_API gguf_any_fn *
gguf_driver_find_function(const struct gguf_driver *driver, const char *name);

/* A registry with the drivers that the library was built with, each with its
 * defaults: CPU (gguf/cpu.h) and, where there is a BLAS library, BLAS
 * (gguf/blas.h). allocator NULL: malloc; kept. GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_registry_create(struct gguf_registry **out,
                     const struct gguf_allocator *allocator,
                     struct gguf_error *err) GGUF_MUST_CHECK;
/* A registry without drivers. Since: 0.1 */
GGUF_API enum gguf_status
gguf_registry_create_empty(struct gguf_registry **out,
                           const struct gguf_allocator *allocator,
                           struct gguf_error *err) GGUF_MUST_CHECK;
/* Destroys the drivers in it too. NULL is fine. Since: 0.1 */
GGUF_API void gguf_registry_destroy(struct gguf_registry *r);
/* driver is given: also destroyed if adding it fails. GGUF_E_NOMEM.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_registry_add_driver(struct gguf_registry *r, struct gguf_driver *driver,
                         struct gguf_error *err) GGUF_MUST_CHECK;
/* In the order in which they were added; NULL if i is out of range.
 * Since: 0.1 */
GGUF_API size_t gguf_registry_n_drivers(const struct gguf_registry *r);
GGUF_API struct gguf_driver *
gguf_registry_driver(const struct gguf_registry *r, size_t i);
/* Devices of all drivers in that order; NULL if i is out of range.
 * Since: 0.1 */
GGUF_API size_t gguf_registry_n_devices(const struct gguf_registry *r);
GGUF_API struct gguf_device *
gguf_registry_device(const struct gguf_registry *r, size_t i);
/* By name (letter case ignored), the first of a kind, the first GPU or else
 * the first CPU; or NULL. Since: 0.1 */
GGUF_API struct gguf_device *gguf_registry_find(const struct gguf_registry *r,
                                                const char *name);
GGUF_API struct gguf_device *
gguf_registry_find_kind(const struct gguf_registry *r,
                        enum gguf_device_kind kind);
GGUF_API struct gguf_device *
gguf_registry_find_best(const struct gguf_registry *r);

/* --- backends ------------------------------------------------------------- */

/* A backend is a stream of work: what is started on it runs in the order of the
 * calls. With GGUF_DEVICE_CAP_ASYNC among the device's caps, calls that end in
 * _async return when the work is queued; what they were given (tensors, their
 * memory, the graph, the caller's bytes) must stay until a sync. Where the
 * device has nothing of the kind, the same calls do the work before they
 * return. A failure of queued work is what the next sync returns; the rest of
 * the queue is dropped then. */

/* NULL is fine. Waits for work that is under way. Since: 0.1 */
GGUF_API void gguf_backend_destroy(struct gguf_backend *backend);

/* A name for people, such as its device's. Owned by backend. Since: 0.1 */
GGUF_API const char *gguf_backend_name(const struct gguf_backend *backend);
/* Tells implementations apart: equal for all backends of a kind of driver, in
 * every process, whatever they are called. Since: 0.1 */
GGUF_API uint64_t gguf_backend_id(const struct gguf_backend *backend);
/* The device on which it works. Since: 0.1 */
GGUF_API struct gguf_device *
gguf_backend_device(const struct gguf_backend *backend);
/* The buffer type that its device prefers. Since: 0.1 */
GGUF_API const struct gguf_buft *
gguf_backend_buft(const struct gguf_backend *backend);
/* The answer of its device (gguf_device_...). Since: 0.1 */
GGUF_API bool gguf_backend_supports_op(const struct gguf_backend *backend,
                                       const struct gguf_tensor *t);
GGUF_API bool gguf_backend_supports_buft(const struct gguf_backend *backend,
                                         const struct gguf_buft *buft);
GGUF_API bool gguf_backend_offloads_op(const struct gguf_backend *backend,
                                       const struct gguf_tensor *t);

/* Compute every node of graph in order; all tensors have memory that the
 * backend can reach. When it returns, it is complete, and so is all work that
 * was started before. GGUF_E_OP (an operation that it cannot run, found out
 * before anything runs), GGUF_E_INVALID (a tensor without memory; a row number
 * out of range), GGUF_E_CANCELLED (abort callback), GGUF_E_NOMEM. After a
 * failure results are undefined. Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_compute(struct gguf_backend *backend, struct gguf_graph *graph,
                     struct gguf_error *err) GGUF_MUST_CHECK;
/* The same, but only started. Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_compute_async(struct gguf_backend *backend,
                           struct gguf_graph *graph,
                           struct gguf_error *err) GGUF_MUST_CHECK;
/* Wait for everything that was started; returns its first failure.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_sync(struct gguf_backend *backend,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* gguf_tensor_set and _get in the order of the backend's work; t lies in
 * memory that the backend can reach. GGUF_E_INVALID. Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_set_async(struct gguf_backend *backend, struct gguf_tensor *t,
                       const void *src, uint64_t off, uint64_t size,
                       struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_backend_get_async(struct gguf_backend *backend,
                       const struct gguf_tensor *t, void *dst, uint64_t off,
                       uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;
/* gguf_tensor_copy from memory of one backend to that of another (or the same)
 * in the order of both: after what was started on either so far, before what
 * is started later. GGUF_E_SHAPE, GGUF_E_INVALID, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_copy_async(struct gguf_backend *from, struct gguf_backend *to,
                        const struct gguf_tensor *src, struct gguf_tensor *dst,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* An event tells when a backend has reached the point where the event was last
 * recorded; one that was never recorded counts as past. GGUF_E_UNSUPPORTED
 * without GGUF_DEVICE_CAP_EVENTS, GGUF_E_NOMEM, GGUF_E_IO. allocator NULL:
 * malloc; kept. Since: 0.1 */
GGUF_API enum gguf_status
gguf_event_create(struct gguf_event **out, struct gguf_device *device,
                  const struct gguf_allocator *allocator,
                  struct gguf_error *err) GGUF_MUST_CHECK;
/* Waits until the event is past. NULL is fine. Since: 0.1 */
GGUF_API void gguf_event_destroy(struct gguf_event *event);
/* Record the event after all work started so far on backend, which must be of
 * the event's device. GGUF_E_INVALID (another device). Since: 0.1 */
GGUF_API enum gguf_status
gguf_event_record(struct gguf_event *event, struct gguf_backend *backend,
                  struct gguf_error *err) GGUF_MUST_CHECK;
/* What is started on backend, of any device, from now on runs when event, as
 * recorded now, is past. An asynchronous backend does the waiting, else the
 * caller. Since: 0.1 */
GGUF_API enum gguf_status
gguf_event_wait(struct gguf_event *event, struct gguf_backend *backend,
                struct gguf_error *err) GGUF_MUST_CHECK;
/* The calling thread waits. A failure is the waiting's own: whether the work
 * before it failed is not said here. Since: 0.1 */
GGUF_API enum gguf_status
gguf_event_sync(struct gguf_event *event,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* A plan: a graph prepared once and computed many times. */
struct gguf_plan;
/* graph and the addresses of its tensors must not change; graph and backend
 * must outlive the plan. Fails like gguf_backend_compute before anything runs.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_plan_create(struct gguf_plan **out, struct gguf_backend *backend,
                 struct gguf_graph *graph,
                 struct gguf_error *err) GGUF_MUST_CHECK;
/* As gguf_backend_compute and gguf_backend_compute_async; GGUF_E_INVALID if
 * the graph was changed since (gguf_graph_generation). Since: 0.1 */
GGUF_API enum gguf_status
gguf_plan_compute(struct gguf_plan *plan,
                  struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_plan_compute_async(struct gguf_plan *plan,
                        struct gguf_error *err) GGUF_MUST_CHECK;
/* How many threads compute node i of the graph, where that is known: 0 if it
 * takes no work, like a view, or i is out of range. And the largest of these
 * numbers. Since: 0.1 */
GGUF_API unsigned gguf_plan_node_threads(const struct gguf_plan *plan,
                                         size_t i);
GGUF_API unsigned gguf_plan_n_threads(const struct gguf_plan *plan);
/* Bytes of scratch memory that it uses besides the memory of tensors; 0 where
 * that is not known. Since: 0.1 */
GGUF_API size_t gguf_plan_work_size(const struct gguf_plan *plan);
/* NULL is fine. No computation of it may be queued. Since: 0.1 */
GGUF_API void gguf_plan_destroy(struct gguf_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
