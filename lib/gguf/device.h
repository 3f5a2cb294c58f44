/* SPDX-License-Identifier: MIT */
/* device.h - devices, and the drivers that know them
 *
 * A device computes graphs: the processor, a card, a library. A driver is a
 * kind of device, such as CPU or BLAS, and lists the devices of that kind. A
 * registry lists drivers.
 *
 *     struct gguf_registry *r;
 *     struct gguf_backend *b;
 *     st = gguf_registry_create(&r, NULL, &err);
 *     struct gguf_device *d = gguf_registry_find_best(r);
 *     st = gguf_device_create_backend(d, &b, &err);
 *     ...
 *     gguf_backend_destroy(b);
 *     gguf_registry_destroy(r);
 *
 * A program that wants the processor alone needs no registry: see cpu.h.
 *
 * Threads: devices and drivers may be used from any thread, a registry from one
 * thread at a time while drivers are added.
 */
#ifndef GGUF_DEVICE_H
#define GGUF_DEVICE_H

#include <gguf/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_backend; /* backend.h */
struct gguf_device;
struct gguf_driver;
struct gguf_registry;

/* --- devices -------------------------------------------------------------- */

enum gguf_device_kind {
    GGUF_DEVICE_GPU,  /* a graphics processor */
    GGUF_DEVICE_CPU,  /* the processor */
    GGUF_DEVICE_ACCEL /* works on host memory beside the processor */
};

/* Capabilities of a device. */
enum gguf_device_cap {
    GGUF_DEVICE_CAP_ASYNC = 1,     /* computing may return before it is done */
    GGUF_DEVICE_CAP_HOST_BUFT = 2, /* has a buffer type in host memory */
    GGUF_DEVICE_CAP_HOST_PTR = 4,  /* makes buffers around host memory */
    GGUF_DEVICE_CAP_EVENTS = 8     /* has events (backend.h) */
};

/* Name of a device, such as "CPU". It lives as long as the device.
 * Since: 0.1 */
GGUF_API const char *gguf_device_name(const struct gguf_device *d);

/* One line about a device for people. It lives as long as the device.
 * Since: 0.1 */
GGUF_API const char *gguf_device_description(const struct gguf_device *d);

/* Kind of a device. Since: 0.1 */
GGUF_API enum gguf_device_kind gguf_device_kind(const struct gguf_device *d);

/* Capabilities of a device, GGUF_DEVICE_CAP_... flags. Since: 0.1 */
GGUF_API uint32_t gguf_device_caps(const struct gguf_device *d);

/* Driver that the device belongs to. Since: 0.1 */
GGUF_API struct gguf_driver *gguf_device_driver(const struct gguf_device *d);

/* Memory of a device in bytes.
 *
 * n_free    Receives the bytes that are free, 0 if that is not known.
 * n_total   Receives the bytes of all memory, 0 if that is not known.
 *
 * Since: 0.1 */
GGUF_API void gguf_device_memory(const struct gguf_device *d, uint64_t *n_free,
                                 uint64_t *n_total);

/* Buffer type in which the device prefers to compute. It lives as long as the
 * device. Since: 0.1 */
GGUF_API const struct gguf_buft *gguf_device_buft(const struct gguf_device *d);

/* Buffer type in host memory that the device reads and writes quickly. NULL for
 * a device without GGUF_DEVICE_CAP_HOST_BUFT. Since: 0.1 */
GGUF_API const struct gguf_buft *
gguf_device_host_buft(const struct gguf_device *d);

/* Create a buffer of a device around memory that the program owns, such as a
 * mapped file.
 *
 * d           The device.
 * out         Receives the buffer. NULL after a failure.
 * ptr         size bytes of any alignment, which must outlive the buffer. They
 *             may be read-only if nothing writes to tensors in them.
 * size        Bytes.
 * allocator   Source of memory for the buffer object. NULL: malloc. It must
 *             outlive the buffer.
 *
 * Free *out with gguf_buffer_destroy(), which leaves ptr alone.
 *
 * GGUF_OK              *out is ready.
 * GGUF_E_UNSUPPORTED   The device has no GGUF_DEVICE_CAP_HOST_PTR.
 * GGUF_E_NOMEM         Not enough memory for the object.
 * GGUF_E_INVALID       ptr is NULL although size is not 0.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status gguf_device_create_buffer_from_host(
    struct gguf_device *d, struct gguf_buffer **out, void *ptr, size_t size,
    const struct gguf_allocator *allocator,
    struct gguf_error *err) GGUF_MUST_CHECK;

/* True if the device can compute t: its operation, types, shapes, strides and
 * parameters. Data and memory do not count. Since: 0.1 */
GGUF_API bool gguf_device_supports_op(const struct gguf_device *d,
                                      const struct gguf_tensor *t);

/* True if the device reads and writes tensors in buffers of that type.
 * Since: 0.1 */
GGUF_API bool gguf_device_supports_buft(const struct gguf_device *d,
                                        const struct gguf_buft *buft);

/* True if the device wants to compute t although the weights of t lie in
 * another device's memory and have to be copied: schedulers ask this
 * (sched.h). Since: 0.1 */
GGUF_API bool gguf_device_offloads_op(const struct gguf_device *d,
                                      const struct gguf_tensor *t);

/* Number of columns from which a matrix product is batch invariant: a product
 * with this many columns or more has the same bits in each column however many
 * columns there are. Products with fewer may be computed in a faster way, with
 * other last bits. At least 1. Since: 0.1 */
GGUF_API uint32_t gguf_device_min_invariant_batch(const struct gguf_device *d);

/* Create a backend on a device, with the driver's parameters.
 *
 * d     The device. Its driver must outlive the backend.
 * out   Receives the backend. NULL after a failure.
 *
 * Free *out with gguf_backend_destroy().
 *
 * GGUF_OK        *out is ready.
 * GGUF_E_NOMEM   Not enough memory for the backend.
 * GGUF_E_IO      A thread could not be started.
 *
 * A driver may return other statuses.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_device_create_backend(struct gguf_device *d, struct gguf_backend **out,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* --- drivers -------------------------------------------------------------- */

/* Free a driver and its devices. Their backends, buffers and events must be
 * destroyed before. A driver in a registry must not be destroyed: the registry
 * does that. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_driver_destroy(struct gguf_driver *driver);

/* Name of a driver, such as "CPU". It lives as long as the driver.
 * Since: 0.1 */
GGUF_API const char *gguf_driver_name(const struct gguf_driver *driver);

/* Number of devices of a driver. Since: 0.1 */
GGUF_API size_t gguf_driver_n_devices(const struct gguf_driver *driver);

/* Device i of a driver. NULL if i is out of range. Since: 0.1 */
GGUF_API struct gguf_device *
gguf_driver_device(const struct gguf_driver *driver, size_t i);

/* Any function. Cast it to the type that the driver's header gives. */
typedef void gguf_any_fn(void);

/* Function that a driver has beyond those of this header, such as "set_abort"
 * of the CPU (cpu.h). NULL if it has no function of that name. Since: 0.1 */
GGUF_API gguf_any_fn *
gguf_driver_find_function(const struct gguf_driver *driver, const char *name);

/* --- registries ----------------------------------------------------------- */

/* Create a registry with the drivers that the library was built with, each with
 * its default parameters: CPU (cpu.h) and, if there is a BLAS library, BLAS
 * (blas.h).
 *
 * out         Receives the registry. NULL after a failure.
 * allocator   Source of memory. NULL: malloc. It must outlive the registry.
 *
 * Free *out with gguf_registry_destroy().
 *
 * GGUF_OK        *out is ready.
 * GGUF_E_NOMEM   Not enough memory for the registry or a driver.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_registry_create(struct gguf_registry **out,
                     const struct gguf_allocator *allocator,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Create a registry without drivers.
 *
 * out         Receives the registry. NULL after a failure.
 * allocator   Source of memory. NULL: malloc. It must outlive the registry.
 *
 * Free *out with gguf_registry_destroy().
 *
 * GGUF_OK        *out is ready.
 * GGUF_E_NOMEM   Not enough memory for the registry.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_registry_create_empty(struct gguf_registry **out,
                           const struct gguf_allocator *allocator,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a registry and the drivers in it. Backends, buffers and events of their
 * devices must be destroyed before. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_registry_destroy(struct gguf_registry *r);

/* Add a driver to a registry.
 *
 * driver   The driver, which the registry owns from now on. It is destroyed
 *          with the registry, or at once if the function fails.
 *
 * GGUF_OK        The registry lists the driver.
 * GGUF_E_NOMEM   Not enough memory for the list.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_registry_add_driver(struct gguf_registry *r, struct gguf_driver *driver,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* Number of drivers in a registry. Since: 0.1 */
GGUF_API size_t gguf_registry_n_drivers(const struct gguf_registry *r);

/* Driver i, in the order in which they were added. NULL if i is out of range.
 * Since: 0.1 */
GGUF_API struct gguf_driver *
gguf_registry_driver(const struct gguf_registry *r, size_t i);

/* Number of devices of all drivers. Since: 0.1 */
GGUF_API size_t gguf_registry_n_devices(const struct gguf_registry *r);

/* Device i of all drivers, in the order of the drivers. NULL if i is out of
 * range. Since: 0.1 */
GGUF_API struct gguf_device *
gguf_registry_device(const struct gguf_registry *r, size_t i);

/* First device of that name, letter case ignored, or NULL. Since: 0.1 */
GGUF_API struct gguf_device *gguf_registry_find(const struct gguf_registry *r,
                                                const char *name);

/* First device of that kind, or NULL. Since: 0.1 */
GGUF_API struct gguf_device *
gguf_registry_find_kind(const struct gguf_registry *r,
                        enum gguf_device_kind kind);

/* First GPU; without a GPU the first CPU; otherwise NULL. Since: 0.1 */
GGUF_API struct gguf_device *
gguf_registry_find_best(const struct gguf_registry *r);

#ifdef __cplusplus
}
#endif
#endif
