/* SPDX-License-Identifier: MIT */
/* check-buffers.c - buffers: tensors in them, several parts, failing memory */
#include "config.h"
#include "backend/buffer_version.h"
#include "gguf/cpu.h"
#include "gguf/op.h"
#include "tests/failalloc.h"
#include "tests/ignore_status.h"
#include "tests/tap.h"

typedef struct gguf_tensor tensor;

static void bail_out(const char *what, const struct gguf_error *err)
{
    printf("Bail out! %s: %s\n", what, err->message);
    exit(1);
}

/* --- buffers -------------------------------------------------------------- */

/* Buffers of 0 bytes. */
static void check_nothing(void)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_buffer *b;
    p.no_alloc = true;
    p.mem_size = 4 * gguf_tensor_overhead();
    if (gguf_ctx_create(&c, &p, &err))
        bail_out("context", &err);
    ok(!gguf_ctx_alloc_tensors(c, gguf_host_buft(), NULL, &b, &err) &&
           gguf_buffer_size(b) == 0,
       "a context without tensors: a buffer of nothing");
    tensor *t = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 0, 3);
    ok(!gguf_buffer_place_tensor(b, t, 0, &err) && t->buffer == b &&
           !gguf_tensor_set(t, NULL, 0, 0, &err) &&
           !gguf_tensor_get(t, NULL, 0, 0, &err) &&
           !gguf_tensor_fill(t, 1, 0, 0, &err) &&
           gguf_tensor_set(t, "1234", 0, 4, &err) == GGUF_E_INVALID,
       "holds a tensor of nothing: %s", err.message);
    gguf_buffer_reset(b);
    gguf_buffer_destroy(b);
    ok(!gguf_buffer_create_from_host(&b, NULL, 0, NULL, &err) &&
           gguf_buffer_size(b) == 0,
       "one around nothing");
    gguf_buffer_destroy(b);
    gguf_ctx_destroy(c);
}

static void check_buffers(void)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_buffer *b, *f;
    static float mem[64];
    p.mem_size = 1 << 16;
    p.no_alloc = true;
    if (gguf_ctx_create(&c, &p, &err))
        bail_out("context", &err);
    tensor *a = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 5, 3);
    tensor *v = gguf_op_view_1d(c, a, 2, 8);
    tensor *q = gguf_tensor_create_1d(c, GGUF_DTYPE_Q8_0, 64);
    ok(gguf_tensor_set(a, mem, 0, 4, &err) == GGUF_E_INVALID,
       "set without memory: %s", err.message);
    if (gguf_ctx_alloc_tensors(c, gguf_host_buft(), NULL, &b, &err))
        bail_out("tensors", &err);
    ok(a->data && q->data && (uintptr_t)q->data % 64 == 0 &&
           v->data == (char *)a->data + 8 && v->buffer == b &&
           gguf_buffer_size(b) == 128 + 64,
       "all tensors of a context in one buffer");
    ignore_status(gguf_buffer_clear(b, 1, NULL));
    float one[15], got[15];
    for (int i = 0; i < 15; i++)
        one[i] = (float)i;
    ok(!gguf_tensor_set(a, one, 0, 60, &err) &&
           !gguf_tensor_get(v, got, 0, 8, &err) && got[0] == 2 &&
           got[1] == 3 && ((uint8_t *)q->data)[67] == 1,
       "set, get, clear");
    ok(gguf_tensor_get(a, got, 56, 8, &err) == GGUF_E_INVALID,
       "after the end: %s", err.message);
    ok(!gguf_tensor_fill(v, 0, 4, 4, &err) && ((float *)a->data)[3] == 0 &&
           ((float *)a->data)[2] == 2,
       "memset");

    if (gguf_buffer_create_from_host(&f, mem, sizeof mem, NULL, &err))
        bail_out("buffer", &err);
    tensor *m = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 5, 3);
    ok(gguf_buffer_place_tensor(f, m, 200, &err) == GGUF_E_INVALID, "%s",
       err.message);
    ok(!gguf_buffer_place_tensor(f, m, 4, &err) && m->data == mem + 1 &&
           !gguf_tensor_copy(a, m, &err) && mem[3] == 2,
       "a tensor in memory of somebody else, and a copy");
    ok(gguf_buffer_place_tensor(f, m, 4, &err) == GGUF_E_INVALID, "%s",
       err.message);
    ok(gguf_tensor_copy(a, q, &err) == GGUF_E_SHAPE, "%s", err.message);
    gguf_buffer_destroy(f);
    gguf_buffer_destroy(b);
    gguf_ctx_destroy(c);
    if (gguf_buffer_create(&b, gguf_host_buft(), 0, NULL, &err))
        bail_out("buffer", &err);
    ok(gguf_buffer_size(b) == 0 && !gguf_buffer_base(b),
       "a buffer of nothing");
    ignore_status(gguf_buffer_clear(b, 1, NULL));
    gguf_buffer_destroy(b);
}

/* --- failing memory ------------------------------------------------------- */

/* Build, allocate and compute a graph. Returns the first failure. */
static enum gguf_status whole_way(const struct gguf_allocator *a)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_ctx *c = NULL;
    struct gguf_galloc *ga = NULL;
    struct gguf_backend *b = NULL;
    struct gguf_registry *r = NULL;
    struct gguf_driver *d = NULL;
    struct gguf_pool *pool = NULL;
    struct gguf_buffer *w = NULL;
    struct gguf_plan *plan = NULL;
    struct gguf_error err = { GGUF_OK, 0, 0, "" };
    p.allocator = cp.allocator = pp.allocator = a;
    p.mem_size = 1 << 18;
    p.no_alloc = true;
    pp.n_threads = 2;
#define STEP(call)                                                            \
    do {                                                                      \
        if (err.status == GGUF_OK && (call) != err.status)                    \
            bail_out("status and error differ", &err);                        \
    } while (0)
    STEP(gguf_ctx_create(&c, &p, &err));
    STEP(gguf_pool_create(&pool, &pp, &err));
    cp.pool = pool;
    STEP(gguf_registry_create_empty(&r, a, &err));
    STEP(gguf_cpu_driver_create(&d, &cp, &err));
    if (err.status == GGUF_OK)
        STEP(gguf_registry_add_driver(r, d, &err));
    if (err.status == GGUF_OK)
        STEP(gguf_device_create_backend(gguf_registry_find_best(r), &b, &err));
    if (err.status == GGUF_OK) {
        tensor *x = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 64, 100);
        tensor *m = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 64, 64);
        STEP(gguf_ctx_alloc_tensors(c, gguf_host_buft(), a, &w, &err));
        if (err.status == GGUF_OK)
            ignore_status(gguf_buffer_clear(w, 0, NULL));
        struct gguf_graph *g = gguf_graph_create(c, 64);
        for (int i = 0; i < 20; i++)
            x = gguf_op_add(c, gguf_op_matmul(c, m, x), gguf_op_silu(c, x));
        STEP(gguf_graph_finish(c, g, x, &err));
        STEP(gguf_galloc_create(&ga, a, gguf_backend_buft(b), &err));
        STEP(gguf_galloc_reserve(ga, g, &err));
        STEP(gguf_galloc_alloc(ga, g, &err));
        STEP(gguf_backend_compute(b, g, &err));
        STEP(gguf_plan_create(&plan, b, g, &err));
        STEP(gguf_plan_compute(plan, &err));
    }
    gguf_plan_destroy(plan);
    gguf_galloc_destroy(ga);
    gguf_buffer_destroy(w);
    gguf_backend_destroy(b);
    gguf_registry_destroy(r);
    gguf_pool_destroy(pool);
    gguf_ctx_destroy(c);
    return err.status;
}

static void check_failing(void)
{
    struct failalloc f;
    long n = 0;
    bool right = true;
    enum gguf_status st;
    do {
        st = whole_way(failalloc_from(&f, (unsigned)n++));
        right = right && (st == GGUF_E_NOMEM || st == GGUF_OK) && !f.live;
    } while (st != GGUF_OK && n < 1000);
    ok(st == GGUF_OK && n > 15 && right,
       "memory that fails at the n-th call, for %ld n: a status, no leak",
       n - 1);
}

/* A buffer type with a largest size: several buffers act as one. If memory
 * runs out on the way, no tensor remains in a freed one. */
static void check_parts(void)
{
    enum { N = 6 };
    struct gguf_host_buft_params bp = GGUF_HOST_BUFT_PARAMS_INIT;
    struct gguf_buft *small;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_buffer *b;
    struct gguf_error err;
    struct failalloc f;
    tensor *t[N];
    enum gguf_status st;
    unsigned n = 0;
    bool left = false;
    bp.max_size = 256;
    p.mem_size = 1 << 16;
    p.no_alloc = true;
    if (gguf_ctx_create(&c, &p, &err) ||
        gguf_host_buft_create(&small, &bp, &err))
        bail_out("context", &err);
    ok(gguf_buft_max_size(small) == 256 && gguf_buft_is_host(small) &&
           gguf_buft_alignment(small) == GGUF_TENSOR_ALIGN,
       "a type of buffer with a maximum size");
    ok(gguf_buffer_create(&b, small, 257, NULL, &err) == GGUF_E_LIMIT, "%s",
       err.message);
    for (int i = 0; i < N; i++)
        t[i] = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 30);
    do {
        st = gguf_ctx_alloc_tensors(c, small, failalloc_init(&f, n++), &b,
                                    &err);
        for (int i = 0; st != GGUF_OK && i < N; i++)
            left = left || t[i]->data || t[i]->buffer || f.live || b;
    } while (st == GGUF_E_NOMEM && n < 100);
    ok(st == GGUF_OK && n > 8 && !left,
       "memory that fails at one of %u calls leaves no tensor anywhere", n);
    ignore_status(gguf_buffer_clear(b, 3, NULL));
    bool good = gguf_buffer_size(b) == 3 * 256 && !gguf_buffer_base(b) &&
                t[0]->buffer == t[1]->buffer && t[1]->buffer != t[2]->buffer;
    for (int i = 0; i < N; i++)
        good = good && ((uint8_t *)t[i]->data)[119] == 3;
    ok(good, "three buffers as one object");
    gguf_buffer_destroy(b);
    ok(!f.live, "are destroyed with it");
    gguf_buft_destroy(small);
    bp.max_size = 64;
    bp.alignment = 16;
    if (gguf_host_buft_create(&small, &bp, &err))
        bail_out("type", &err);
    gguf_ctx_reset(c);
    t[0] = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 30);
    ok(gguf_ctx_alloc_tensors(c, small, NULL, &b, &err) == GGUF_E_LIMIT &&
           !t[0]->data,
       "a tensor above the limit: %s", err.message);
    gguf_ctx_reset(c);
    t[0] = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 3);
    t[1] = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 3);
    if (gguf_ctx_alloc_tensors(c, small, NULL, &b, &err))
        bail_out("tensors", &err);
    ok((char *)t[1]->data - (char *)t[0]->data == 16, "another alignment");
    gguf_buffer_destroy(b);
    gguf_buft_destroy(small);
    gguf_buft_destroy(NULL);
    bp.alignment = 48;
    ok(gguf_host_buft_create(&small, &bp, &err) == GGUF_E_INVALID && !small,
       "%s", err.message);
    gguf_ctx_destroy(c);
}

/* After weights change, data derived from them is known to be stale. */
static void check_age(void)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_buffer *b;
    p.no_alloc = true;
    p.mem_size = 2 * gguf_tensor_overhead();
    if (gguf_ctx_create(&c, &p, &err))
        bail_out("context", &err);
    tensor *t = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 4);
    tensor *u = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 4);
    if (gguf_ctx_alloc_tensors(c, gguf_host_buft(), NULL, &b, &err))
        bail_out("tensors", &err);
    ok(!gg_buffer_version_ref(b) && !gg_buffer_version_ref(NULL),
       "a buffer of no weights has no age");
    gguf_buffer_set_usage(b, GGUF_USAGE_WEIGHTS);
    struct gg_buffer_version *age = gg_buffer_version_ref(b);
    gguf_buffer_set_usage(b, GGUF_USAGE_WEIGHTS);
    struct gg_buffer_version *again = gg_buffer_version_ref(b);
    if (!age)
        bail_out("age", &err);
    uint64_t n[7] = { gg_buffer_version_n_changes(age) };
    bool good = !gguf_tensor_set(t, "1234", 0, 4, &err);
    n[1] = gg_buffer_version_n_changes(age);
    good = good && !gguf_tensor_fill(t, 0, 0, 4, &err);
    n[2] = gg_buffer_version_n_changes(age);
    good = good && !gguf_tensor_copy(t, u, &err);
    n[3] = gg_buffer_version_n_changes(age);
    good = good && !gguf_buffer_clear(b, 0, &err);
    n[4] = gg_buffer_version_n_changes(age);
    char got[4];
    good = good && !gguf_tensor_get(t, got, 0, 4, &err);
    n[5] = gg_buffer_version_n_changes(age);
    gguf_buffer_destroy(b);
    n[6] = gg_buffer_version_n_changes(age);
    ok(good && again == age && n[1] > n[0] && n[2] > n[1] && n[3] > n[2] &&
           n[4] > n[3],
       "one of weights has one, another when data are set, or cleared");
    ok(n[5] == n[4] && n[6] > n[5],
       "not when they are read, but when it is destroyed");
    gg_buffer_version_unref(age);
    gg_buffer_version_unref(again);
    gg_buffer_version_unref(NULL);
    gguf_ctx_destroy(c);
}

int main(void)
{
    check_age();
    check_buffers();
    check_nothing();
    check_parts();
    check_failing();
    return done_testing();
}
