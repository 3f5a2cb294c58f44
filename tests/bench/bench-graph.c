/* SPDX-License-Identifier: MIT */
/* bench-graph.c - costs of building, planning and dispatching a graph
 *
 *   bench-graph [THREADS]
 *
 * Part of make bench. Building and planning are measured in processor time of
 * the calling thread, the best of several rounds:
 *
 *   cold      the first graph of a process: memory is touched for the first
 *             time, code is paged in. Every round is a child process
 *   warm      a different graph, in memory that was used before
 *   again     a graph equal to the last one: its tensors are new, but
 *             nothing is assigned or planned again
 *
 * "build" creates context, tensors and graph. "plan" places the tensors: with
 * the graph allocator alone or, with a scheduler, by assigning backends,
 * splitting, laying out and placing.
 */
#include "config.h"
#include "gguf/cpu.h"
#include "gguf/sched.h"
#include "tests/bench/row.h"
#include "tests/graph/fake_backend.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_NODES = 10000, ROUNDS = 30, N_WARM = 5 };

static double clock_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Number of page faults so far: pages touched for the first time. */
static long n_faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt;
}

static void keep_best(double *best, double value)
{
    if (value < *best)
        *best = value;
}

static struct gguf_ctx *make_ctx(void)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    p.mem_size = 2 * N_NODES * gguf_tensor_overhead() +
                 gguf_graph_overhead(2 * N_NODES);
    p.no_alloc = true;
    must(gguf_ctx_create(&c, &p, &err), &err);
    return c;
}

/* Weights of n zeros. */
static tensor *make_weights(const struct gguf_buft *buft, int64_t n)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_buffer *b;
    p.mem_size = gguf_tensor_overhead();
    p.no_alloc = true;
    must(gguf_ctx_create(&c, &p, &err), &err);
    tensor *w = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, n / 2, 2);
    must(gguf_ctx_alloc_tensors(c, buft, NULL, &b, &err), &err);
    (void)gguf_buffer_clear(b, 0, NULL);
    gguf_buffer_set_usage(b, GGUF_USAGE_WEIGHTS);
    return w;
}

/* A chain with branches, of about n_nodes nodes in w's shape. Every far-th
 * link is an operation that the second backend refuses (0: none). */
static struct gguf_graph *build_graph(struct gguf_ctx *c, int n_nodes,
                                      tensor *w, int far)
{
    struct gguf_error err;
    struct gguf_graph *g = gguf_graph_create(c, 2 * N_NODES);
    tensor *x = gguf_tensor_create_like(c, w), *y = x;
    gguf_tensor_add_flags(x, GGUF_TENSOR_INPUT);
    for (int i = 0; i < n_nodes / 4; i++) {
        tensor *r = gguf_op_reshape_2d(c, x, w->ne[0], w->ne[1]);
        tensor *s = gguf_op_mul(c, r, w);
        y = gguf_op_add(c, s, y);
        x = far && i % far == 0 ? gguf_op_tanh(c, y) : gguf_op_relu(c, y);
    }
    must(gguf_graph_finish(c, g, x, &err), &err);
    return g;
}

/* --- building and planning ------------------------------------------------ */

struct way {
    const char *name;
    unsigned n_backends; /* 0: the graph allocator alone */
    int far;
};

struct cost {
    double build, plan;
    long build_faults, plan_faults;
};

struct costs {
    struct cost cold, warm, again;
    size_t n_splits, n_copies;
};

struct planner {
    struct gguf_galloc *galloc;
    struct gguf_sched *sched; /* NULL: none */
    tensor *weights;
};

static struct planner make_planner(const struct way *w)
{
    static struct fake_backend far;
    struct gguf_error err;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_backend *cpu;
    struct planner x = { NULL, NULL, NULL };
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    if (!w->n_backends) {
        must(gguf_galloc_create(&x.galloc, NULL, gguf_backend_buft(cpu), &err),
             &err);
        x.weights = make_weights(gguf_backend_buft(cpu), 16);
        return x;
    }
    must(fake_backend_init(&far, "FAR", false, NULL, &err), &err);
    far.refuses[GGUF_OP_TANH] = true;
    struct gguf_backend *const both[] = { &far.backend, cpu };
    p.backends = both + (2 - w->n_backends);
    p.n_backends = w->n_backends;
    must(gguf_sched_create(&x.sched, &p, &err), &err);
    x.weights = make_weights(gguf_backend_buft(p.backends[0]), 16);
    return x;
}

/* Measure one way. c is NULL the first time. */
static struct cost measure_way(const struct planner *x, const struct way *w,
                               struct gguf_ctx **c, int n_nodes)
{
    struct gguf_error err;
    double t[3];
    long f[3];
    f[0] = n_faults();
    t[0] = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    if (*c)
        gguf_ctx_reset(*c);
    else
        *c = make_ctx();
    struct gguf_graph *g = build_graph(*c, n_nodes, x->weights, w->far);
    t[1] = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    f[1] = n_faults();
    must(x->sched ? gguf_sched_alloc(x->sched, g, &err)
                  : gguf_galloc_alloc(x->galloc, g, &err),
         &err);
    t[2] = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    f[2] = n_faults();
    return (struct cost){ t[1] - t[0], t[2] - t[1], f[1] - f[0], f[2] - f[1] };
}

/* Measure all ways in a fresh process. */
static void measure_all(const struct way *w, struct costs *all)
{
    const struct planner x = make_planner(w);
    struct gguf_ctx *c = NULL;
    all->cold = measure_way(&x, w, &c, N_NODES);
    all->warm = all->again = (struct cost){ 1e9, 1e9, 0, 0 };
    for (int i = 0; i < N_WARM; i++) {
        measure_way(&x, w, &c, N_NODES - 4);
        struct cost warm = measure_way(&x, w, &c, N_NODES);
        struct cost again = measure_way(&x, w, &c, N_NODES);
        keep_best(&all->warm.build, warm.build);
        keep_best(&all->warm.plan, warm.plan);
        keep_best(&all->again.build, again.build);
        keep_best(&all->again.plan, again.plan);
    }
    if (x.sched) {
        all->n_splits = gguf_sched_n_splits(x.sched);
        all->n_copies = gguf_sched_n_copies(x.sched);
    }
}

static void show_way(const struct way *w, const struct costs *all,
                     const char *name, const struct cost *c)
{
    const struct {
        const char *part, *unit;
        double value;
    } rows[] = {
        { "build", "ms", 1e3 * c->build },
        { "plan", "ms", 1e3 * c->plan },
        { "touch for", "pages", (double)(c->build_faults + c->plan_faults) },
    };
    char shape[96];
    snprintf(shape, sizeof shape, "%s", w->name);
    if (w->n_backends > 1)
        snprintf(shape, sizeof shape, "%s, %zu splits", w->name,
                 all->n_splits);
    for (int i = 0; i < 3; i++) {
        char what[64];
        snprintf(what, sizeof what, "%s %d nodes, %s", rows[i].part, N_NODES,
                 name);
        const struct bench_row r = { .table = "graphs",
                                     .what = what,
                                     .shape = shape,
                                     .threads = 1,
                                     .value = rows[i].value,
                                     .unit = rows[i].unit,
                                     .spread = -1 };
        bench_row(&r);
    }
}

/* Measure a way; print the round with the cheapest cold start. */
static void bench_way(const struct way *w, struct costs *shared)
{
    struct costs best = { .cold = { 1e9, 1e9, 0, 0 } };
    for (int k = 0; k < ROUNDS; k++) {
        int status = 0;
        pid_t pid = fork();
        if (!pid) {
            measure_all(w, shared);
            _exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
            fprintf(stderr, "bench-graph: a child failed\n");
            exit(1);
        }
        if (shared->cold.build + shared->cold.plan <
            best.cold.build + best.cold.plan)
            best = *shared;
    }
    show_way(w, &best, "cold", &best.cold);
    show_way(w, &best, "warm", &best.warm);
    show_way(w, &best, "again", &best.again);
}

/* --- dispatching ---------------------------------------------------------- */

static struct gguf_backend *make_cpu(struct gguf_pool *pool)
{
    struct gguf_error err;
    struct gguf_cpu_params p = GGUF_CPU_PARAMS_INIT;
    struct gguf_backend *cpu;
    p.pool = pool;
    must(gguf_cpu_backend_create(&cpu, &p, &err), &err);
    return cpu;
}

/* Seconds of a run of the graph, the best of many. */
static double run_graph(struct gguf_pool *pool, int64_t n)
{
    struct gguf_error err;
    struct gguf_backend *cpu = make_cpu(pool);
    struct gguf_galloc *ga;
    struct gguf_ctx *c = make_ctx();
    double best = 1e9;
    tensor *w = make_weights(gguf_host_buft(), n);
    struct gguf_graph *g = build_graph(c, N_NODES, w, 0);
    must(gguf_galloc_create(&ga, NULL, gguf_backend_buft(cpu), &err), &err);
    must(gguf_galloc_alloc(ga, g, &err), &err);
    for (int k = 0; k < ROUNDS; k++) {
        double t = clock_seconds(CLOCK_MONOTONIC);
        must(gguf_backend_compute(cpu, g, &err), &err);
        keep_best(&best, clock_seconds(CLOCK_MONOTONIC) - t);
    }
    gguf_galloc_destroy(ga);
    gguf_ctx_destroy(c);
    gguf_backend_destroy(cpu);
    return best;
}

static void bench_dispatch(unsigned n_threads)
{
    struct gguf_error err;
    struct gguf_pool_params p = GGUF_INIT(struct gguf_pool_params);
    struct gguf_pool *pool;
    const double n_work = N_NODES * 3.0 / 4;
    p.n_threads = n_threads;
    must(gguf_pool_create(&pool, &p, &err), &err);
    struct bench_row r = { .table = "graphs",
                           .what = "run a node",
                           .shape = "16 elements",
                           .threads = n_threads,
                           .unit = "us",
                           .spread = -1 };
    r.value = run_graph(pool, 16) / n_work * 1e6;
    bench_row(&r);
    /* large enough for several threads: the rest of the time is barriers */
    r.shape = "2050 elements in two rows";
    r.value = run_graph(pool, 2050) / n_work * 1e6;
    bench_row(&r);
    r.threads = 1;
    r.value = run_graph(NULL, 2050) / n_work * 1e6;
    bench_row(&r);
    gguf_pool_destroy(pool);
}

int main(int argc, char **argv)
{
    static const struct way ways[] = {
        { "graph allocator alone", 0, 0 },
        { "scheduler, CPU alone", 1, 0 },
        { "scheduler, two backends", 2, 50 },
        { "scheduler, two backends, a split every other node", 2, 1 },
    };
    struct costs *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        bench_way(&ways[i], shared);
        fflush(stdout);
    }
    bench_dispatch(argc > 1 ? (unsigned)atoi(argv[1]) : 2);
    return 0;
}
