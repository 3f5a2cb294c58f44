/* SPDX-License-Identifier: MIT */
/* backend_impl.h - the interface that a backend implements
 *
 * For programs that bring their own backend. A program that only uses backends
 * includes backend.h instead. doc/backend.md explains a complete example,
 * doc/backend.c.
 *
 * A backend consists of four kinds of objects, each made by the library from a
 * table of functions and a pointer of the backend's own (priv):
 *
 *     1  gguf_buft_create()         a buffer type
 *     2  gguf_driver_create()       a driver
 *     3  gguf_driver_add_device()   its devices, each with a buffer type
 *     4  gguf_backend_create()      a backend, in the device's create_backend
 *     5  gguf_event_wrap()          an event, in the device's create_event
 *
 * The program passes the driver to gguf_registry_add_driver(), or uses its
 * devices directly (device.h). The library's own backends are made of the same
 * tables.
 *
 * Tables and parameters begin with their size and only grow at their end. They
 * are copied when an object is made. A member is optional unless its comment
 * says "required"; the comment states the default that the library takes if the
 * member is NULL or the table is too short to have it. A table that has more
 * members than the library knows is refused (GGUF_E_INVALID): the backend would
 * wait for calls that never come.
 *
 * The library checks arguments before it calls a function: ranges lie inside
 * of tensors, tensors have memory. A function that returns a status other than
 * GGUF_OK fills err (gguf_error_set()), which may be NULL.
 *
 * Threads: functions of buffer types, drivers and devices are called from any
 * thread. Functions of one buffer, backend or event are called from one thread
 * at a time, but those of several backends of a device at the same time.
 */
#ifndef GGUF_BACKEND_IMPL_H
#define GGUF_BACKEND_IMPL_H

#include <gguf/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- buffer types --------------------------------------------------------- */

/* Functions of a buffer type. set, get, fill and clear may be NULL if the
 * processor can use the address that alloc gave: the library uses memcpy and
 * memset then. off and size are bytes. */
struct gguf_buft_iface {
    size_t struct_size;

    /* Take size > 0 bytes of memory for b, and pass their address to
     * gguf_buffer_set_memory(). Required.
     *
     * Returns GGUF_OK, or a failure such as GGUF_E_NOMEM. An address that is 0
     * or not aligned as the type promises is an error: the memory is freed and
     * the buffer is not created (GGUF_E_INVALID). */
    enum gguf_status (*alloc)(const struct gguf_buft *buft,
                              struct gguf_buffer *b, size_t size,
                              struct gguf_error *err);

    /* Bytes that a tensor takes in a buffer, gguf_tensor_size() or more. A
     * tensor for which it returns less is not placed (GGUF_E_INVALID). NULL:
     * gguf_tensor_size(). */
    uint64_t (*tensor_size)(const struct gguf_buft *buft,
                            const struct gguf_tensor *t);

    /* Free the memory that alloc took for b. NULL: nothing to free. */
    void (*free)(struct gguf_buffer *b);

    /* Write size bytes at off of t. The write is done when it returns. */
    enum gguf_status (*set)(struct gguf_buffer *b, struct gguf_tensor *t,
                            const void *src, uint64_t off, uint64_t size,
                            struct gguf_error *err);

    /* Read size bytes at off of t. The read is done when it returns. */
    enum gguf_status (*get)(struct gguf_buffer *b, const struct gguf_tensor *t,
                            void *dst, uint64_t off, uint64_t size,
                            struct gguf_error *err);

    /* Set size bytes at off of t to value. */
    enum gguf_status (*fill)(struct gguf_buffer *b, struct gguf_tensor *t,
                             uint8_t value, uint64_t off, uint64_t size,
                             struct gguf_error *err);

    /* Set every byte of b to value. */
    enum gguf_status (*clear)(struct gguf_buffer *b, uint8_t value,
                              struct gguf_error *err);

    /* Copy src to dst, of the same layout. dst lies in b, src in a buffer of
     * another type that is not host memory.
     *
     * Returns GGUF_E_UNSUPPORTED if it cannot reach src: the library copies
     * through host memory then, as it does if this is NULL. */
    enum gguf_status (*copy)(struct gguf_buffer *b,
                             const struct gguf_tensor *src,
                             struct gguf_tensor *dst, struct gguf_error *err);

    /* Prepare a tensor that was placed in b, or a view of such a tensor. May
     * set t->extra. NULL: nothing to prepare. */
    enum gguf_status (*init_tensor)(struct gguf_buffer *b,
                                    struct gguf_tensor *t,
                                    struct gguf_error *err);

    /* Forget what init_tensor made: other tensors will be placed in b. NULL:
     * nothing to forget. */
    void (*reset)(struct gguf_buffer *b);
};

struct gguf_buft_params {
    size_t struct_size;

    /* Source of memory for the object. NULL: malloc. It must outlive the
     * type. */
    const struct gguf_allocator *allocator;

    /* Functions, which are copied. Required. */
    const struct gguf_buft_iface *iface;

    /* Name for people. It must outlive the type. Required. */
    const char *name;

    /* Alignment of each tensor's address in bytes, a power of two. 0:
     * GGUF_TENSOR_ALIGN. */
    size_t alignment;

    /* Bytes of the largest buffer. 0: no limit. */
    size_t max_size;

    /* The processor reads and writes buffers of the type through pointers. */
    bool is_host;

    /* Pointer of the backend's own. */
    void *priv;
};
#define GGUF_BUFT_PARAMS_INIT GGUF_INIT(struct gguf_buft_params)

/* Create a buffer type.
 *
 * out      Receives the type. NULL after a failure.
 * params   Functions and properties.
 *
 * Free *out with gguf_buft_destroy(), as a rule in the driver's destroy.
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_INVALID   A required member is missing, the alignment is not a power
 *                  of two, or the table is newer than the library.
 * GGUF_E_NOMEM     Not enough memory for the object.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_buft_create(struct gguf_buft **out, const struct gguf_buft_params *params,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* priv of the type's parameters. Since: 0.1 */
GGUF_API void *gguf_buft_priv(const struct gguf_buft *buft);

/* Give a buffer its memory. For a buffer type's alloc.
 *
 * base   Address of the first byte, aligned as the type promises. Memory
 *        without addresses may take any such number but 0: t->data is counted
 *        from it.
 * priv   Pointer of the backend's own.
 *
 * Since: 0.1 */
GGUF_API void gguf_buffer_set_memory(struct gguf_buffer *buffer, void *base,
                                     void *priv);

/* Create a buffer around memory that exists already. For a device's
 * buffer_from_host. The type's alloc is not called; its free is, when the
 * buffer is destroyed.
 *
 * out         Receives the buffer. NULL after a failure.
 * buft        Type of the buffer.
 * base        Address of the first byte as tensors see it, of any alignment.
 * size        Bytes.
 * priv        Pointer of the backend's own.
 * allocator   Source of memory for the object. NULL: malloc. It must outlive
 *             the buffer.
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_INVALID   base is NULL although size is not 0.
 * GGUF_E_NOMEM     Not enough memory for the object.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_buffer_wrap(struct gguf_buffer **out, const struct gguf_buft *buft,
                 void *base, size_t size, void *priv,
                 const struct gguf_allocator *allocator,
                 struct gguf_error *err) GGUF_MUST_CHECK;

/* priv of a buffer, from gguf_buffer_set_memory() or gguf_buffer_wrap().
 * Since: 0.1 */
GGUF_API void *gguf_buffer_priv(const struct gguf_buffer *buffer);

/* Allocator that a buffer was created with. NULL: malloc. Since: 0.1 */
GGUF_API const struct gguf_allocator *
gguf_buffer_allocator(const struct gguf_buffer *buffer);

/* --- drivers -------------------------------------------------------------- */

/* Functions of a driver. */
struct gguf_driver_iface {
    size_t struct_size;

    /* Free priv. All backends, buffers and events of the driver are gone; the
     * library frees its devices afterwards. NULL: nothing to free. */
    void (*destroy)(struct gguf_driver *driver);

    /* Function of that name, for gguf_driver_find_function(). NULL: no
     * functions. */
    gguf_any_fn *(*function)(const struct gguf_driver *driver,
                             const char *name);
};

struct gguf_driver_params {
    size_t struct_size;

    /* Source of memory for the object. NULL: malloc. It must outlive the
     * driver. */
    const struct gguf_allocator *allocator;

    /* Functions, which are copied. Required. */
    const struct gguf_driver_iface *iface;

    /* Name for people. It must outlive the driver. Required. */
    const char *name;

    /* Pointer of the backend's own. */
    void *priv;
};
#define GGUF_DRIVER_PARAMS_INIT GGUF_INIT(struct gguf_driver_params)

/* Create a driver without devices.
 *
 * out      Receives the driver. NULL after a failure.
 * params   Functions and name. After a success, destroy frees priv; after a
 *          failure the caller does.
 *
 * Free *out with gguf_driver_destroy(), or give it to a registry.
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_INVALID   A required member is missing, or the table is newer than the
 *                  library.
 * GGUF_E_NOMEM     Not enough memory for the object.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_driver_create(struct gguf_driver **out,
                   const struct gguf_driver_params *params,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* priv of the driver's parameters. Since: 0.1 */
GGUF_API void *gguf_driver_priv(const struct gguf_driver *driver);

/* --- devices -------------------------------------------------------------- */

/* Functions of a device. */
struct gguf_device_iface {
    size_t struct_size;

    /* Memory of the device in bytes, 0 where it is not known. NULL: not
     * known. */
    void (*memory)(const struct gguf_device *d, uint64_t *n_free,
                   uint64_t *n_total);

    /* Can the device compute t? Look at the operation, types, shapes, strides
     * and parameters (gguf_tensor_op_params()). Not called for views. A
     * scheduler gives nodes that it refuses to another backend. Required. */
    bool (*supports_op)(const struct gguf_device *d,
                        const struct gguf_tensor *t);

    /* Does the device read and write buffers of that type? NULL: it does if
     * they are host memory or of the device's own type. */
    bool (*supports_buft)(const struct gguf_device *d,
                          const struct gguf_buft *buft);

    /* Does the device want to compute t although the weights of t have to be
     * copied to it? NULL: no. */
    bool (*offloads_op)(const struct gguf_device *d,
                        const struct gguf_tensor *t);

    /* Number of columns from which a matrix product is batch invariant
     * (gguf_device_min_invariant_batch()). NULL: 1. */
    uint32_t (*min_invariant_batch)(const struct gguf_device *d);

    /* Create a backend with gguf_backend_create(). Required. */
    enum gguf_status (*create_backend)(struct gguf_device *d,
                                       struct gguf_backend **out,
                                       struct gguf_error *err);

    /* Buffer type in host memory, of a device with GGUF_DEVICE_CAP_HOST_BUFT.
     * NULL: gguf_host_buft(). */
    const struct gguf_buft *(*host_buft)(const struct gguf_device *d);

    /* Create a buffer around host memory, on a device with
     * GGUF_DEVICE_CAP_HOST_PTR. A device that reads buffers of its own type
     * alone makes one of that type with gguf_buffer_wrap(). NULL:
     * gguf_buffer_create_from_host(). */
    enum gguf_status (*buffer_from_host)(
        struct gguf_device *d, struct gguf_buffer **out, void *ptr,
        size_t size, const struct gguf_allocator *allocator,
        struct gguf_error *err);

    /* Create an event with gguf_event_wrap(). Required with
     * GGUF_DEVICE_CAP_EVENTS. */
    enum gguf_status (*create_event)(struct gguf_device *d,
                                     struct gguf_event **out,
                                     const struct gguf_allocator *allocator,
                                     struct gguf_error *err);
};

struct gguf_device_params {
    size_t struct_size;

    /* Functions, which are copied. Required. */
    const struct gguf_device_iface *iface;

    /* Name, such as "GPU0". It must outlive the device. Required. */
    const char *name;

    /* One line about the device for people. It must outlive the device.
     * Required. */
    const char *description;

    /* Kind of the device; 0 is GGUF_DEVICE_GPU. */
    enum gguf_device_kind kind;

    /* Capabilities, GGUF_DEVICE_CAP_... flags. */
    uint32_t caps;

    /* Buffer type in which the device computes: its own, or gguf_host_buft().
     * It must outlive the device. Required. */
    const struct gguf_buft *buft;

    /* Pointer of the backend's own. */
    void *priv;
};
#define GGUF_DEVICE_PARAMS_INIT GGUF_INIT(struct gguf_device_params)

/* Add a device to a driver, which owns it. Call this before anything uses the
 * driver.
 *
 * driver   A driver from gguf_driver_create().
 * params   Functions and properties.
 * out      Receives the device. NULL: not needed.
 *
 * GGUF_OK          The driver has the device.
 * GGUF_E_INVALID   A required member is missing, the table is newer than the
 *                  library, or driver is one of the library's own.
 * GGUF_E_NOMEM     Not enough memory for the object.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status gguf_driver_add_device(
    struct gguf_driver *driver, const struct gguf_device_params *params,
    struct gguf_device **out, struct gguf_error *err) GGUF_MUST_CHECK;

/* priv of the device's parameters. Since: 0.1 */
GGUF_API void *gguf_device_priv(const struct gguf_device *d);

/* --- backends ------------------------------------------------------------- */

/* Functions of a backend. */
struct gguf_backend_iface {
    size_t struct_size;

    /* Wait for work that is under way, and free priv. NULL: nothing to do. */
    void (*destroy)(struct gguf_backend *b);

    /* Compute the nodes of a graph. Each node is a view, or one that
     * supports_op accepts; nodes stand after their sources, and all have
     * memory. With GGUF_DEVICE_CAP_ASYNC it may return when the work is queued.
     * The message of a failure names the node (gguf_tensor_format()).
     * Required. */
    enum gguf_status (*compute)(struct gguf_backend *b,
                                struct gguf_graph *graph,
                                struct gguf_error *err);

    /* Wait for all queued work; return its first failure. Required with
     * GGUF_DEVICE_CAP_ASYNC. NULL: work is done when compute returns. */
    enum gguf_status (*sync)(struct gguf_backend *b, struct gguf_error *err);

    /* Plans: preparation that is done once for a graph that is computed many
     * times. plan_create, plan_compute and plan_destroy are all given, or all
     * NULL: then a plan is the graph itself, and compute does the work. */

    /* Prepare a graph. *plan receives a pointer of the backend's own. NULL: no
     * plans. */
    enum gguf_status (*plan_create)(struct gguf_backend *b,
                                    struct gguf_graph *graph, void **plan,
                                    struct gguf_error *err);

    /* Prepare another graph in an existing plan, and in its memory if that is
     * large enough. After a failure the plan is only destroyed. NULL: the plan
     * is destroyed and created again. */
    enum gguf_status (*plan_remake)(struct gguf_backend *b, void *plan,
                                    struct gguf_graph *graph,
                                    struct gguf_error *err);

    /* Compute the graph of a plan, in the way of compute. Required with
     * plan_create. */
    enum gguf_status (*plan_compute)(struct gguf_backend *b, void *plan,
                                     struct gguf_error *err);

    /* Free a plan. Required with plan_create. */
    void (*plan_destroy)(struct gguf_backend *b, void *plan);

    /* Number of threads that compute a node of a plan
     * (gguf_plan_node_threads()). NULL: 0. */
    unsigned (*plan_threads)(const struct gguf_backend *b, const void *plan,
                             const struct gguf_tensor *node);

    /* Bytes of scratch of a plan (gguf_plan_work_size()). NULL: 0. */
    size_t (*plan_work_size)(const struct gguf_backend *b, const void *plan);

    /* Write size bytes at off of t, in the order of b's work. NULL: a sync and
     * then the buffer's set. */
    enum gguf_status (*set_async)(struct gguf_backend *b,
                                  struct gguf_tensor *t, const void *src,
                                  uint64_t off, uint64_t size,
                                  struct gguf_error *err);

    /* Read size bytes at off of t, in the order of b's work. NULL: a sync and
     * then the buffer's get. */
    enum gguf_status (*get_async)(struct gguf_backend *b,
                                  const struct gguf_tensor *t, void *dst,
                                  uint64_t off, uint64_t size,
                                  struct gguf_error *err);

    /* Queue a copy of src, which b reaches, to dst in any memory, in the order
     * of b's work. The owner of dst waits for it by an event.
     *
     * Returns GGUF_E_UNSUPPORTED if b cannot reach dst: the library copies
     * after a sync then, as it does if this is NULL. */
    enum gguf_status (*copy_async)(struct gguf_backend *b,
                                   const struct gguf_tensor *src,
                                   struct gguf_tensor *dst,
                                   struct gguf_error *err);

    /* Record an event of b's device. Required with GGUF_DEVICE_CAP_EVENTS. */
    enum gguf_status (*event_record)(struct gguf_backend *b,
                                     struct gguf_event *e,
                                     struct gguf_error *err);

    /* Let work that is started from now on wait for an event of any device
     * (gguf_event_device()). NULL: the calling thread waits. */
    enum gguf_status (*event_wait)(struct gguf_backend *b,
                                   struct gguf_event *e,
                                   struct gguf_error *err);

    /* Bytes of b's allocator that plan_create would take for a graph whose
     * tensors may have no memory. *plan receives those of the plan, *shared
     * those that all plans of b share, as large as the largest of them needs.
     * NULL: not known, and not counted in estimates of memory
     * (gguf_session_estimate_peak_memory()). */
    void (*plan_memory)(const struct gguf_backend *b,
                        const struct gguf_graph *graph, size_t *plan,
                        size_t *shared);
};

struct gguf_backend_params {
    size_t struct_size;

    /* Source of memory for the object. NULL: malloc. It must outlive the
     * backend. */
    const struct gguf_allocator *allocator;

    /* Functions, which are copied. Required. */
    const struct gguf_backend_iface *iface;

    /* Name for people. It must outlive the backend. NULL: the device's name. */
    const char *name;

    /* Number that identifies the implementation (gguf_backend_id()): drawn at
     * random once, when it is written. Not 0. Required. */
    uint64_t id;

    /* Pointer of the backend's own. */
    void *priv;
};
#define GGUF_BACKEND_PARAMS_INIT GGUF_INIT(struct gguf_backend_params)

/* Create a backend. For a device's create_backend.
 *
 * out      Receives the backend. NULL after a failure.
 * device   Device of the backend.
 * params   Functions and name. After a success, destroy frees priv; after a
 *          failure the caller does.
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_INVALID   A required member is missing, or the table is newer than the
 *                  library.
 * GGUF_E_NOMEM     Not enough memory for the object.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_backend_create(struct gguf_backend **out, struct gguf_device *device,
                    const struct gguf_backend_params *params,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* priv of the backend's parameters. Since: 0.1 */
GGUF_API void *gguf_backend_priv(const struct gguf_backend *backend);

/* --- events --------------------------------------------------------------- */

/* Functions of an event. */
struct gguf_event_iface {
    size_t struct_size;

    /* Wait until the event is past, and free priv. NULL: nothing to do. */
    void (*destroy)(struct gguf_event *e);

    /* Let the calling thread wait until the event is past. Required. */
    enum gguf_status (*sync)(struct gguf_event *e, struct gguf_error *err);
};

/* Create an event around one of the backend's own. For a device's create_event.
 *
 * out         Receives the event. NULL after a failure.
 * device      Device of the event.
 * iface       Functions, which are copied.
 * priv        Pointer of the backend's own. After a success, destroy frees it;
 *             after a failure the caller does.
 * allocator   Source of memory for the object. NULL: malloc. It must outlive
 *             the event.
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_INVALID   iface or a required member is missing, or the table is newer
 *                  than the library.
 * GGUF_E_NOMEM     Not enough memory for the object.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_event_wrap(struct gguf_event **out, struct gguf_device *device,
                const struct gguf_event_iface *iface, void *priv,
                const struct gguf_allocator *allocator,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* priv of an event. Since: 0.1 */
GGUF_API void *gguf_event_priv(const struct gguf_event *event);

/* Device of an event, by which a backend tells its own events from others.
 * Since: 0.1 */
GGUF_API struct gguf_device *gguf_event_device(const struct gguf_event *event);

#ifdef __cplusplus
}
#endif
#endif
