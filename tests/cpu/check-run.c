/* check-run.c - a computation that fails or is stopped */
#include "config.h"
#include "tests/cpu/ops.h"

/* Numbers that are out of range: a status from every team, nothing else. */
static void check_bad_numbers(void)
{
    for (int k = 0; k < 3; k++) {
        struct gguf_error err;
        ctx_t *c = new_ctx();
        tensor *a = source(c, GGUF_DTYPE_F32, PLAIN, 64, 50, 1, 1), *t;
        tensor *ids = gguf_tensor_2d(c, GGUF_DTYPE_I32, 40, 1);
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

static int stop_third(void *user)
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
        p.abort = stop_third;
        p.abort_user = &n;
        if (gguf_cpu_backend_create(&b, &p, NULL) != GGUF_OK)
            exit(99);
        all = all && gguf_backend_compute(b, g, &err) == GGUF_E_CANCELLED &&
              n == 3;
        gguf_backend_destroy(b);
    }
    ok(all, "an abort callback stops behind the third node: %s", err.message);
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
    const struct gguf_custom note = { note_nth, &nth, 0, 0 };
    int n = 0;
    ctx_t *c = new_ctx();
    tensor *t = source(c, GGUF_DTYPE_F32, PLAIN, 64, 50, 1, 1);
    for (int i = 0; i < 4; i++)
        t = gguf_op_map_1(c, t, &note);
    struct gguf_graph *g = gguf_graph_create(c, 8);
    p.pool = ops_pools[1];
    if (gguf_graph_finish(c, g, t, &err) ||
        gguf_cpu_driver_create(&d, &p, NULL) ||
        gguf_device_backend(gguf_driver_device(d, 0), &b, NULL) ||
        gguf_plan_create(&plan, b, g, NULL))
        exit(99);
    gguf_cpu_set_n_threads_fn *set_n_threads =
        (gguf_cpu_set_n_threads_fn *)gguf_driver_function(d, "set_n_threads");
    gguf_cpu_set_pool_fn *set_pool =
        (gguf_cpu_set_pool_fn *)gguf_driver_function(d, "set_pool");
    gguf_cpu_set_abort_fn *set_abort =
        (gguf_cpu_set_abort_fn *)gguf_driver_function(d, "set_abort");
    ok(set_n_threads && set_pool && set_abort &&
           !gguf_driver_function(d, "set_nothing"),
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
    set_pool(b, ops_pools[1]);
    ok(!gguf_plan_compute(plan, &err) && nth == first, "the pool again");
    set_abort(b, stop_third, &n);
    ok(gguf_backend_compute(b, g, &err) == GGUF_E_CANCELLED && n == 3,
       "stopped: %s", err.message);
    gguf_plan_destroy(plan);
    if (set_n_threads(b, 2, NULL)) /* its pool goes with it */
        exit(99);
    gguf_backend_destroy(b);
    gguf_driver_destroy(d);
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_bad_numbers();
    check_abort();
    check_functions();
    ops_end();
    return done_testing();
}
