/* bench-graph.c - what building, planning and dispatching a graph costs
 *
 * Not run by make check:
 *     make tests/cpu/bench-graph && tests/cpu/bench-graph [THREADS]
 */
#include "config.h"
#include "gguf/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N_NODES = 10000, ROUNDS = 30 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(enum gguf_status st, const struct gguf_error *err)
{
    if (st == GGUF_OK)
        return;
    fprintf(stderr, "bench-graph: %s\n", err->message);
    exit(1);
}

/* A chain with branches, elements per tensor. */
static struct gguf_graph *build(struct gguf_ctx *c, int64_t n)
{
    struct gguf_error err;
    struct gguf_graph *g = gguf_graph_create(c, 2 * N_NODES);
    struct gguf_tensor *x = gguf_tensor_2d(c, GGUF_DTYPE_F32, n / 2, 2);
    struct gguf_tensor *y = x;
    for (int i = 0; i < N_NODES / 4; i++) {
        struct gguf_tensor *r = gguf_op_reshape_2d(c, x, n / 2, 2);
        struct gguf_tensor *s = gguf_op_scale(c, r, 0.5f);
        y = gguf_op_add(c, s, y);
        x = gguf_op_relu(c, y);
    }
    must(gguf_graph_finish(c, g, x, &err), &err);
    return g;
}

int main(int argc, char **argv)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_pool_params pp = GGUF_POOL_PARAMS_INIT;
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_backend *cpu;
    struct gguf_galloc *ga;
    pp.n_threads = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    must(gguf_pool_create(&cp.pool, &pp, &err), &err);
    must(gguf_cpu_backend_create(&cpu, &cp, &err), &err);
    must(gguf_galloc_create(&ga, NULL, gguf_backend_buft(cpu), &err), &err);
    p.mem_size = 2 * N_NODES * gguf_tensor_overhead() +
                 gguf_graph_overhead(2 * N_NODES);
    p.no_alloc = true;
    must(gguf_ctx_create(&c, &p, &err), &err);

    double best[4] = { 1e9, 1e9, 1e9, 1e9 };
    struct gguf_graph *g = NULL;
    for (int k = 0; k < ROUNDS; k++) {
        double t[5];
        gguf_ctx_reset(c);
        t[0] = seconds();
        g = build(c, 16);
        t[1] = seconds();
        must(gguf_galloc_reserve(ga, g, &err), &err);
        t[2] = seconds();
        must(gguf_galloc_alloc(ga, g, &err), &err);
        t[3] = seconds();
        must(gguf_backend_compute(cpu, g, &err), &err);
        t[4] = seconds();
        for (int i = 0; i < 4; i++)
            if (t[i + 1] - t[i] < best[i])
                best[i] = t[i + 1] - t[i];
    }
    printf("%d nodes: build %.2f ms, plan %.2f ms, allocate %.2f ms, run of "
           "16 elements each %.2f ms (%.3f us a node)\n",
           N_NODES, best[0] * 1e3, best[1] * 1e3, best[2] * 1e3, best[3] * 1e3,
           best[3] / N_NODES * 1e6);

    /* large enough to be shared: what is above the work is the barriers */
    double run[2];
    for (int one = 0; one < 2; one++) {
        struct gguf_pool *none = NULL;
        if (one) {
            gguf_backend_destroy(cpu);
            cp.pool = none;
            must(gguf_cpu_backend_create(&cpu, &cp, &err), &err);
        }
        gguf_ctx_reset(c);
        g = build(c, 2050);
        must(gguf_galloc_alloc(ga, g, &err), &err);
        run[one] = 1e9;
        for (int k = 0; k < ROUNDS; k++) {
            double t = seconds();
            must(gguf_backend_compute(cpu, g, &err), &err);
            t = seconds() - t;
            if (t < run[one])
                run[one] = t;
        }
    }
    double n_work = N_NODES * 3.0 / 4;
    printf("%.0f nodes of 2050 elements in two rows: %.3f us a node with %u "
           "threads, %.3f with one\n",
           n_work, run[0] / n_work * 1e6, pp.n_threads, run[1] / n_work * 1e6);
    return 0;
}
