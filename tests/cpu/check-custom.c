/* SPDX-License-Identifier: MIT */
/* check-custom.c - custom operations, and queries about operations: names,
 * costs, support by a backend */
#include "config.h"
#include "tests/cpu/ops.h"
#include "graph/op_table.h"

#include <stdatomic.h>

/* A weighted sum of the sources, split by elements. It counts its calls. */
struct sum {
    double weight[10];
    _Atomic unsigned calls, most; /* calls, and the largest nth */
};

static enum gguf_status compute_weighted(tensor *t, unsigned ith, unsigned nth,
                                         void *user)
{
    struct sum *s = user;
    const int64_t n = gguf_tensor_n_elements(t);
    atomic_fetch_add(&s->calls, 1);
    if (nth > atomic_load(&s->most))
        atomic_store(&s->most, nth);
    for (int64_t i = n * ith / nth; i < n * (ith + 1) / nth; i++) {
        double v = 0;
        for (int k = 0; k < GGUF_TENSOR_SRC && t->src[k]; k++)
            v += s->weight[k] * linear(t->src[k], i);
        ((float *)t->data)[i] = (float)v;
    }
    return GGUF_OK;
}

static double f_weighted(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                         int64_t i3, double *tol)
{
    struct gguf_custom c;
    memcpy(&c, t->op_params, sizeof c);
    const struct sum *s = c.compute.user;
    double v = 0;
    for (int k = 0; k < GGUF_TENSOR_SRC && t->src[k]; k++)
        v += s->weight[k] * at(t->src[k], i0, i1, i2, i3);
    *tol = ulp(t, v);
    return v;
}

static void check_sums(void)
{
    static const uint32_t limits[] = { 0, 1, 2, 5, 100 };
    for (int k = 0; k < 5 * 5; k++) {
        ctx_t *c = new_ctx();
        struct sum s = { .weight = { 1, -2, 0.5, 3, 7, -1, 2, 4, -3, 0.25 } };
        struct gguf_custom f = { .struct_size = sizeof f,
                                 .compute = { compute_weighted, &s },
                                 .n_tasks = limits[k % 5] };
        tensor *src[10], *t = NULL;
        for (int i = 0; i < 10; i++)
            src[i] = source(c, GGUF_DTYPE_F32, (enum layout)(i % N_LAYOUTS),
                            33, 4, 3, 2);
        int64_t nothing[] = { 0, 4, 3, 2 };
        switch (k / 5) {
        case 0: t = gguf_op_map_1(c, src[0], &f); break;
        case 1: t = gguf_op_map_2(c, src[0], src[1], &f); break;
        case 2: t = gguf_op_map_3(c, src[0], src[1], src[2], &f); break;
        case 3:
            t = gguf_op_custom(c, GGUF_DTYPE_F32, src[0]->ne, 10, src, &f);
            break;
        case 4: t = gguf_op_custom(c, GGUF_DTYPE_F32, nothing, 0, src, &f);
        }
        run_case(c, t, f_weighted, "custom with way %d, at most %u tasks",
                 k / 5, (unsigned)f.n_tasks);
        /* teams of 1, 2, 3 and 8 threads */
        unsigned calls = 0, most = f.n_tasks ? GG_MIN(f.n_tasks, 8) : 8;
        for (unsigned n = 1; n <= 8; n = n == 3 ? 8 : n + 1)
            calls += f.n_tasks ? GG_MIN(f.n_tasks, n) : n;
        ok(s.calls == calls && s.most == most,
           "its function was called %u times, for %u parts at most",
           (unsigned)s.calls, (unsigned)s.most);
        gguf_ctx_destroy(c);
    }
}

static enum gguf_status refuse_node(tensor *t, unsigned ith, unsigned nth,
                                    void *user)
{
    (void)t;
    (void)user;
    return ith + 1 == nth ? GGUF_E_LIMIT : GGUF_OK;
}

static void check_failures(void)
{
    struct gguf_error err = { 0 };
    ctx_t *c = new_ctx();
    struct gguf_custom f = { .struct_size = sizeof f,
                             .compute = { refuse_node, NULL } };
    tensor *a = source(c, GGUF_DTYPE_F32, PLAIN, 64, 50, 1, 1);
    tensor *t = gguf_tensor_set_name(gguf_op_map_1(c, a, &f), "mine");
    struct gguf_graph *g = gguf_graph_create(c, 8);
    bool all = gguf_graph_finish(c, g, gguf_op_relu(c, t), &err) == GGUF_OK;
    for (int i = 0; i < N_TEAMS; i++)
        all = all &&
              gguf_backend_compute(ops_backends[i], g, &err) == GGUF_E_LIMIT &&
              strstr(err.message, "custom") && strstr(err.message, "'mine'");
    ok(all, "a function's status ends the computation: %s", err.message);
    gguf_ctx_reset(c);
    f.compute.fn = NULL;
    a = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 3);
    refused(c, gguf_op_map_1(c, a, &f), GGUF_E_INVALID, "custom",
            "no function", "[3]");
    f.compute.fn = refuse_node;
    refused(c, gguf_op_map_1(c, NULL, &f), GGUF_E_INVALID, "custom",
            "source 0 is NULL");
    refused(c, gguf_op_custom(c, GGUF_DTYPE_F32, shapes[0], 11, NULL, &f),
            GGUF_E_INVALID, "11 sources");
    gguf_ctx_destroy(c);
}

/* Every operation has a row in both tables; operations without work have none
 * in the CPU's. */
static void check_table(void)
{
    bool named = true, costed = true;
    for (uint32_t op = 0; op < GGUF_N_OPS; op++) {
        const struct gg_op_row *r = gg_op_row(op);
        named = named && gguf_op_name(op) && *gguf_op_name(op) && r->shape &&
                r->n_src + r->n_opt <= GGUF_TENSOR_SRC;
        costed = costed && r->cost;
        for (uint32_t o = 0; o < op; o++)
            named = named && strcmp(gguf_op_name(o), gguf_op_name(op)) != 0;
    }
    ok(named && !gguf_op_name(GGUF_N_OPS), "operations have names");
    ok(costed, "operations have costs");

    ctx_t *c = new_ctx();
    tensor *a = source(c, GGUF_DTYPE_F32, PLAIN, 64, 5, 1, 1);
    tensor *b = source(c, GGUF_DTYPE_F32, PLAIN, 64, 7, 1, 1);
    ok(gg_op_row(GGUF_OP_ADD)->cost(gguf_op_add(c, a, a)) == 320 &&
           gg_op_row(GGUF_OP_MATMUL)->cost(gguf_op_matmul(c, a, b)) ==
               64 * 5 * 7 &&
           gg_op_row(GGUF_OP_SUM)->cost(gguf_op_sum(c, a)) == 320 &&
           gg_op_row(GGUF_OP_RESHAPE)->cost(gguf_op_reshape_1d(c, a, 320)) ==
               0,
       "costs count steps");
    gguf_ctx_set_no_alloc(c, true);
    a = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 1 << 20, 1 << 30);
    ok(gg_op_row(GGUF_OP_MATMUL)
               ->cost(gguf_op_matmul(
                   c, a, gguf_op_reshape_2d(c, a, 1 << 20, 1 << 30))) ==
           UINT64_MAX,
       "costs do not overflow");
    a = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 9, 256);
    b = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 256, 2);
    ok(gguf_backend_supports_op(ops_backends[0], gguf_op_dup(c, a)) &&
           !gguf_backend_supports_op(ops_backends[0],
                                     gguf_op_cast(c, a, GGUF_DTYPE_I32)) &&
           !gguf_backend_supports_op(
               ops_backends[0], gguf_op_matmul(c, gguf_op_transpose(c, a), b)),
       "the backend reports the operations that it refuses");
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_sums();
    check_failures();
    check_table();
    ops_end();
    return done_testing();
}
