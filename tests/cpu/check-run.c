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

int main(void)
{
    ops_begin();
    check_bad_numbers();
    check_abort();
    ops_end();
    return done_testing();
}
