/* SPDX-License-Identifier: MIT */
/* check-async.c - queues, events, ordered transfers, and computations that
 * overlap
 *
 *   check-async [GRAPHS [SEED]]
 */
#include "config.h"
#include "gguf/cpu.h"
#include "tests/graph/random_graph.h"
#include "tests/ignore_status.h"

#include <time.h>

/* --- queues --------------------------------------------------------------- */

struct step {
    int *log, *n, number;
    enum gguf_status st;
};

static enum gguf_status run_step(void *arg, struct gguf_error *err)
{
    const struct step *x = arg;
    x->log[(*x->n)++] = x->number;
    return x->st
               ? gg_error_set(err, x->st, GGUF_NO_OFFSET, "step %d", x->number)
               : GGUF_OK;
}

static void check_queue(void)
{
    enum { N = 1000 };
    static int log[N + 3];
    struct gg_stream *s;
    struct gguf_error err;
    int n = 0;
    bool in_order = true;
    must(gg_stream_create(&s, NULL, &err), &err);
    for (int i = 0; i < N; i++) {
        struct step x = { log, &n, i, GGUF_OK };
        gg_stream_push(s, run_step, &x, sizeof x);
    }
    must(gg_stream_sync(s, &err), &err);
    for (int i = 0; i < N; i++)
        in_order = in_order && log[i] == i;
    ok(n == N && in_order, "%d calls in order, more than the queue holds", N);
    n = 0;
    for (int i = 0; i < 3; i++) {
        struct step x = { log, &n, i, i ? GGUF_E_NOMEM : GGUF_OK };
        gg_stream_push(s, run_step, &x, sizeof x);
    }
    ok(gg_stream_sync(s, &err) == GGUF_E_NOMEM && n == 2 &&
           !strcmp(err.message, "step 1"),
       "a failure cancels the queued jobs, and the sync reports it: %s",
       err.message);
    struct step x = { log, &n, 9, GGUF_OK };
    gg_stream_push(s, run_step, &x, sizeof x);
    ok(gg_stream_sync(s, &err) == GGUF_OK && n == 3, "and by that one only");
    gg_stream_push(s, run_step, &x, sizeof x);
    gg_stream_destroy(s);
    ok(n == 4, "destroying one waits for it");
}

static enum gguf_status sleep_ns(void *arg, struct gguf_error *err)
{
    (void)err;
    nanosleep(&(struct timespec){ .tv_nsec = *(const long *)arg }, NULL);
    return GGUF_OK;
}

/* Two queues pass a counter to and fro with events alone. If one of them runs
 * early, the order is wrong, and ThreadSanitizer reports a race. */
static void check_events(void)
{
    enum { N = 100 };
    static int log[2 * N];
    static struct fake_backend a, b;
    struct gguf_event *ea, *eb;
    struct gguf_error err;
    int n = 0;
    bool in_order = true;
    must(fake_backend_init(&a, "A", true, NULL, &err), &err);
    must(fake_backend_init(&b, "B", true, NULL, &err), &err);
    must(gguf_event_create(&ea, &a.device, NULL, &err), &err);
    must(gguf_event_create(&eb, &b.device, NULL, &err), &err);
    ignore_status(gguf_event_sync(ea, NULL));
    ok(true, "an event that was never recorded is past");
    for (int i = 0; i < N; i++) {
        struct step x = { log, &n, 2 * i, GGUF_OK };
        long ns = i % 3 ? 0 : 50000;
        must(gguf_event_wait(eb, &a.backend, &err), &err);
        gg_stream_push(a.stream, sleep_ns, &ns, sizeof ns);
        gg_stream_push(a.stream, run_step, &x, sizeof x);
        must(gguf_event_record(ea, &a.backend, &err), &err);
        x.number++;
        must(gguf_event_wait(ea, &b.backend, &err), &err);
        gg_stream_push(b.stream, run_step, &x, sizeof x);
        must(gguf_event_record(eb, &b.backend, &err), &err);
    }
    ignore_status(gguf_event_sync(eb, NULL));
    for (int i = 0; i < 2 * N; i++)
        in_order = in_order && log[i] == i;
    ok(n == 2 * N && in_order, "two queues take turns, %d times", N);

    ok(gguf_event_record(ea, &b.backend, &err) == GGUF_E_INVALID, "%s",
       err.message);
    /* a failed job fails its events */
    struct step bad = { log, &n, 7, GGUF_E_OP };
    n = 0;
    gg_stream_push(a.stream, run_step, &bad, sizeof bad);
    must(gguf_event_record(ea, &a.backend, &err), &err);
    ignore_status(gguf_event_sync(ea, NULL));
    ok(gguf_backend_sync(&a.backend, &err) == GGUF_E_OP,
       "an event after a failure is reached");
    /* destroyed while a queue waits for it */
    long ns = 2000000;
    gg_stream_push(a.stream, sleep_ns, &ns, sizeof ns);
    must(gguf_event_record(ea, &a.backend, &err), &err);
    must(gguf_event_wait(ea, &b.backend, &err), &err);
    gguf_event_destroy(ea);
    gguf_event_destroy(eb);
    gguf_event_destroy(NULL);
    must(gguf_backend_sync(&b.backend, &err), &err);

    struct gguf_backend *cpu;
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    ok(gguf_event_create(&ea, gguf_backend_device(cpu), NULL, &err) ==
               GGUF_E_UNSUPPORTED &&
           !ea,
       "%s", err.message);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&a.backend);
    gguf_backend_destroy(&b.backend);
}

/* --- transfers ------------------------------------------------------------ */

/* Values go from the caller to A and are doubled there, go to B and are
 * doubled there, go on to the CPU and back. All of this is queued. */
static void check_transfers(void)
{
    enum { N = 4, ROUNDS = 60 };
    static struct fake_backend is[2];
    static float in[ROUNDS][N], out[ROUNDS][N], cpu_out[ROUNDS][N];
    struct gguf_backend *b[3];
    struct gguf_ctx *ctx[3];
    struct gguf_buffer *buf[3];
    struct gguf_graph *g[3];
    tensor *x[3], *y[3];
    struct gguf_error err;
    bool right = true;
    must(fake_backend_init(&is[0], "A", true, NULL, &err), &err);
    must(fake_backend_init(&is[1], "B", true, NULL, &err), &err);
    must(gguf_cpu_backend_create(&b[2], NULL, &err), &err);
    for (int i = 0; i < 3; i++) {
        struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
        p.mem_size = 1 << 14;
        p.no_alloc = true;
        if (i < 2)
            b[i] = &is[i].backend;
        must(gguf_ctx_create(&ctx[i], &p, &err), &err);
        x[i] = gguf_tensor_create_1d(ctx[i], GGUF_DTYPE_F32, N);
        y[i] = gguf_op_scale(ctx[i], x[i], 2);
        g[i] = gguf_graph_create(ctx[i], 4);
        must(gguf_graph_finish(ctx[i], g[i], y[i], &err), &err);
        must(gguf_ctx_alloc_tensors(ctx[i], gguf_backend_buft(b[i]), NULL,
                                    &buf[i], &err),
             &err);
    }
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < N; i++)
            in[r][i] = (float)(r * N + i);
        must(gguf_backend_set_async(b[0], x[0], in[r], 0, sizeof in[r], &err),
             &err);
        must(gguf_backend_compute_async(b[0], g[0], &err), &err);
        must(gguf_backend_copy_async(b[0], b[1], y[0], x[1], &err), &err);
        must(gguf_backend_compute_async(b[1], g[1], &err), &err);
        must(
            gguf_backend_get_async(b[1], y[1], out[r], 0, sizeof out[r], &err),
            &err);
        if (r % 8)
            continue;
        /* calls of the CPU work synchronously: this one waits for B */
        must(gguf_backend_copy_async(b[1], b[2], y[1], x[2], &err), &err);
        must(gguf_backend_compute_async(b[2], g[2], &err), &err);
        must(gguf_backend_get_async(b[2], y[2], cpu_out[r], 0,
                                    sizeof cpu_out[r], &err),
             &err);
        must(gguf_backend_set_async(b[2], x[2], in[r], 0, sizeof in[r], &err),
             &err);
    }
    must(gguf_backend_sync(b[1], &err), &err);
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < N; i++)
            right = right && out[r][i] == 4 * in[r][i] &&
                    (r % 8 || cpu_out[r][i] == 8 * in[r][i]);
    ok(right, "set, compute, copy, compute, get: %d rounds queued", ROUNDS);
    ok(gguf_backend_get_async(b[0], y[0], in[0], 8, 9, &err) ==
               GGUF_E_INVALID &&
           gguf_backend_set_async(b[0], y[0], in[0], 17, 0, &err) ==
               GGUF_E_INVALID,
       "%s", err.message);
    tensor *other = gguf_tensor_create_1d(ctx[0], GGUF_DTYPE_F32, N + 1);
    ok(gguf_backend_copy_async(b[0], b[1], other, x[1], &err) == GGUF_E_SHAPE,
       "%s", err.message);
    struct gguf_plan *plan;
    must(gguf_plan_create(&plan, b[0], g[0], &err), &err);
    must(gguf_plan_compute_async(plan, &err), &err);
    must(gguf_plan_compute(plan, &err), &err);
    gguf_plan_destroy(plan);
    must(gguf_tensor_get(y[0], out[0], 0, sizeof out[0], &err), &err);
    ok(out[0][1] == 2 * in[ROUNDS - 1][1], "a plan of a queue");
    ok(gguf_backend_id(b[0]) == gguf_backend_id(b[1]) &&
           gguf_backend_id(b[0]) != gguf_backend_id(b[2]),
       "ids tell implementations apart");
    for (int i = 0; i < 3; i++) {
        gguf_buffer_destroy(buf[i]);
        gguf_ctx_destroy(ctx[i]);
        gguf_backend_destroy(b[i]);
    }
}

/* --- computations --------------------------------------------------------- */

enum { RUNS = 5, MAX_OUT = 1 << 14 };

static bool is_cache(const struct random_graph *g, const tensor *t)
{
    return t == g->cache || t->view_src == g->cache;
}

/* Outputs of RUNS computations with different inputs, as bytes. flow: start
 * them all without waiting; else one by one. */
static size_t collect_outputs(struct gguf_sched *s,
                              struct gguf_backend *const *b,
                              struct random_graph *g, uint64_t seed, bool flow,
                              char *out)
{
    struct gguf_error err;
    size_t n = 0;
    random_graph_fill(g->cache, seed + 4);
    must(gguf_sched_alloc(s, g->graph, &err), &err);
    for (int r = 0; r < RUNS; r++) {
        for (int i = 0; i < 3; i++)
            random_graph_fill(g->inputs[i], seed + 10 + (uint64_t)(3 * r + i));
        if (flow)
            must(gguf_sched_compute_async(s, g->graph, &err), &err);
        else
            must(gguf_sched_compute(s, g->graph, &err), &err);
        for (int i = 0; i < g->n_out; i++) {
            const tensor *t = g->out[i];
            const uint64_t size = gguf_tensor_size(t);
            if (is_cache(g, t))
                continue;
            const tensor *root = t->view_src ? t->view_src : t;
            int k = gguf_sched_find_backend(s, root);
            must(gguf_backend_get_async(b[k], t, out + n, 0, size, &err),
                 &err);
            n += (size_t)size;
        }
    }
    must(gguf_sched_sync(s, &err), &err);
    must(gguf_tensor_get(g->cache, out + n, 0, gguf_tensor_size(g->cache),
                         &err),
         &err);
    return n + (size_t)gguf_tensor_size(g->cache);
}

static void check_computations(int n_graphs, uint64_t seed)
{
    static char want[RUNS * RANDOM_GRAPH_NODES * MAX_OUT], got[sizeof want];
    static struct fake_backend a, b;
    struct gguf_backend *cpu;
    struct gguf_sched *alone, *s;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_error err;
    int differ[GGUF_SCHED_MAX_COPIES + 1] = { 0 };
    must(fake_backend_init(&a, "A", true, NULL, &err), &err);
    must(fake_backend_init(&b, "B", true, NULL, &err), &err);
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct gguf_backend *const all[] = { &a.backend, &b.backend, cpu };
    p.backends = all + 2;
    p.n_backends = 1;
    must(gguf_sched_create(&alone, &p, &err), &err);
    p.backends = all;
    p.n_backends = 3;
    for (int k = 0; k < n_graphs; k++) {
        const struct gguf_buft *host[4], *home[4];
        const uint64_t x = seed + (uint64_t)k;
        tap_rng = x * UINT64_C(0x2545F4914F6CDD1D) | 1;
        fake_backend_refuse(&a, k % 3 ? rnd64() : 0);
        fake_backend_refuse(&b, rnd64());
        for (int i = 0; i < 4; i++) {
            host[i] = gguf_host_buft();
            home[i] = gguf_backend_buft(all[rnd_below(3)]);
        }
        a.refuses[GGUF_OP_CPY] = b.refuses[GGUF_OP_CPY] = false;
        a.refuses[GGUF_OP_SET_ROWS] = b.refuses[GGUF_OP_SET_ROWS] = false;
        struct random_graph one = random_graph_make(x, host),
                            many = random_graph_make(x, home);
        size_t n = collect_outputs(alone, all + 2, &one, x, false, want);
        p.n_copies = 1 + (unsigned)k % 4;
        must(gguf_sched_create(&s, &p, &err), &err);
        differ[p.n_copies] +=
            collect_outputs(s, all, &many, x, true, got) != n ||
            memcmp(want, got, n);
        gguf_sched_destroy(s);
        random_graph_free(&one);
        random_graph_free(&many);
    }
    for (int i = 1; i <= 4; i++)
        ok(!differ[i], "random graphs, %d computations in a row, copies: %d",
           RUNS, i);
    ok(!a.n_foreign && !b.n_foreign && a.n_nodes > n_graphs &&
           b.n_nodes > n_graphs,
       "A and B computed %d and %d nodes, all in memory of their own",
       a.n_nodes, b.n_nodes);
    gguf_sched_destroy(alone);
    for (int i = 0; i < 3; i++)
        gguf_backend_destroy(all[i]);
}

/* A graph with its first half on A and its second half on B. */
static void check_overlap(void)
{
    static struct fake_backend a, b;
    struct gguf_backend *cpu;
    struct gguf_error err;
    must(fake_backend_init(&a, "A", true, NULL, &err), &err);
    must(fake_backend_init(&b, "B", true, NULL, &err), &err);
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct gguf_backend *const all[] = { &a.backend, &b.backend, cpu };
    for (unsigned n_copies = 1; n_copies <= 2; n_copies++) {
        struct fake_backend_gauge gauge = { 0, 0 };
        struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
        struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
        struct gguf_sched *s;
        struct gguf_ctx *c;
        enum { N = 8 };
        float in[2], out[N][2];
        bool right = true;
        a.gauge = b.gauge = &gauge;
        a.slow = b.slow = 4000;
        p.backends = all;
        p.n_backends = 3;
        p.n_copies = n_copies;
        must(gguf_sched_create(&s, &p, &err), &err);
        cp.mem_size = 1 << 14;
        cp.no_alloc = true;
        must(gguf_ctx_create(&c, &cp, &err), &err);
        tensor *x = gguf_tensor_add_flags(
            gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 2), GGUF_TENSOR_INPUT);
        tensor *y = gguf_op_scale(c, x, 2), *z = gguf_op_sqr(c, y);
        struct gguf_graph *g = gguf_graph_create(c, 8);
        gguf_tensor_add_flags(z, GGUF_TENSOR_OUTPUT);
        must(gguf_graph_finish(c, g, z, &err), &err);
        must(gguf_sched_pin(s, y, 0, &err), &err);
        must(gguf_sched_pin(s, z, 1, &err), &err);
        must(gguf_sched_alloc(s, g, &err), &err);
        for (int i = 0; i < N; i++) {
            in[0] = in[1] = (float)i;
            must(gguf_tensor_set(x, in, 0, sizeof in, &err), &err);
            must(gguf_sched_compute_async(s, g, &err), &err);
            must(gguf_backend_get_async(all[1], z, out[i], 0, sizeof out[i],
                                        &err),
                 &err);
        }
        must(gguf_sched_sync(s, &err), &err);
        for (int i = 0; i < N; i++)
            right = right && out[i][1] == (float)(4 * i * i);
        ok(right && gauge.most == (int)n_copies,
           "%u copies: %d backends work at the same time", n_copies,
           gauge.most);
        gguf_sched_destroy(s);
        gguf_ctx_destroy(c);
    }
    for (int i = 0; i < 3; i++)
        gguf_backend_destroy(all[i]);
}

int main(int argc, char **argv)
{
    check_queue();
    check_events();
    check_transfers();
    check_overlap();
    check_computations(argc > 1 ? atoi(argv[1]) : 200,
                       argc > 2 ? (uint64_t)atoll(argv[2]) : 1);
    return done_testing();
}
