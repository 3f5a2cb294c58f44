/* SPDX-License-Identifier: MIT */
/* check-make.c - devices, buffers and backends created from tables of
 * functions */
#include "config.h"
#include "gguf/backend_impl.h"
#include "gguf/compute.h"
#include "tests/failalloc.h"
#include "tests/tap.h"

#include <stddef.h>

static int n_destroyed, n_synced;

static enum gguf_status alloc_buffer(const struct gguf_buft *buft,
                                     struct gguf_buffer *b, size_t size,
                                     struct gguf_error *err)
{
    const size_t align = gguf_buft_alignment(buft);
    (void)err;
    gguf_buffer_set_memory(
        b, aligned_alloc(align, (size + align - 1) / align * align), b);
    return GGUF_OK;
}

static void free_buffer(struct gguf_buffer *b)
{
    free(gguf_buffer_base(b));
}

/* A device that fails at every transfer, like a lost one. */
static enum gguf_status fail_transfer(struct gguf_error *err)
{
    return gguf_error_set(err, GGUF_E_IO, "lost %d", 7);
}

static enum gguf_status set_tensor(struct gguf_buffer *b,
                                   struct gguf_tensor *t, const void *src,
                                   uint64_t off, uint64_t size,
                                   struct gguf_error *err)
{
    (void)b, (void)t, (void)src, (void)off, (void)size;
    return fail_transfer(err);
}

static enum gguf_status get_tensor(struct gguf_buffer *b,
                                   const struct gguf_tensor *t, void *dst,
                                   uint64_t off, uint64_t size,
                                   struct gguf_error *err)
{
    (void)b, (void)t, (void)dst, (void)off, (void)size;
    return fail_transfer(err);
}

static enum gguf_status fill_tensor(struct gguf_buffer *b,
                                    struct gguf_tensor *t, uint8_t value,
                                    uint64_t off, uint64_t size,
                                    struct gguf_error *err)
{
    (void)b, (void)t, (void)value, (void)off, (void)size;
    return fail_transfer(err);
}

static enum gguf_status clear_buffer(struct gguf_buffer *b, uint8_t value,
                                     struct gguf_error *err)
{
    (void)b, (void)value;
    return fail_transfer(err);
}

static bool supports_op(const struct gguf_device *d,
                        const struct gguf_tensor *t)
{
    (void)d;
    return t->op == GGUF_OP_ADD;
}

static bool supports_buft(const struct gguf_device *d,
                          const struct gguf_buft *buft)
{
    return buft == gguf_device_buft(d);
}

static uint32_t wide_columns(const struct gguf_device *d)
{
    return *(const uint32_t *)gguf_device_priv(d);
}

static int n_queued;

/* Queue a failure, which the next sync reports. */
static enum gguf_status compute_graph(struct gguf_backend *b,
                                      struct gguf_graph *graph,
                                      struct gguf_error *err)
{
    (void)b, (void)graph, (void)err;
    n_queued++;
    return GGUF_OK;
}

static enum gguf_status sync_backend(struct gguf_backend *b,
                                     struct gguf_error *err)
{
    const bool waits = n_queued > 0;
    (void)b;
    n_queued = 0;
    return waits ? fail_transfer(err) : GGUF_OK;
}

static bool marks; /* events can be recorded, and are reached at once */

static enum gguf_status record_event(struct gguf_backend *b,
                                     struct gguf_event *e,
                                     struct gguf_error *err)
{
    (void)b, (void)e;
    return marks ? GGUF_OK : fail_transfer(err);
}

static void destroy_backend(struct gguf_backend *b)
{
    n_destroyed += *(int *)gguf_backend_priv(b);
}

static enum gguf_status event_sync(struct gguf_event *e,
                                   struct gguf_error *err)
{
    n_synced += *(int *)gguf_event_priv(e);
    return marks ? GGUF_OK : fail_transfer(err);
}

static int one = 1;
static uint32_t columns = 5;
static const struct gguf_buft_iface memory = {
    .struct_size = sizeof memory,
    .alloc = alloc_buffer,
    .free = free_buffer,
    .set = set_tensor,
    .get = get_tensor,
    .fill = fill_tensor,
    .clear = clear_buffer,
};
static const struct gguf_backend_iface work = {
    .struct_size = sizeof work,
    .destroy = destroy_backend,
    .compute = compute_graph,
    .sync = sync_backend,
    .event_record = record_event,
};
static const struct gguf_event_iface point = { sizeof point, NULL,
                                               event_sync };
static struct gguf_allocator const *with;

static enum gguf_status create_event(struct gguf_device *d,
                                     struct gguf_event **out,
                                     const struct gguf_allocator *a,
                                     struct gguf_error *err)
{
    return gguf_event_wrap(out, d, &point, &one, a, err);
}

static enum gguf_status create_backend(struct gguf_device *d,
                                       struct gguf_backend **out,
                                       struct gguf_error *err)
{
    struct gguf_backend_params p = GGUF_BACKEND_PARAMS_INIT;
    p.allocator = with;
    p.iface = &work;
    p.id = 77;
    p.priv = &one;
    return gguf_backend_create(out, d, &p, err);
}

static const struct gguf_device_iface device = {
    .struct_size = sizeof device,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
    .min_invariant_batch = wide_columns,
    .create_backend = create_backend,
    .create_event = create_event,
};
static const struct gguf_driver_iface driver = { sizeof driver, NULL, NULL };

struct all {
    struct gguf_buft *buft;
    struct gguf_driver *driver;
    struct gguf_device *device;
    struct gguf_backend *backend;
    struct gguf_event *event;
};

static void destroy_all(struct all *x)
{
    gguf_event_destroy(x->event);
    gguf_backend_destroy(x->backend);
    gguf_driver_destroy(x->driver);
    gguf_buft_destroy(x->buft);
}

static enum gguf_status make_all(struct all *x, const struct gguf_allocator *a,
                                 struct gguf_error *err)
{
    struct gguf_buft_params bp = GGUF_BUFT_PARAMS_INIT;
    struct gguf_driver_params dp = GGUF_DRIVER_PARAMS_INIT;
    struct gguf_device_params p = GGUF_DEVICE_PARAMS_INIT;
    *x = (struct all){ .buft = NULL };
    with = a;
    bp.allocator = dp.allocator = a;
    bp.iface = &memory;
    bp.name = "lost";
    dp.iface = &driver;
    dp.name = "lost";
    p.iface = &device;
    p.name = "lost0";
    p.description = "fails";
    p.caps = GGUF_DEVICE_CAP_ASYNC | GGUF_DEVICE_CAP_EVENTS;
    p.priv = &columns;
    enum gguf_status st = gguf_buft_create(&x->buft, &bp, err);
    p.buft = x->buft;
    if (st == GGUF_OK)
        st = gguf_driver_create(&x->driver, &dp, err);
    for (int i = 0; st == GGUF_OK && i < 3; i++)
        st = gguf_driver_add_device(x->driver, &p, &x->device, err);
    if (st == GGUF_OK)
        st = gguf_device_create_backend(x->device, &x->backend, err);
    if (st == GGUF_OK)
        st = gguf_event_create(&x->event, x->device, a, err);
    if (st != GGUF_OK) {
        destroy_all(x);
        *x = (struct all){ .buft = NULL };
    }
    return st;
}

static void test_memory(void)
{
    struct failalloc fa;
    struct gguf_error err;
    struct all x;
    bool good = true;
    for (unsigned n = 0;; n++) {
        const enum gguf_status st = make_all(&x, failalloc_init(&fa, n), &err);
        const bool failed = fa.calls > n;
        good = good && st == (failed ? GGUF_E_NOMEM : GGUF_OK);
        if (!failed)
            destroy_all(&x);
        good = good && fa.live == 0;
        if (!failed)
            break;
    }
    ok(good, "nothing is lost when memory runs out, %u places", fa.calls);
}

static void test_failures(void)
{
    struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
    struct gguf_buffer *b;
    struct gguf_ctx *ctx;
    struct gguf_error err;
    struct all x;
    float v[2] = { 0 };
    n_destroyed = n_synced = 0;
    cp.mem_size = 1 << 14;
    cp.no_alloc = true;
    if (make_all(&x, NULL, &err) != GGUF_OK ||
        gguf_ctx_create(&ctx, &cp, NULL) != GGUF_OK)
        exit(99);
    struct gguf_tensor *t = gguf_tensor_create_1d(ctx, GGUF_DTYPE_F32, 2);
    struct gguf_tensor *u = gguf_tensor_create_1d(ctx, GGUF_DTYPE_F32, 2);
    struct gguf_tensor *y = gguf_op_add(ctx, t, u);
    if (gguf_ctx_alloc_tensors(ctx, x.buft, NULL, &b, &err) != GGUF_OK)
        exit(99);
    ok(gguf_device_min_invariant_batch(x.device) == 5 &&
           gguf_driver_n_devices(x.driver) == 3 &&
           gguf_device_driver(x.device) == x.driver &&
           gguf_backend_id(x.backend) == 77 &&
           !strcmp(gguf_backend_name(x.backend), "lost0") &&
           gguf_event_device(x.event) == x.device && gguf_buffer_priv(b) &&
           !gguf_buffer_allocator(b) &&
           gguf_buft_max_size(x.buft) == SIZE_MAX &&
           gguf_buft_alignment(x.buft) == GGUF_TENSOR_ALIGN,
       "names and descriptions are kept");
    columns = 0;
    ok(gguf_device_min_invariant_batch(x.device) == 1, "at least one column");
    columns = 5;
    gguf_error_clear(&err);
    ok(gguf_tensor_set(t, v, 0, 8, &err) == GGUF_E_IO &&
           !strcmp(err.message, "lost 7") && err.status == GGUF_E_IO &&
           err.offset == GGUF_NO_OFFSET,
       "a transfer that fails says so: %s", err.message);
    ok(gguf_tensor_get(t, v, 0, 8, &err) == GGUF_E_IO &&
           gguf_tensor_fill(t, 1, 0, 8, &err) == GGUF_E_IO &&
           gguf_tensor_copy(t, u, &err) == GGUF_E_IO &&
           gguf_buffer_clear(b, 0, &err) == GGUF_E_IO &&
           gguf_backend_set_async(x.backend, t, v, 0, 8, &err) == GGUF_E_IO,
       "and so do the others");
    ok(gguf_event_record(x.event, x.backend, &err) == GGUF_E_IO &&
           gguf_event_wait(x.event, x.backend, &err) == GGUF_E_IO &&
           gguf_event_sync(x.event, &err) == GGUF_E_IO && n_synced == 2,
       "events as well");
    ok(gguf_op_is_view(GGUF_OP_NONE) && gguf_op_is_view(GGUF_OP_RESHAPE) &&
           !gguf_op_is_view(GGUF_OP_ADD) && !gguf_op_is_view(GGUF_N_OPS),
       "operations that compute nothing are views");
    ok(gguf_backend_supports_op(x.backend, y) &&
           gguf_backend_supports_op(x.backend, t),
       "a device is not asked about operations that compute nothing");
    gguf_buffer_destroy(b);
    gguf_ctx_destroy(ctx);
    destroy_all(&x);
    ok(n_destroyed == 1, "destroyed once");
}

static void do_nothing(void)
{
}

static size_t plan_size(const struct gguf_backend *b, const void *plan)
{
    (void)b, (void)plan;
    return 0;
}

/* A failed wait of a scheduler names the backend that it waited for. */
static void test_waiting(void)
{
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
    struct gguf_sched *s;
    struct gguf_buffer *b;
    struct gguf_ctx *ctx;
    struct gguf_error err;
    struct all x;
    marks = true;
    cp.mem_size = 1 << 14;
    cp.no_alloc = true;
    if (make_all(&x, NULL, &err) != GGUF_OK ||
        gguf_ctx_create(&ctx, &cp, NULL) != GGUF_OK)
        exit(99);
    struct gguf_backend *both[2] = { x.backend, NULL };
    if (gguf_cpu_backend_create(&both[1], NULL, NULL) != GGUF_OK)
        exit(99);
    p.backends = both;
    p.n_backends = 2;
    struct gguf_tensor *t = gguf_tensor_create_1d(ctx, GGUF_DTYPE_F32, 2);
    struct gguf_tensor *u = gguf_tensor_create_1d(ctx, GGUF_DTYPE_F32, 2);
    if (gguf_ctx_alloc_tensors(ctx, x.buft, NULL, &b, &err) != GGUF_OK ||
        gguf_sched_create(&s, &p, &err) != GGUF_OK)
        exit(99);
    gguf_buffer_set_usage(b, GGUF_USAGE_WEIGHTS);
    struct gguf_graph *g = gguf_graph_create(ctx, 4);
    if (gguf_graph_finish(ctx, g, gguf_op_add(ctx, t, u), &err) != GGUF_OK ||
        gguf_sched_compute_async(s, g, &err) != GGUF_OK || !n_queued)
        exit(99);
    const struct gguf_sched_eval none = { NULL, NULL, NULL };
    ok(gguf_sched_set_eval(s, none, &err) == GGUF_E_IO &&
           gguf_sched_set_eval(s, none, &err) == GGUF_OK,
       "a callback is set after the running jobs: %s", err.message);
    if (gguf_sched_compute_async(s, g, &err) != GGUF_OK || !n_queued)
        exit(99);
    ok(gguf_sched_reset(s, &err) == GGUF_E_IO &&
           gguf_sched_reset(s, &err) == GGUF_OK && gguf_sched_n_splits(s) == 0,
       "and all is forgotten: %s", err.message);
    gguf_sched_destroy(s);
    gguf_backend_destroy(both[1]);
    gguf_buffer_destroy(b);
    gguf_ctx_destroy(ctx);
    destroy_all(&x);
    marks = false;
}

#define REFUSES(call, what)                                                   \
    ok((call) == GGUF_E_INVALID && strstr(err.message, what), "%s",           \
       err.message)

/* Required functions, and tables of older and newer backends. */
static void test_tables(void)
{
    struct gguf_buft_params bp = GGUF_BUFT_PARAMS_INIT;
    struct gguf_device_params dp = GGUF_DEVICE_PARAMS_INIT;
    struct gguf_backend_params p = GGUF_BACKEND_PARAMS_INIT;
    struct gguf_backend_iface i = work;
    struct gguf_buft_iface m = memory;
    struct gguf_device_iface d = device;
    struct gguf_buft *buft;
    struct gguf_backend *b;
    struct gguf_error err;
    struct all x;
    if (make_all(&x, NULL, &err) != GGUF_OK)
        exit(99);
    REFUSES(gguf_buft_create(&buft, &bp, &err), "iface");
    bp.iface = &m;
    REFUSES(gguf_buft_create(&buft, &bp, &err), "name");
    bp.name = "m";
    bp.alignment = 48;
    REFUSES(gguf_buft_create(&buft, &bp, &err), "48");
    bp.alignment = 0;
    m.alloc = NULL;
    REFUSES(gguf_buft_create(&buft, &bp, &err), "alloc");
    REFUSES(gguf_driver_add_device(x.driver, &dp, NULL, &err), "iface");
    dp.iface = &d;
    dp.name = dp.description = "d";
    REFUSES(gguf_driver_add_device(x.driver, &dp, NULL, &err), "buft");
    dp.buft = x.buft;
    dp.caps = GGUF_DEVICE_CAP_EVENTS;
    d.create_event = NULL;
    REFUSES(gguf_driver_add_device(x.driver, &dp, NULL, &err), "event");
    d.supports_op = NULL;
    REFUSES(gguf_driver_add_device(x.driver, &dp, NULL, &err), "supports_op");
    p.iface = &i;
    REFUSES(gguf_backend_create(&b, x.device, &p, &err), "id");
    p.id = 1;
    p.priv = &one;
    i.sync = NULL;
    REFUSES(gguf_backend_create(&b, x.device, &p, &err), "sync");
    i.sync = sync_backend;
    i.event_record = NULL;
    REFUSES(gguf_backend_create(&b, x.device, &p, &err), "event_record");
    i.event_record = record_event;
    i.plan_work_size = plan_size;
    REFUSES(gguf_backend_create(&b, x.device, &p, &err), "plan_create");
    i.plan_work_size = NULL;
    i.compute = NULL;
    REFUSES(gguf_backend_create(&b, x.device, &p, &err), "compute");
    struct {
        struct gguf_backend_iface i;
        void (*more)(void);
    } newer = { work, NULL };
    newer.i.struct_size = sizeof newer;
    p.iface = &newer.i;
    ok(gguf_backend_create(&b, x.device, &p, &err) == GGUF_OK,
       "a newer table that has nothing new");
    gguf_backend_destroy(b);
    newer.more = do_nothing;
    REFUSES(gguf_backend_create(&b, x.device, &p, &err), "struct_size");
    dp.caps = 0;
    d = device;
    d.struct_size = offsetof(struct gguf_device_iface, host_buft);
    ok(gguf_driver_add_device(x.driver, &dp, NULL, &err) == GGUF_OK,
       "an older table");
    struct gguf_driver *cpu;
    if (gguf_cpu_driver_create(&cpu, NULL, NULL) != GGUF_OK)
        exit(99);
    REFUSES(gguf_driver_add_device(cpu, &dp, NULL, &err), "no more devices");
    gguf_driver_destroy(cpu);
    destroy_all(&x);
}

int main(void)
{
    test_memory();
    test_failures();
    test_waiting();
    test_tables();
    return done_testing();
}
