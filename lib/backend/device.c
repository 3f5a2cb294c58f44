/* SPDX-License-Identifier: MIT */
/* device.c - devices, drivers, and the registry that lists them */
#include "config.h"
#include "backend/backend_int.h"
#include "base/str.h"
#include "gguf/pool.h"

#include <string.h>

const char *gguf_device_name(const struct gguf_device *d)
{
    return d->name;
}

const char *gguf_device_description(const struct gguf_device *d)
{
    return d->description;
}

enum gguf_device_kind gguf_device_kind(const struct gguf_device *d)
{
    return d->kind;
}

uint32_t gguf_device_caps(const struct gguf_device *d)
{
    return d->caps;
}

struct gguf_driver *gguf_device_driver(const struct gguf_device *d)
{
    return d->driver;
}

void gguf_device_memory(const struct gguf_device *d, uint64_t *n_free,
                        uint64_t *n_total)
{
    *n_free = *n_total = 0;
    if (d->iface->memory)
        d->iface->memory(d, n_free, n_total);
}

const struct gguf_buft *gguf_device_buft(const struct gguf_device *d)
{
    return d->buft;
}

const struct gguf_buft *gguf_device_host_buft(const struct gguf_device *d)
{
    if (!(d->caps & GGUF_DEVICE_CAP_HOST_BUFT))
        return NULL;
    return d->iface->host_buft ? d->iface->host_buft(d) : gguf_host_buft();
}

enum gguf_status gg_device_check_result(const struct gguf_device *d,
                                        const char *function, const void *made,
                                        struct gguf_error *err)
{
    if (made)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "device %s: %s returned no object and no failure",
                        d->name, function);
}

enum gguf_status gguf_device_create_buffer_from_host(
    struct gguf_device *d, struct gguf_buffer **out, void *ptr, size_t size,
    const struct gguf_allocator *allocator, struct gguf_error *err)
{
    *out = NULL;
    if (!(d->caps & GGUF_DEVICE_CAP_HOST_PTR))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "device %s makes no buffers around host memory",
                            d->name);
    if (!d->iface->buffer_from_host)
        return gguf_buffer_create_from_host(out, ptr, size, allocator, err);
    GG_TRY(d->iface->buffer_from_host(d, out, ptr, size, allocator, err));
    GG_TRY(gg_device_check_result(d, "buffer_from_host", *out, err));
    (*out)->foreign = true; /* also one that the device made by its alloc */
    return GGUF_OK;
}

bool gguf_device_supports_op(const struct gguf_device *d,
                             const struct gguf_tensor *t)
{
    return gguf_op_is_view(t->op) || d->iface->supports_op(d, t);
}

bool gguf_device_supports_buft(const struct gguf_device *d,
                               const struct gguf_buft *buft)
{
    if (d->iface->supports_buft)
        return d->iface->supports_buft(d, buft);
    return buft->is_host || buft == d->buft;
}

bool gguf_device_offloads_op(const struct gguf_device *d,
                             const struct gguf_tensor *t)
{
    return d->iface->offloads_op && d->iface->offloads_op(d, t);
}

uint32_t gguf_device_min_invariant_batch(const struct gguf_device *d)
{
    const uint32_t n =
        d->iface->min_invariant_batch ? d->iface->min_invariant_batch(d) : 1;
    return GG_MAX(n, 1);
}

enum gguf_status gguf_device_create_backend(struct gguf_device *d,
                                            struct gguf_backend **out,
                                            struct gguf_error *err)
{
    *out = NULL;
    GG_TRY(d->iface->create_backend(d, out, err));
    return gg_device_check_result(d, "create_backend", *out, err);
}

void gguf_driver_destroy(struct gguf_driver *driver)
{
    if (!driver)
        return;
    const bool made = driver->made;
    if (driver->iface->destroy)
        driver->iface->destroy(driver);
    if (!made) /* destroy freed it */
        return;
    for (size_t i = 0; i < driver->n_devices; i++)
        gg_mem_free(driver->allocator, driver->devices[i]);
    gg_mem_free(driver->allocator, driver->devices);
    gg_mem_free(driver->allocator, driver);
}

const char *gguf_driver_name(const struct gguf_driver *driver)
{
    return driver->name;
}

size_t gguf_driver_n_devices(const struct gguf_driver *driver)
{
    return driver->n_devices;
}

struct gguf_device *gguf_driver_device(const struct gguf_driver *driver,
                                       size_t i)
{
    return i < driver->n_devices ? driver->devices[i] : NULL;
}

gguf_any_fn *gguf_driver_find_function(const struct gguf_driver *driver,
                                       const char *name)
{
    return driver->iface->function ? driver->iface->function(driver, name)
                                   : NULL;
}

struct gguf_registry {
    const struct gguf_allocator *allocator;
    struct gguf_driver **drivers;
    size_t n, room;
};

enum gguf_status
gguf_registry_create_empty(struct gguf_registry **out,
                           const struct gguf_allocator *allocator,
                           struct gguf_error *err)
{
    *out = gg_mem_alloc_zero(allocator, 1, sizeof **out);
    if (!*out)
        return gg_error_set_nomem(err, sizeof **out);
    (*out)->allocator = allocator;
    return GGUF_OK;
}

void gguf_registry_destroy(struct gguf_registry *r)
{
    if (!r)
        return;
    for (size_t i = r->n; i-- > 0;)
        gguf_driver_destroy(r->drivers[i]);
    gg_mem_free(r->allocator, r->drivers);
    gg_mem_free(r->allocator, r);
}

enum gguf_status gguf_registry_add_driver(struct gguf_registry *r,
                                          struct gguf_driver *driver,
                                          struct gguf_error *err)
{
    if (r->n == r->room) {
        void *grown = gg_mem_grow(r->allocator, r->drivers, &r->room,
                                  sizeof *r->drivers, 4, err);
        if (!grown) {
            gguf_driver_destroy(driver);
            return GGUF_E_NOMEM;
        }
        r->drivers = grown;
    }
    r->drivers[r->n++] = driver;
    for (size_t i = 0; i < driver->n_devices; i++)
        driver->devices[i]->driver = driver;
    return GGUF_OK;
}

size_t gguf_registry_n_drivers(const struct gguf_registry *r)
{
    return r->n;
}

struct gguf_driver *gguf_registry_driver(const struct gguf_registry *r,
                                         size_t i)
{
    return i < r->n ? r->drivers[i] : NULL;
}

size_t gguf_registry_n_devices(const struct gguf_registry *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->drivers[i]->n_devices;
    return n;
}

struct gguf_device *gguf_registry_device(const struct gguf_registry *r,
                                         size_t i)
{
    for (size_t k = 0; k < r->n; k++) {
        if (i < r->drivers[k]->n_devices)
            return r->drivers[k]->devices[i];
        i -= r->drivers[k]->n_devices;
    }
    return NULL;
}

struct gguf_device *gguf_registry_find(const struct gguf_registry *r,
                                       const char *name)
{
    struct gguf_device *d;
    for (size_t i = 0; (d = gguf_registry_device(r, i)); i++)
        if (gg_str_eq_nocase(gg_str_z(d->name), name))
            return d;
    return NULL;
}

struct gguf_device *gguf_registry_find_kind(const struct gguf_registry *r,
                                            enum gguf_device_kind kind)
{
    struct gguf_device *d;
    for (size_t i = 0; (d = gguf_registry_device(r, i)); i++)
        if (d->kind == kind)
            return d;
    return NULL;
}

struct gguf_device *gguf_registry_find_best(const struct gguf_registry *r)
{
    struct gguf_device *d = gguf_registry_find_kind(r, GGUF_DEVICE_GPU);
    return d ? d : gguf_registry_find_kind(r, GGUF_DEVICE_CPU);
}

/* ---- drivers with one device ---- */

static void single_destroy(struct gguf_driver *driver)
{
    gg_mem_free(driver->allocator, driver->priv);
}

static gguf_any_fn *single_function(const struct gguf_driver *driver,
                                    const char *name)
{
    const struct gg_backend_single_driver *s = driver->priv;
    for (size_t i = 0; i < s->n_functions; i++)
        if (!strcmp(name, s->functions[i].name))
            return s->functions[i].fn;
    return NULL;
}

static const struct gguf_driver_iface single_iface = {
    .struct_size = sizeof single_iface,
    .destroy = single_destroy,
    .function = single_function,
};

void gg_backend_single_driver_init(struct gg_backend_single_driver *s,
                                   const struct gguf_device *device,
                                   const struct gguf_allocator *allocator,
                                   const struct gg_backend_function *functions,
                                   size_t n_functions)
{
    s->functions = functions;
    s->n_functions = n_functions;
    s->device = *device;
    s->device.driver = &s->base;
    s->device.priv = s;
    s->list[0] = &s->device;
    s->base = (struct gguf_driver){ .iface = &single_iface,
                                    .name = device->name,
                                    .n_devices = 1,
                                    .devices = s->list,
                                    .priv = s,
                                    .allocator = allocator };
}

enum gguf_status
gg_backend_single_driver_create_backend(struct gguf_backend **out,
                                        struct gguf_driver *driver,
                                        struct gguf_error *err)
{
    const enum gguf_status st =
        gguf_device_create_backend(gguf_driver_device(driver, 0), out, err);
    if (st != GGUF_OK)
        gguf_driver_destroy(driver);
    else
        (*out)->own_driver = driver;
    return st;
}

enum gguf_status gg_backend_check_threads(const struct gguf_backend *b,
                                          unsigned n, struct gguf_error *err)
{
    if (n && n <= GGUF_POOL_MAX_THREADS)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "%u threads of %s: 1 to %d", n, b->name,
                        GGUF_POOL_MAX_THREADS);
}
