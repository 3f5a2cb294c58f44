/* SPDX-License-Identifier: MIT */
/* blas_backend.c - the BLAS library as a driver of one device
 *
 * A backend is a queue of graphs (backend/stream.h): its thread calls the
 * library, which may use more threads of its own.
 */
#include "config.h"
#include "backend/stream.h"
#include "base/params.h"
#include "blas/product.h"
#include "gguf/blas.h"
#include "graph/op_table.h"

#include <string.h>

/* Drawn once. */
#define BACKEND_ID UINT64_C(0x9c83d6e1047fb25a)

struct blas_driver {
    struct gg_backend_single_driver base;
    struct gguf_buft own_buft;
    struct gguf_blas_params params;
    struct gg_kern kern;
};

struct blas_backend {
    struct gguf_backend base;
    const struct gg_kern *kern; /* the device's */
    struct gg_stream *stream;
    /* used by its thread while work runs */
    struct gguf_abort_callback abort;
    float *scratch;
    size_t scratch_size;
};

static struct blas_backend *get_blas(struct gguf_backend *b)
{
    return b->priv;
}

/* --- backend -------------------------------------------------------------- */

static void destroy_backend(struct gguf_backend *b)
{
    struct blas_backend *c = get_blas(b);
    const struct gguf_allocator *a = b->allocator;
    gg_stream_destroy(c->stream);
    gg_mem_free_aligned(a, c->scratch);
    gg_mem_free(a, c);
}

static enum gguf_status grow_scratch(struct blas_backend *c, size_t size,
                                     struct gguf_error *err)
{
    const struct gguf_allocator *a = c->base.allocator;
    if (size <= c->scratch_size)
        return GGUF_OK;
    gg_mem_free_aligned(a, c->scratch);
    c->scratch_size = 0;
    c->scratch = gg_mem_alloc_aligned(a, size, 64);
    if (!c->scratch)
        return gg_error_set_nomem(err, size);
    c->scratch_size = size;
    return GGUF_OK;
}

struct job {
    struct blas_backend *backend;
    const struct gguf_graph *graph;
};

static enum gguf_status compute_call(void *arg, struct gguf_error *err)
{
    const struct job *j = arg;
    struct blas_backend *c = j->backend;
    for (size_t i = 0; i < gguf_graph_n_nodes(j->graph); i++) {
        struct gguf_tensor *t = gguf_graph_node(j->graph, i);
        if (t->op != GGUF_OP_MATMUL) /* a view */
            continue;
        if (c->abort.fn && c->abort.fn(c->abort.user))
            return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                                "stopped before node %zu", i);
        GG_TRY(grow_scratch(c, gg_blas_scratch(t), err));
        gg_blas_product(t, c->kern, c->scratch);
    }
    return GGUF_OK;
}

static enum gguf_status compute_graph(struct gguf_backend *b,
                                      struct gguf_graph *graph,
                                      struct gguf_error *err)
{
    struct job j = { get_blas(b), graph };
    (void)err;
    gg_stream_push(get_blas(b)->stream, compute_call, &j, sizeof j);
    return GGUF_OK;
}

static enum gguf_status sync_backend(struct gguf_backend *b,
                                     struct gguf_error *err)
{
    return gg_stream_sync(get_blas(b)->stream, err);
}

static enum gguf_status set_async(struct gguf_backend *b,
                                  struct gguf_tensor *t, const void *src,
                                  uint64_t off, uint64_t size,
                                  struct gguf_error *err)
{
    (void)err;
    gg_stream_set(get_blas(b)->stream, t, src, off, size);
    return GGUF_OK;
}

static enum gguf_status get_async(struct gguf_backend *b,
                                  const struct gguf_tensor *t, void *dst,
                                  uint64_t off, uint64_t size,
                                  struct gguf_error *err)
{
    (void)err;
    gg_stream_get(get_blas(b)->stream, t, dst, off, size);
    return GGUF_OK;
}

static enum gguf_status copy_async(struct gguf_backend *b,
                                   const struct gguf_tensor *src,
                                   struct gguf_tensor *dst,
                                   struct gguf_error *err)
{
    (void)err;
    gg_stream_copy(get_blas(b)->stream, src, dst);
    return GGUF_OK;
}

static enum gguf_status event_record(struct gguf_backend *b,
                                     struct gguf_event *e,
                                     struct gguf_error *err)
{
    (void)err;
    gg_stream_record(get_blas(b)->stream, e);
    return GGUF_OK;
}

static enum gguf_status event_wait(struct gguf_backend *b,
                                   struct gguf_event *e,
                                   struct gguf_error *err)
{
    return gg_stream_wait(get_blas(b)->stream, e, err);
}

static const struct gguf_backend_iface backend_iface = {
    .struct_size = sizeof backend_iface,
    .destroy = destroy_backend,
    .compute = compute_graph,
    .sync = sync_backend,
    .set_async = set_async,
    .get_async = get_async,
    .copy_async = copy_async,
    .event_record = event_record,
    .event_wait = event_wait,
};

/* --- functions by name ---------------------------------------------------- */

static enum gguf_status set_abort(struct gguf_backend *b,
                                  struct gguf_abort_callback abort,
                                  struct gguf_error *err)
{
    GG_TRY(gguf_backend_sync(b, err)); /* its thread asks */
    get_blas(b)->abort = abort;
    return GGUF_OK;
}

static enum gguf_status set_n_threads(struct gguf_backend *b, unsigned n,
                                      struct gguf_error *err)
{
    GG_TRY(gguf_backend_sync(b, err));
    GG_TRY(gg_backend_check_threads(b, n, err));
    if (!gg_blas_set_n_threads(n))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "%s has no setting for threads", BLAS_NAME);
    return GGUF_OK;
}

/* --- device --------------------------------------------------------------- */

static bool supports_op(const struct gguf_device *d,
                        const struct gguf_tensor *t)
{
    const struct blas_driver *c = d->priv;
    return gg_blas_supports(t, &c->kern, c->params.min_size);
}

/* It is for products, wherever their weights lie. */
static bool offloads_op(const struct gguf_device *d,
                        const struct gguf_tensor *t)
{
    const struct blas_driver *c = d->priv;
    return gg_blas_supports(t, &c->kern, c->params.min_size);
}

static bool supports_buft(const struct gguf_device *d,
                          const struct gguf_buft *buft)
{
    return d->buft == buft || (d->buft->is_host && buft->is_host);
}

static enum gguf_status new_backend(struct gguf_device *d,
                                    struct gguf_backend **out,
                                    struct gguf_error *err)
{
    struct blas_driver *driver = d->priv;
    const struct gguf_blas_params *p = &driver->params;
    struct blas_backend *c = gg_mem_alloc(p->allocator, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    *c = (struct blas_backend){ .base = { .iface = &backend_iface,
                                          .id = BACKEND_ID,
                                          .device = d,
                                          .allocator = p->allocator,
                                          .name = d->name },
                                .kern = &driver->kern };
    c->base.priv = c;
    enum gguf_status st = gg_stream_create(&c->stream, p->allocator, err);
    if (st == GGUF_OK && p->n_threads)
        gg_blas_set_n_threads(p->n_threads);
    if (st != GGUF_OK)
        gg_mem_free(p->allocator, c);
    else
        *out = &c->base;
    return st;
}

static const struct gguf_device_iface device_iface = {
    .struct_size = sizeof device_iface,
    .memory = gg_backend_host_memory,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
    .offloads_op = offloads_op,
    .create_backend = new_backend,
    .create_event = gg_stream_event,
};

/* --- driver --------------------------------------------------------------- */

static const struct gg_backend_function functions[] = {
    { "set_n_threads", (gguf_any_fn *)set_n_threads },
    { "set_abort", (gguf_any_fn *)set_abort },
};

enum gguf_status gguf_blas_driver_create(struct gguf_driver **out,
                                         const struct gguf_blas_params *params,
                                         struct gguf_error *err)
{
    struct gguf_blas_params own = GGUF_BLAS_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&own, sizeof own, params, "gguf_blas_params", err));
    params = &own;
    if (params->n_threads > GGUF_POOL_MAX_THREADS)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%u threads of BLAS: at most %d",
                            params->n_threads, GGUF_POOL_MAX_THREADS);
    struct blas_driver *c = gg_mem_alloc_zero(params->allocator, 1, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    c->params = *params;
    if (!c->params.min_size)
        c->params.min_size = 32;
    gg_kern_init(&c->kern,
                 gg_kern_cpu_detect() & gg_backend_cpu_levels(params->levels));
    gg_codec_kern_set_native_order(c->kern.codec);
    c->own_buft = (struct gguf_buft){ .iface = &gg_backend_host_iface,
                                      .name = "BLAS",
                                      .alignment = GGUF_TENSOR_ALIGN,
                                      .max_size = SIZE_MAX };
    const uint32_t host = GGUF_DEVICE_CAP_HOST_BUFT | GGUF_DEVICE_CAP_HOST_PTR;
    const struct gguf_device device = {
        .iface = &device_iface,
        .name = "BLAS",
        .description = BLAS_NAME,
        .kind = GGUF_DEVICE_ACCEL,
        .caps = GGUF_DEVICE_CAP_ASYNC | GGUF_DEVICE_CAP_EVENTS |
                (params->own_memory ? 0 : host),
        .buft = params->own_memory ? &c->own_buft : gguf_host_buft(),
    };
    gg_backend_single_driver_init(&c->base, &device, params->allocator,
                                  functions, GG_LEN(functions));
    *out = &c->base.base;
    return GGUF_OK;
}

enum gguf_status
gguf_blas_backend_create(struct gguf_backend **out,
                         const struct gguf_blas_params *params,
                         struct gguf_error *err)
{
    struct gguf_driver *driver;
    *out = NULL;
    GG_TRY(gguf_blas_driver_create(&driver, params, err));
    return gg_backend_single_driver_create_backend(out, driver, err);
}
