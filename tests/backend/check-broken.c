/* SPDX-License-Identifier: MIT */
/* check-broken.c - backends that break the rules of their interface are
 * refused
 *
 * Memory that tensors cannot lie in, sizes that are too small for tensors,
 * functions that succeed and make nothing, lists with a NULL: each gives
 * GGUF_E_INVALID and a message, and all memory is freed.
 */
#include "config.h"
#include "gguf/backend_impl.h"
#include "gguf/compute.h"
#include "tests/tap.h"

#define REFUSES(call, what)                                                   \
    ok((call) == GGUF_E_INVALID && strstr(err.message, what), "%s",           \
       err.message)

static int n_allocated;

/* Bytes from an aligned address to a buffer's memory. */
static size_t skew;

static enum gguf_status alloc_buffer(const struct gguf_buft *buft,
                                     struct gguf_buffer *b, size_t size,
                                     struct gguf_error *err)
{
    const uintptr_t align = gguf_buft_alignment(buft);
    char *p = malloc(size + 2 * align);
    (void)err;
    n_allocated++;
    gguf_buffer_set_memory(b, p + (-(uintptr_t)p % align) + skew, p);
    return GGUF_OK;
}

static void free_it(struct gguf_buffer *b)
{
    n_allocated--;
    free(gguf_buffer_priv(b));
}

static const struct gguf_buft_iface memory = {
    .struct_size = sizeof memory,
    .alloc = alloc_buffer,
    .free = free_it,
};

static enum gguf_status alloc_nothing(const struct gguf_buft *buft,
                                      struct gguf_buffer *b, size_t size,
                                      struct gguf_error *err)
{
    (void)buft, (void)b, (void)size, (void)err;
    return GGUF_OK;
}

static enum gguf_status alloc_null(const struct gguf_buft *buft,
                                   struct gguf_buffer *b, size_t size,
                                   struct gguf_error *err)
{
    (void)buft, (void)size, (void)err;
    n_allocated++;
    gguf_buffer_set_memory(b, NULL, malloc(1));
    return GGUF_OK;
}

static uint64_t one_less(const struct gguf_buft *buft,
                         const struct gguf_tensor *t)
{
    (void)buft;
    return gguf_tensor_size(t) - 1;
}

static bool supports_all(const struct gguf_device *d,
                         const struct gguf_tensor *t)
{
    (void)d, (void)t;
    return true;
}

static enum gguf_status backend_nothing(struct gguf_device *d,
                                        struct gguf_backend **out,
                                        struct gguf_error *err)
{
    (void)d, (void)out, (void)err;
    return GGUF_OK;
}

static enum gguf_status event_nothing(struct gguf_device *d,
                                      struct gguf_event **out,
                                      const struct gguf_allocator *a,
                                      struct gguf_error *err)
{
    (void)d, (void)out, (void)a, (void)err;
    return GGUF_OK;
}

static enum gguf_status host_nothing(struct gguf_device *d,
                                     struct gguf_buffer **out, void *ptr,
                                     size_t size,
                                     const struct gguf_allocator *a,
                                     struct gguf_error *err)
{
    (void)d, (void)out, (void)ptr, (void)size, (void)a, (void)err;
    return GGUF_OK;
}

/* Memory of a type with this table is refused for a buffer, for a context's
 * tensors and for a graph, and is freed. */
static void refuse_memory(const struct gguf_buft_iface *table,
                          const char *what)
{
    struct gguf_buft_params bp = GGUF_BUFT_PARAMS_INIT;
    struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
    struct gguf_buft *buft;
    struct gguf_buffer *b;
    struct gguf_galloc *ga;
    struct gguf_ctx *ctx;
    struct gguf_error err;
    bp.iface = table;
    bp.name = "bad";
    cp.mem_size = 1 << 14;
    cp.no_alloc = true;
    n_allocated = 0;
    if (gguf_buft_create(&buft, &bp, &err) != GGUF_OK ||
        gguf_ctx_create(&ctx, &cp, NULL) != GGUF_OK ||
        gguf_galloc_create(&ga, NULL, buft, NULL) != GGUF_OK)
        exit(99);
    struct gguf_tensor *t = gguf_tensor_create_1d(ctx, GGUF_DTYPE_F32, 16);
    struct gguf_graph *g = gguf_graph_create(ctx, 4);
    if (gguf_graph_finish(ctx, g, gguf_op_neg(ctx, t), &err) != GGUF_OK)
        exit(99);
    if (!table->tensor_size) /* a buffer has no tensors yet */
        REFUSES(gguf_buffer_create(&b, buft, 64, NULL, &err), what);
    REFUSES(gguf_galloc_alloc(ga, g, &err), what);
    gguf_galloc_destroy(ga);
    t->buffer = NULL;
    t->data = NULL;
    REFUSES(gguf_ctx_alloc_tensors(ctx, buft, NULL, &b, &err), what);
    ok(!t->data && !t->buffer && n_allocated == 0, "no memory is kept");
    gguf_ctx_destroy(ctx);
    gguf_buft_destroy(buft);
}

static void test_bad_memory(void)
{
    struct gguf_buft_iface m = memory;
    m.alloc = alloc_nothing;
    refuse_memory(&m, "'bad': alloc gave memory at address 0x0");
    m.alloc = alloc_null;
    refuse_memory(&m, "'bad': alloc gave memory at address 0x0");
    m = memory;
    skew = 4;
    refuse_memory(&m, "must be a multiple of 64");
    skew = 0;
    m.tensor_size = one_less;
    refuse_memory(&m, "tensor_size of its buffer type");
}

static void test_bad_device(void)
{
    const struct gguf_device_iface table = {
        .struct_size = sizeof table,
        .supports_op = supports_all,
        .create_backend = backend_nothing,
        .create_event = event_nothing,
        .buffer_from_host = host_nothing,
    };
    const struct gguf_driver_iface nothing = { sizeof nothing, NULL, NULL };
    struct gguf_driver_params p = GGUF_DRIVER_PARAMS_INIT;
    struct gguf_device_params dp = GGUF_DEVICE_PARAMS_INIT;
    struct gguf_driver *driver;
    struct gguf_device *bad;
    struct gguf_backend *b;
    struct gguf_buffer *buffer;
    struct gguf_event *e;
    struct gguf_error err;
    char bytes[4];
    p.iface = &nothing;
    dp.iface = &table;
    p.name = dp.name = dp.description = "bad";
    dp.buft = gguf_host_buft();
    dp.caps = GGUF_DEVICE_CAP_EVENTS | GGUF_DEVICE_CAP_HOST_PTR;
    if (gguf_driver_create(&driver, &p, &err) != GGUF_OK ||
        gguf_driver_add_device(driver, &dp, &bad, &err) != GGUF_OK)
        exit(99);
    REFUSES(gguf_device_create_backend(bad, &b, &err), "bad: create_backend");
    REFUSES(gguf_event_create(&e, bad, NULL, &err), "bad: create_event");
    REFUSES(gguf_device_create_buffer_from_host(bad, &buffer, bytes, 4, NULL,
                                                &err),
            "bad: buffer_from_host");
    gguf_driver_destroy(driver);
}

/* Lists with a NULL in them. */
static void test_null_lists(void)
{
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_sched *s;
    struct gguf_galloc *ga;
    struct gguf_backend *list[2] = { NULL, NULL };
    const struct gguf_buft *bufts[2] = { gguf_host_buft(), NULL };
    struct gguf_error err;
    if (gguf_cpu_backend_create(&list[1], NULL, NULL) != GGUF_OK)
        exit(99);
    p.n_backends = 2;
    REFUSES(gguf_sched_create(&s, &p, &err), "backend 1 of 2 is NULL");
    p.backends = list;
    REFUSES(gguf_sched_create(&s, &p, &err), "backend 1 of 2 is NULL");
    list[0] = list[1];
    list[1] = NULL;
    REFUSES(gguf_sched_create(&s, &p, &err), "backend 2 of 2 is NULL");
    REFUSES(gguf_galloc_create_n(&ga, NULL, bufts, 2, &err),
            "type 2 of 2 is NULL");
    REFUSES(gguf_galloc_create_n(&ga, NULL, NULL, 2, &err),
            "type 1 of 2 is NULL");
    gguf_backend_destroy(list[0]);
}

int main(void)
{
    test_bad_memory();
    test_bad_device();
    test_null_lists();
    return done_testing();
}
