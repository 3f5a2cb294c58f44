/* SPDX-License-Identifier: MIT */
/* check-run.c - computations that fail or are stopped */
#include "config.h"
#include "tests/cpu/ops.h"

/* Ids out of range give an error with any number of threads, and write
 * nothing. */
static void check_bad_numbers(void)
{
    for (int k = 0; k < 3; k++) {
        struct gguf_error err;
        ctx_t *c = new_ctx();
        tensor *a = source(c, GGUF_DTYPE_F32, PLAIN, 64, 50, 1, 1), *t;
        tensor *ids = gguf_tensor_create_2d(c, GGUF_DTYPE_I32, 40, 1);
        set_ids(ids, k == 2 ? 1 : 50);
        ((int32_t *)ids->data)[39] = k ? -1 : 50;
        tensor *b = source(c, GGUF_DTYPE_F32, PLAIN, 64, 40, 1, 1);
        t = k == 0   ? gguf_op_get_rows(c, a, ids)
            : k == 1 ? gguf_op_set_rows(c, a, b, ids)
                     : gguf_op_matmul_id(c, a, b, ids);
        t = gguf_op_matmul(c, a, gguf_op_relu(c, k == 2 ? b : t));
        struct gguf_graph *g = gguf_graph_create(c, 32);
        if (k == 2)
            gguf_graph_add(g, gguf_op_matmul_id(c, a, b, ids));
        bool all = gguf_graph_finish(c, g, t, &err) == GGUF_OK;
        for (int i = 0; i < N_TEAMS; i++)
            for (int round = 0; round < 50; round++)
                all = all && gguf_backend_compute(ops_backends[i], g, &err) ==
                                 GGUF_E_INVALID;
        ok(all, "%s", err.message);
        gguf_ctx_destroy(c);
    }
}

static bool stop_third(void *user)
{
    return ++*(int *)user == 3;
}

static void check_abort(void)
{
    struct gguf_error err;
    ctx_t *c = new_ctx();
    tensor *t = source(c, GGUF_DTYPE_F32, PLAIN, 64, 50, 1, 1);
    for (int i = 0; i < 6; i++)
        t = gguf_op_relu(c, t);
    struct gguf_graph *g = gguf_graph_create(c, 32);
    bool all = gguf_graph_finish(c, g, t, &err) == GGUF_OK;
    for (int i = 0; i < N_TEAMS; i++) {
        int n = 0;
        struct gguf_backend *b;
        struct gguf_cpu_params p = GGUF_CPU_PARAMS_INIT;
        p.pool = ops_pools[i];
        p.abort.fn = stop_third;
        p.abort.user = &n;
        if (gguf_cpu_backend_create(&b, &p, NULL) != GGUF_OK)
            exit(99);
        all = all && gguf_backend_compute(b, g, &err) == GGUF_E_CANCELLED &&
              n == 3;
        gguf_backend_destroy(b);
    }
    ok(all, "an abort callback stops after the third node: %s", err.message);
    gguf_ctx_destroy(c);
}

/* --- functions by name ---------------------------------------------------- */

static enum gguf_status note_nth(tensor *t, unsigned ith, unsigned nth,
                                 void *user)
{
    (void)t;
    if (!ith)
        *(unsigned *)user = nth;
    return GGUF_OK;
}

static void check_functions(void)
{
    struct gguf_error err;
    struct gguf_cpu_params p = GGUF_CPU_PARAMS_INIT;
    struct gguf_driver *d;
    struct gguf_backend *b;
    struct gguf_plan *plan;
    unsigned nth = 0;
    const struct gguf_custom note = { .struct_size = sizeof note,
                                      .compute = { note_nth, &nth } };
    int n = 0;
    ctx_t *c = new_ctx();
    tensor *t = source(c, GGUF_DTYPE_F32, PLAIN, 64, 50, 1, 1);
    for (int i = 0; i < 4; i++)
        t = gguf_op_map_1(c, t, &note);
    struct gguf_graph *g = gguf_graph_create(c, 8);
    p.pool = ops_pools[1];
    if (gguf_graph_finish(c, g, t, &err) ||
        gguf_cpu_driver_create(&d, &p, NULL) ||
        gguf_device_create_backend(gguf_driver_device(d, 0), &b, NULL) ||
        gguf_plan_create(&plan, b, g, NULL))
        exit(99);
    gguf_cpu_set_n_threads_fn *set_n_threads =
        (gguf_cpu_set_n_threads_fn *)gguf_driver_find_function(
            d, "set_n_threads");
    gguf_cpu_set_pool_fn *set_pool =
        (gguf_cpu_set_pool_fn *)gguf_driver_find_function(d, "set_pool");
    gguf_cpu_set_abort_fn *set_abort =
        (gguf_cpu_set_abort_fn *)gguf_driver_find_function(d, "set_abort");
    ok(set_n_threads && set_pool && set_abort &&
           !gguf_driver_find_function(d, "set_nothing"),
       "the CPU's functions by name");
    const unsigned first = gguf_pool_n_threads(ops_pools[1]);
    ok(!gguf_backend_compute(b, g, &err) && nth == first,
       "%u threads of the pool", nth);
    ok(!set_n_threads(b, first + 2, &err) &&
           !gguf_backend_compute(b, g, &err) && nth == first + 2,
       "%u of its own", nth);
    ok(set_n_threads(b, 0, &err) == GGUF_E_INVALID &&
           set_n_threads(b, GGUF_POOL_MAX_THREADS + 1, NULL) ==
               GGUF_E_INVALID &&
           !gguf_plan_compute(plan, NULL) && nth == first + 2,
       "%s", err.message);
    ok(!set_n_threads(b, 1, &err) && !gguf_plan_compute(plan, &err) &&
           nth == 1,
       "alone, with a plan from before");
    ok(!set_pool(b, ops_pools[1], &err) && !gguf_plan_compute(plan, &err) &&
           nth == first,
       "the pool again");
    const struct gguf_abort_callback third = { stop_third, &n };
    ok(!set_abort(b, third, &err) &&
           gguf_backend_compute(b, g, &err) == GGUF_E_CANCELLED && n == 3,
       "stopped: %s", err.message);
    gguf_plan_destroy(plan);
    if (set_n_threads(b, 2, NULL)) /* the old pool is destroyed */
        exit(99);
    gguf_backend_destroy(b);
    gguf_driver_destroy(d);
    gguf_ctx_destroy(c);
}

/* --- plans ---------------------------------------------------------------- */

static void check_plans(void)
{
    struct gguf_error err;
    struct gguf_plan *plan;
    ctx_t *c = new_ctx();
    tensor *x = source(c, GGUF_DTYPE_F32, PLAIN, 64, 500, 1, 1);
    tensor *w = source(c, GGUF_DTYPE_F32, PLAIN, 64, 64, 1, 1);
    tensor *small = source(c, GGUF_DTYPE_F32, PLAIN, 8, 2, 1, 1);
    struct gguf_graph *g = gguf_graph_create(c, 16);
    gguf_graph_add(g, gguf_op_view_1d(c, small, 8, 0));
    gguf_graph_add(g, gguf_op_relu(c, small));
    if (gguf_graph_finish(c, g, gguf_op_matmul(c, w, x), &err))
        exit(99);
    for (int i = 0; i < N_TEAMS; i++) {
        const unsigned n = gguf_pool_n_threads(ops_pools[i]);
        if (gguf_plan_create(&plan, ops_backends[i], g, &err))
            exit(99);
        ok(gguf_plan_n_threads(plan) == n &&
               gguf_plan_node_threads(plan, 0) == 0 &&
               gguf_plan_node_threads(plan, 1) == 1 &&
               gguf_plan_node_threads(plan, 2) == n &&
               gguf_plan_node_threads(plan, 3) == 0 &&
               gguf_plan_work_size(plan) > 64,
           "a plan of %u threads with %zu bytes of scratch",
           gguf_plan_n_threads(plan), gguf_plan_work_size(plan));
        gguf_plan_destroy(plan);
    }
    gguf_ctx_destroy(c);
}

/* Number of threads of a backend with these parameters. */
static unsigned threads_of(const struct gguf_cpu_params *p)
{
    struct gguf_error err;
    struct gguf_backend *b;
    struct gguf_plan *plan;
    ctx_t *c = new_ctx();
    struct gguf_graph *g = gguf_graph_create(c, 4);
    tensor *x = source(c, GGUF_DTYPE_F32, PLAIN, 64, 500, 1, 1);
    if (gguf_graph_finish(c, g, gguf_op_silu(c, x), &err) ||
        gguf_cpu_backend_create(&b, p, &err) ||
        gguf_plan_create(&plan, b, g, &err) || gguf_plan_compute(plan, &err))
        exit(99);
    const unsigned n = gguf_plan_n_threads(plan);
    gguf_plan_destroy(plan);
    gguf_backend_destroy(b);
    gguf_ctx_destroy(c);
    return n;
}

static void check_defaults(void)
{
    struct gguf_error err;
    struct gguf_cpu_params p = GGUF_CPU_PARAMS_INIT;
    struct gguf_backend *b;
    struct gguf_registry *r;
    const unsigned n = threads_of(NULL);
    ok(n == gguf_cpu_count() && threads_of(&p) == n,
       "without a pool: %u threads, one for each processor", n);
    p.n_threads = 3;
    ok(threads_of(&p) == 3, "or the number asked for");
    p.n_threads = 1;
    ok(threads_of(&p) == 1, "or one");
    p.n_threads = GGUF_POOL_MAX_THREADS + 1;
    ok(gguf_cpu_backend_create(&b, &p, &err) == GGUF_E_INVALID && !b, "%s",
       err.message);
    if (gguf_registry_create(&r, NULL, &err))
        exit(99);
    struct gguf_device *d = gguf_registry_find_best(r);
    ok(gguf_registry_n_drivers(r) >= 1 && d &&
           gguf_registry_find(r, "CPU") == d &&
           gguf_device_driver(d) == gguf_registry_driver(r, 0),
       "a registry comes with the CPU, whose driver it knows");
    gguf_registry_destroy(r);
    if (gguf_registry_create_empty(&r, NULL, &err))
        exit(99);
    ok(!gguf_registry_n_drivers(r) && !gguf_registry_find_best(r),
       "an empty one with nothing");
    gguf_registry_destroy(r);
}

/* A device with a small largest buffer. */
static void check_small_buffers(void)
{
    struct gguf_error err;
    struct gguf_host_buft_params bp = GGUF_HOST_BUFT_PARAMS_INIT;
    struct gguf_cpu_params p = GGUF_CPU_PARAMS_INIT;
    struct gguf_buft *buft;
    struct gguf_backend *b;
    struct gguf_galloc *ga;
    struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    cp.mem_size = 1 << 14;
    cp.no_alloc = true;
    bp.max_size = 4096;
    if (gguf_host_buft_create(&buft, &bp, &err))
        exit(99);
    p.buft = buft;
    p.n_threads = 1;
    if (gguf_cpu_backend_create(&b, &p, &err) ||
        gguf_ctx_create(&c, &cp, &err) ||
        gguf_galloc_create(&ga, NULL, gguf_backend_buft(b), &err))
        exit(99);
    struct gguf_graph *g = gguf_graph_create(c, 4);
    gguf_graph_add(
        g, gguf_op_neg(c, gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 400)));
    ok(gguf_backend_buft(b) == buft &&
           gguf_galloc_alloc(ga, g, &err) == GGUF_OK &&
           gguf_backend_compute(b, g, &err) == GGUF_OK,
       "a backend whose buffers are small computes small graphs");
    gguf_graph_clear(g);
    gguf_graph_add(
        g, gguf_op_sum(c, gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 2000)));
    ok(gguf_galloc_alloc(ga, g, &err) == GGUF_E_LIMIT, "and no others: %s",
       err.message);
    gguf_galloc_destroy(ga);
    gguf_backend_destroy(b);
    gguf_buft_destroy(buft);
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_plans();
    check_defaults();
    check_small_buffers();
    check_bad_numbers();
    check_abort();
    check_functions();
    ops_end();
    return done_testing();
}
