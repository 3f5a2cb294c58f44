/* SPDX-License-Identifier: MIT */
/* backend_impl.c - objects of backends that are written against backend_impl.h
 *
 * Each is one block: the object, and a copy of its table that has every member
 * that this library knows.
 */
#include "config.h"
#include "backend/backend_int.h"
#include "base/params.h"

/* --- memory --------------------------------------------------------------- */

struct made_buft {
    struct gguf_buft base; /* first: the object that callers get */
    struct gguf_buft_iface iface;
};

enum gguf_status gguf_buft_create(struct gguf_buft **out,
                                  const struct gguf_buft_params *params,
                                  struct gguf_error *err)
{
    struct gguf_buft_params p = GGUF_BUFT_PARAMS_INIT;
    struct gguf_buft_iface iface = { .struct_size = sizeof iface };
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_buft_params", err));
    GG_TRY(gg_params_need(p.iface, "gguf_buft_params: iface", err));
    GG_TRY(gg_params_need(p.name, "gguf_buft_params: name", err));
    GG_TRY(
        gg_params_take(&iface, sizeof iface, p.iface, "gguf_buft_iface", err));
    GG_TRY(gg_params_need(iface.alloc, "gguf_buft_iface: alloc", err));
    if (p.alignment & (p.alignment - 1))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "an alignment of %zu bytes is not a power of two",
                            p.alignment);
    struct made_buft *m = gg_mem_alloc(p.allocator, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    *m = (struct made_buft){
        .base = { .iface = &m->iface,
                  .name = p.name,
                  .alignment = p.alignment ? p.alignment : GGUF_TENSOR_ALIGN,
                  .max_size = p.max_size ? p.max_size : SIZE_MAX,
                  .is_host = p.is_host,
                  .priv = p.priv,
                  .allocator = p.allocator },
        .iface = iface,
    };
    *out = &m->base;
    return GGUF_OK;
}

void gguf_buft_destroy(struct gguf_buft *buft)
{
    if (buft)
        gg_mem_free(buft->allocator, buft);
}

void *gguf_buft_priv(const struct gguf_buft *buft)
{
    return buft->priv;
}

/* --- drivers and devices -------------------------------------------------- */

struct made_driver {
    struct gguf_driver base;
    struct gguf_driver_iface iface;
};

enum gguf_status gguf_driver_create(struct gguf_driver **out,
                                    const struct gguf_driver_params *params,
                                    struct gguf_error *err)
{
    struct gguf_driver_params p = GGUF_DRIVER_PARAMS_INIT;
    struct gguf_driver_iface iface = { .struct_size = sizeof iface };
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_driver_params", err));
    GG_TRY(gg_params_need(p.iface, "gguf_driver_params: iface", err));
    GG_TRY(gg_params_need(p.name, "gguf_driver_params: name", err));
    GG_TRY(gg_params_take(&iface, sizeof iface, p.iface, "gguf_driver_iface",
                          err));
    struct made_driver *m = gg_mem_alloc(p.allocator, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    *m = (struct made_driver){ .base = { .iface = &m->iface,
                                         .name = p.name,
                                         .priv = p.priv,
                                         .allocator = p.allocator,
                                         .made = true },
                               .iface = iface };
    *out = &m->base;
    return GGUF_OK;
}

void *gguf_driver_priv(const struct gguf_driver *driver)
{
    return driver->priv;
}

struct made_device {
    struct gguf_device base;
    struct gguf_device_iface iface;
};

static enum gguf_status check_device(const struct gguf_device_params *p,
                                     const struct gguf_device_iface *iface,
                                     struct gguf_error *err)
{
    GG_TRY(gg_params_need(p->name, "gguf_device_params: name", err));
    GG_TRY(gg_params_need(p->description, "gguf_device_params: description",
                          err));
    GG_TRY(gg_params_need(p->buft, "gguf_device_params: buft", err));
    GG_TRY(gg_params_need(iface->supports_op, "gguf_device_iface: supports_op",
                          err));
    GG_TRY(gg_params_need(iface->create_backend,
                          "gguf_device_iface: create_backend", err));
    return gg_params_need(!(p->caps & GGUF_DEVICE_CAP_EVENTS) ||
                              iface->create_event,
                          "gguf_device_iface: create_event", err);
}

enum gguf_status
gguf_driver_add_device(struct gguf_driver *driver,
                       const struct gguf_device_params *params,
                       struct gguf_device **out, struct gguf_error *err)
{
    struct gguf_device_params p = GGUF_DEVICE_PARAMS_INIT;
    struct gguf_device_iface iface = { .struct_size = sizeof iface };
    if (out)
        *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_device_params", err));
    GG_TRY(gg_params_need(p.iface, "gguf_device_params: iface", err));
    GG_TRY(gg_params_take(&iface, sizeof iface, p.iface, "gguf_device_iface",
                          err));
    GG_TRY(check_device(&p, &iface, err));
    if (!driver->made)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "driver %s takes no more devices", driver->name);
    const struct gguf_allocator *a = driver->allocator;
    if (driver->n_devices == driver->room) {
        struct gguf_device **list = gg_mem_grow(
            a, driver->devices, &driver->room, sizeof *list, 2, err);
        if (!list)
            return GGUF_E_NOMEM;
        driver->devices = list;
    }
    struct made_device *m = gg_mem_alloc(a, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    *m = (struct made_device){ .base = { .iface = &m->iface,
                                         .name = p.name,
                                         .description = p.description,
                                         .kind = p.kind,
                                         .caps = p.caps,
                                         .buft = p.buft,
                                         .priv = p.priv,
                                         .driver = driver },
                               .iface = iface };
    driver->devices[driver->n_devices++] = &m->base;
    if (out)
        *out = &m->base;
    return GGUF_OK;
}

void *gguf_device_priv(const struct gguf_device *d)
{
    return d->priv;
}

/* --- backends and events -------------------------------------------------- */

struct made_backend {
    struct gguf_backend base;
    struct gguf_backend_iface iface;
};

static enum gguf_status check_backend(const struct gguf_backend_iface *i,
                                      uint32_t caps, struct gguf_error *err)
{
    const int n = !!i->plan_create + !!i->plan_compute + !!i->plan_destroy;
    const bool asks = i->plan_remake || i->plan_threads || i->plan_work_size;
    GG_TRY(gg_params_need(i->compute, "gguf_backend_iface: compute", err));
    GG_TRY(gg_params_need(
        n == 3 || (n == 0 && !asks),
        "gguf_backend_iface: plan_create, plan_compute or plan_destroy", err));
    GG_TRY(gg_params_need(!(caps & GGUF_DEVICE_CAP_ASYNC) || i->sync,
                          "gguf_backend_iface: sync", err));
    return gg_params_need(!(caps & GGUF_DEVICE_CAP_EVENTS) || i->event_record,
                          "gguf_backend_iface: event_record", err);
}

enum gguf_status gguf_backend_create(struct gguf_backend **out,
                                     struct gguf_device *device,
                                     const struct gguf_backend_params *params,
                                     struct gguf_error *err)
{
    struct gguf_backend_params p = GGUF_BACKEND_PARAMS_INIT;
    struct gguf_backend_iface iface = { .struct_size = sizeof iface };
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_backend_params", err));
    GG_TRY(gg_params_need(p.iface, "gguf_backend_params: iface", err));
    GG_TRY(gg_params_need(p.id != 0, "gguf_backend_params: id", err));
    GG_TRY(gg_params_take(&iface, sizeof iface, p.iface, "gguf_backend_iface",
                          err));
    GG_TRY(check_backend(&iface, device->caps, err));
    struct made_backend *m = gg_mem_alloc(p.allocator, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    *m = (struct made_backend){
        .base = { .iface = &m->iface,
                  .device = device,
                  .allocator = p.allocator,
                  .name = p.name ? p.name : device->name,
                  .id = p.id,
                  .priv = p.priv,
                  .made = true },
        .iface = iface,
    };
    *out = &m->base;
    return GGUF_OK;
}

void *gguf_backend_priv(const struct gguf_backend *b)
{
    return b->priv;
}

struct made_event {
    struct gguf_event base;
    struct gguf_event_iface iface;
};

enum gguf_status
gguf_event_wrap(struct gguf_event **out, struct gguf_device *device,
                const struct gguf_event_iface *iface, void *priv,
                const struct gguf_allocator *allocator, struct gguf_error *err)
{
    struct gguf_event_iface own = { .struct_size = sizeof own };
    *out = NULL;
    GG_TRY(gg_params_need(iface, "gguf_event_iface", err));
    GG_TRY(gg_params_take(&own, sizeof own, iface, "gguf_event_iface", err));
    GG_TRY(gg_params_need(own.sync, "gguf_event_iface: sync", err));
    struct made_event *m = gg_mem_alloc(allocator, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    *m = (struct made_event){ .base = { .iface = &m->iface,
                                        .device = device,
                                        .priv = priv,
                                        .allocator = allocator,
                                        .made = true },
                              .iface = own };
    *out = &m->base;
    return GGUF_OK;
}

void *gguf_event_priv(const struct gguf_event *e)
{
    return e->priv;
}

struct gguf_device *gguf_event_device(const struct gguf_event *e)
{
    return e->device;
}
