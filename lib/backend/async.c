/* SPDX-License-Identifier: MIT */
/* async.c - events, and transfers in the order of a backend's work
 *
 * A backend that has no queue does the work before the call returns: the caller
 * waits instead.
 */
#include "config.h"
#include "backend/buffer_version.h"
#include "backend/backend_int.h"

/* --- events --------------------------------------------------------------- */

enum gguf_status gguf_event_create(struct gguf_event **out,
                                   struct gguf_device *d,
                                   const struct gguf_allocator *allocator,
                                   struct gguf_error *err)
{
    *out = NULL;
    if (!(d->caps & GGUF_DEVICE_CAP_EVENTS))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "device %s has no events", d->name);
    GG_TRY(d->iface->create_event(d, out, allocator, err));
    return gg_device_check_result(d, "create_event", *out, err);
}

void gguf_event_destroy(struct gguf_event *e)
{
    if (!e)
        return;
    const bool made = e->made;
    const struct gguf_allocator *a = e->allocator;
    if (e->iface->destroy)
        e->iface->destroy(e);
    if (made)
        gg_mem_free(a, e);
}

enum gguf_status gguf_event_record(struct gguf_event *e,
                                   struct gguf_backend *b,
                                   struct gguf_error *err)
{
    if (b->device != e->device)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "an event of device %s cannot be recorded on %s",
                            e->device->name, b->name);
    return b->iface->event_record(b, e, err);
}

enum gguf_status gguf_event_wait(struct gguf_event *e, struct gguf_backend *b,
                                 struct gguf_error *err)
{
    return b->iface->event_wait ? b->iface->event_wait(b, e, err)
                                : gguf_event_sync(e, err);
}

enum gguf_status gguf_event_sync(struct gguf_event *e, struct gguf_error *err)
{
    return e->iface->sync(e, err);
}

/* --- transfers ------------------------------------------------------------ */

enum gguf_status gguf_backend_set_async(struct gguf_backend *b,
                                        struct gguf_tensor *t, const void *src,
                                        uint64_t off, uint64_t size,
                                        struct gguf_error *err)
{
    GG_TRY(gg_backend_tensor_check_range(t, off, size, err));
    if (!b->iface->set_async) {
        GG_TRY(gguf_backend_sync(b, err));
        return gguf_tensor_set(t, src, off, size, err);
    }
    gg_buffer_version_change(t->buffer);
    return b->iface->set_async(b, t, src, off, size, err);
}

enum gguf_status gguf_backend_get_async(struct gguf_backend *b,
                                        const struct gguf_tensor *t, void *dst,
                                        uint64_t off, uint64_t size,
                                        struct gguf_error *err)
{
    GG_TRY(gg_backend_tensor_check_range(t, off, size, err));
    if (!b->iface->get_async) {
        GG_TRY(gguf_backend_sync(b, err));
        return gguf_tensor_get(t, dst, off, size, err);
    }
    return b->iface->get_async(b, t, dst, off, size, err);
}

enum gguf_status gg_backend_copy_queued(struct gguf_backend *b,
                                        const struct gguf_tensor *src,
                                        struct gguf_tensor *dst, bool *done,
                                        struct gguf_error *err)
{
    gg_buffer_version_change(dst->buffer);
    const enum gguf_status st = b->iface->copy_async
                                    ? b->iface->copy_async(b, src, dst, err)
                                    : GGUF_E_UNSUPPORTED;
    *done = st == GGUF_OK;
    return st == GGUF_E_UNSUPPORTED ? GGUF_OK : st;
}

/* b's own event, recorded now. */
static enum gguf_status mark_work(struct gguf_backend *b,
                                  struct gguf_error *err)
{
    if (!b->mark)
        GG_TRY(gguf_event_create(&b->mark, b->device, b->allocator, err));
    return gguf_event_record(b->mark, b, err);
}

enum gguf_status gguf_backend_copy_async(struct gguf_backend *from,
                                         struct gguf_backend *to,
                                         const struct gguf_tensor *src,
                                         struct gguf_tensor *dst,
                                         struct gguf_error *err)
{
    const uint32_t both = from->device->caps & to->device->caps;
    GG_TRY(gg_backend_tensor_check_copy(src, dst, err));
    bool done = false;
    if (from == to)
        GG_TRY(gg_backend_copy_queued(from, src, dst, &done, err));
    if (done)
        return GGUF_OK;
    if (from != to && both & GGUF_DEVICE_CAP_EVENTS &&
        from->iface->copy_async) {
        GG_TRY(mark_work(to, err));
        GG_TRY(gguf_event_wait(to->mark, from, err));
        GG_TRY(gg_backend_copy_queued(from, src, dst, &done, err));
        if (done) {
            GG_TRY(mark_work(from, err));
            return gguf_event_wait(from->mark, to, err);
        }
    }
    GG_TRY(gguf_backend_sync(from, err));
    GG_TRY(gguf_backend_sync(to, err));
    return gguf_tensor_copy(src, dst, err);
}
