/* SPDX-License-Identifier: MIT */
/* use-backend.c - uses the backend of doc/backend.c as a program would
 *
 * backend.t compiles both against the public headers and runs this test (TAP).
 */
#include "backend.c"

#include <gguf/compute.h>
#include <stdio.h>

enum { K = 8, M = 6, N = 5 };

static int n_tests, n_bad;

static void print_result(bool good, const char *what)
{
    n_tests++;
    n_bad += !good;
    printf("%sok %d - %s\n", good ? "" : "not ", n_tests, what);
}

static void must_succeed(enum gguf_status st, const struct gguf_error *err)
{
    if (st == GGUF_OK)
        return;
    printf("Bail out! %s\n", err->message);
    exit(1);
}

/* y = relu(w x + b) x', with a norm between that tiny refuses. */
struct net {
    struct gguf_ctx *weights, *ctx;
    struct gguf_buffer *buffer;
    struct gguf_tensor *w, *b, *x, *sum, *norm, *out;
    struct gguf_graph *graph;
};

static void build_net(struct net *net, const struct gguf_buft *buft, int64_t n)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_error err;
    float v[K * M];
    *net = (struct net){ .ctx = NULL };
    p.mem_size = 1 << 16;
    p.no_alloc = true;
    must_succeed(gguf_ctx_create(&net->weights, &p, &err), &err);
    must_succeed(gguf_ctx_create(&net->ctx, &p, &err), &err);
    net->w = gguf_tensor_create_2d(net->weights, GGUF_DTYPE_F32, K, M);
    net->b = gguf_tensor_create_2d(net->weights, GGUF_DTYPE_F32, M, n);
    must_succeed(
        gguf_ctx_alloc_tensors(net->weights, buft, NULL, &net->buffer, &err),
        &err);
    gguf_buffer_set_usage(net->buffer, GGUF_USAGE_WEIGHTS);
    for (int i = 0; i < K * M; i++)
        v[i] = (float)(i * 7 % 11 - 5);
    must_succeed(gguf_tensor_set(net->w, v, 0, gguf_tensor_size(net->w), &err),
                 &err);
    must_succeed(gguf_tensor_set(net->b, v, 0, gguf_tensor_size(net->b), &err),
                 &err);
    struct gguf_ctx *c = net->ctx;
    net->x = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, K, n);
    (void)gguf_tensor_add_flags(net->x, GGUF_TENSOR_INPUT);
    net->sum = gguf_op_add(c, gguf_op_matmul(c, net->w, net->x), net->b);
    net->norm = gguf_op_rms_norm(c, gguf_op_relu(c, net->sum), 1e-6f);
    net->out = gguf_op_mul(c, gguf_op_reshape_2d(c, net->norm, M, n), net->b);
    net->graph = gguf_graph_create(c, 32);
    must_succeed(
        gguf_graph_finish(c, net->graph,
                          gguf_tensor_add_flags(net->out, GGUF_TENSOR_OUTPUT),
                          &err),
        &err);
}

static void free_net(struct net *net)
{
    gguf_buffer_destroy(net->buffer);
    gguf_ctx_destroy(net->weights);
    gguf_ctx_destroy(net->ctx);
}

static void set_x(struct net *net, int64_t n)
{
    struct gguf_error err;
    float v[K * N];
    for (int i = 0; i < K * N; i++)
        v[i] = (float)(i * 5 % 13 - 6);
    must_succeed(
        gguf_tensor_set(net->x, v, 0, sizeof(float) * (size_t)(K * n), &err),
        &err);
}

/* Compute the expected result on the CPU alone. */
static void compute_expected(float *out, int64_t n)
{
    struct gguf_backend *cpu;
    struct gguf_galloc *mem;
    struct gguf_error err;
    struct net net;
    must_succeed(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    build_net(&net, gguf_backend_buft(cpu), n);
    must_succeed(gguf_galloc_create(&mem, NULL, gguf_backend_buft(cpu), &err),
                 &err);
    must_succeed(gguf_galloc_alloc(mem, net.graph, &err), &err);
    set_x(&net, n);
    must_succeed(gguf_backend_compute(cpu, net.graph, &err), &err);
    must_succeed(gguf_tensor_get(net.out, out, 0,
                                 sizeof(float) * (size_t)(M * n), &err),
                 &err);
    gguf_galloc_destroy(mem);
    free_net(&net);
    gguf_backend_destroy(cpu);
}

static void test_sched(struct gguf_backend *tiny, struct gguf_backend *cpu)
{
    struct gguf_backend *both[] = { tiny, cpu };
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_error err;
    struct gguf_sched *s;
    tiny_counts_fn *counts_of = (tiny_counts_fn *)gguf_driver_find_function(
        gguf_device_driver(gguf_backend_device(tiny)), "counts");
    p.backends = both;
    p.n_backends = 2;
    must_succeed(gguf_sched_create(&s, &p, &err), &err);
    for (int64_t n = 1; n <= N; n++) {
        float want[M * N], got[M * N];
        struct net net;
        compute_expected(want, n);
        build_net(&net, gguf_backend_buft(tiny), n);
        must_succeed(gguf_sched_alloc(s, net.graph, &err), &err);
        set_x(&net, n);
        must_succeed(gguf_sched_compute(s, net.graph, &err), &err);
        must_succeed(gguf_tensor_get(net.out, got, 0,
                                     sizeof(float) * (size_t)(M * n), &err),
                     &err);
        print_result(gguf_sched_find_backend(s, net.sum) == 0 &&
                         gguf_sched_find_backend(s, net.norm) == 1 &&
                         gguf_sched_find_backend(s, net.out) == 0 &&
                         gguf_sched_n_copies(s) >= 3,
                     "each computes what it can");
        print_result(memcmp(want, got, sizeof(float) * (size_t)(M * n)) == 0,
                     "and the result is the CPU's");
        must_succeed(gguf_sched_reset(s, &err), &err);
        free_net(&net);
    }
    print_result(counts_of(tiny).n_made > 0 && counts_of(tiny).n_remade > 0,
                 "plans were made, and made again");
    gguf_sched_destroy(s);
}

static void test_plan(struct gguf_backend *tiny)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_galloc *mem;
    struct gguf_plan *plan;
    struct gguf_error err;
    struct gguf_ctx *c;
    float v[4] = { 1, -2, 3, -4 }, got[4];
    p.mem_size = 1 << 16;
    p.no_alloc = true;
    must_succeed(gguf_ctx_create(&c, &p, &err), &err);
    struct gguf_tensor *x = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 2, 2);
    struct gguf_tensor *y = gguf_op_reshape_2d(c, gguf_op_relu(c, x), 2, 2);
    struct gguf_graph *g = gguf_graph_create(c, 8);
    must_succeed(gguf_graph_finish(c, g, gguf_op_matmul(c, x, y), &err), &err);
    must_succeed(gguf_galloc_create(&mem, NULL, gguf_backend_buft(tiny), &err),
                 &err);
    must_succeed(gguf_galloc_alloc(mem, g, &err), &err);
    must_succeed(gguf_tensor_set(x, v, 0, sizeof v, &err), &err);
    must_succeed(gguf_plan_create(&plan, tiny, g, &err), &err);
    print_result(gguf_plan_n_threads(plan) == 1 &&
                     gguf_plan_node_threads(plan, 0) == 1 &&
                     gguf_plan_node_threads(plan, 1) == 0 &&
                     gguf_plan_work_size(plan) == 2 * sizeof(double),
                 "threads and scratch of a plan");
    bool same = true;
    for (int i = 0; i < 3; i++) {
        must_succeed(gguf_plan_compute(plan, &err), &err);
        must_succeed(
            gguf_tensor_get(gguf_graph_node(g, 2), got, 0, sizeof got, &err),
            &err);
        same =
            same && got[0] == 1 && got[1] == 3 && got[2] == 3 && got[3] == 9;
    }
    print_result(same, "computed three times");
    v[1] = (float)NAN;
    v[2] = (float)INFINITY;
    must_succeed(gguf_tensor_set(x, v, 0, sizeof v, &err), &err);
    print_result(gguf_plan_compute(plan, &err) == GGUF_E_NONFINITE &&
                     strstr(err.message, "relu") &&
                     strstr(err.message, "[2, 2]"),
                 err.message);
    gguf_plan_destroy(plan);
    print_result(gguf_backend_compute(tiny, g, &err) == GGUF_E_NONFINITE,
                 "also without a plan");
    gguf_galloc_destroy(mem);
    gguf_ctx_destroy(c);
}

static void test_refusals(struct gguf_device *d, struct gguf_backend *tiny)
{
    struct gguf_error err;
    struct gguf_buffer *big, *small;
    uint64_t n_free, n_total;
    struct net net;
    print_result(gguf_buffer_create(&big, gguf_device_buft(d), 1 << 20, NULL,
                                    &err) == GGUF_E_NOMEM &&
                     !big && strstr(err.message, "1048576 bytes are wanted"),
                 err.message);
    must_succeed(
        gguf_buffer_create(&small, gguf_device_buft(d), 1000, NULL, &err),
        &err);
    gguf_device_memory(d, &n_free, &n_total);
    print_result(n_total - n_free == 1000, "memory that is taken");
    gguf_buffer_destroy(small);
    gguf_device_memory(d, &n_free, &n_total);
    print_result(n_total == n_free, "and given back");
    build_net(&net, gguf_device_buft(d), 2);
    struct gguf_galloc *mem;
    must_succeed(gguf_galloc_create(&mem, NULL, gguf_device_buft(d), &err),
                 &err);
    must_succeed(gguf_galloc_alloc(mem, net.graph, &err), &err);
    print_result(gguf_backend_compute(tiny, net.graph, &err) == GGUF_E_OP &&
                     strstr(err.message, "rms_norm"),
                 err.message);
    gguf_galloc_destroy(mem);
    free_net(&net);
}

int main(void)
{
    struct gguf_registry *r;
    struct gguf_driver *driver;
    struct gguf_backend *tiny, *cpu;
    struct gguf_error err;
    must_succeed(gguf_registry_create(&r, NULL, &err), &err);
    must_succeed(tiny_driver_create(&driver, 1 << 16, &err), &err);
    must_succeed(gguf_registry_add_driver(r, driver, &err), &err);
    struct gguf_device *d = gguf_registry_find(r, "TINY0");
    print_result(d && gguf_device_driver(d) == driver &&
                     gguf_device_min_invariant_batch(d) == 1 &&
                     gguf_device_kind(d) == GGUF_DEVICE_ACCEL,
                 "a device among the others");
    must_succeed(gguf_device_create_backend(d, &tiny, &err), &err);
    must_succeed(
        gguf_device_create_backend(gguf_registry_find(r, "CPU"), &cpu, &err),
        &err);
    print_result(gguf_backend_id(tiny) == TINY_ID &&
                     !strcmp(gguf_backend_name(tiny), "tiny0") &&
                     gguf_backend_device(tiny) == d &&
                     !gguf_backend_supports_buft(tiny, gguf_host_buft()) &&
                     gguf_backend_supports_buft(tiny, gguf_backend_buft(tiny)),
                 "a backend of it");
    test_sched(tiny, cpu);
    test_plan(tiny);
    test_refusals(d, tiny);
    gguf_backend_destroy(tiny);
    gguf_backend_destroy(cpu);
    gguf_registry_destroy(r);
    printf("1..%d\n", n_tests);
    return n_bad != 0;
}
