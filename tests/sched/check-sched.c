/* SPDX-License-Identifier: MIT */
/* check-sched.c - the scheduler with backends that have memory of their own
 *
 *   check-sched [GRAPHS [SEED]]
 */
#include "config.h"
#include "gguf/cpu.h"
#include "gguf/sched.h"
#include "sched/sched_int.h"
#include "tests/failalloc.h"
#include "tests/graph/random_graph.h"
#include "tests/ignore_status.h"
#include "tests/sched/callbacks.h"

static void check_random(int n_graphs, uint64_t seed)
{
    struct gguf_error err;
    static struct fake_backend a, b;
    struct gguf_backend *cpu;
    struct gguf_sched *alone, *s;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    int differ = 0, differ_twice = 0, differ_again = 0, n_asked = 0;
    size_t n_splits = 0, n_copies = 0;
    must(fake_backend_init(&a, "A", false, NULL, &err), &err);
    must(fake_backend_init(&b, "B", false, NULL, &err), &err);
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct gguf_backend *const all[] = { &a.backend, &b.backend, cpu };
    p.backends = all + 2;
    p.n_backends = 1;
    must(gguf_sched_create(&alone, &p, &err), &err);
    for (int k = 0; k < n_graphs; k++) {
        const struct gguf_buft *host[4], *home[4];
        uint64_t x = seed + (uint64_t)k;
        tap_rng = x * UINT64_C(0x2545F4914F6CDD1D) | 1;
        fake_backend_refuse(&a, k % 3 ? rnd64() : 0);
        fake_backend_refuse(&b, rnd64());
        p.n_backends = 2 + (unsigned)(k & 1);
        p.backends = p.n_backends == 3 ? all : all + 1;
        for (int i = 0; i < 4; i++) {
            host[i] = gguf_host_buft();
            home[i] = gguf_backend_buft(
                p.backends[rnd_below((uint64_t)p.n_backends)]);
            /* the cache's backend must be able to write to it */
            if (i == 3 && home[i]->priv) {
                struct fake_backend *is = home[i]->priv;
                is->refuses[GGUF_OP_CPY] = is->refuses[GGUF_OP_SET_ROWS] =
                    false;
            }
        }
        struct random_graph one = random_graph_make(x, host),
                            many = random_graph_make(x, home);
        must(gguf_sched_create(&s, &p, &err), &err);
        random_graph_run(alone, &one, x);
        random_graph_run(s, &many, x);
        differ += !random_graph_same(&one, &many);
        /* inputs must be unchanged */
        random_graph_fill(many.cache, x + 4);
        must(gguf_sched_compute(s, many.graph, &err), &err);
        differ_twice += !random_graph_same(&one, &many);
        n_splits += gguf_sched_n_splits(s);
        n_copies += gguf_sched_n_copies(s);
        /* once more, node by node where the callback asks for it */
        const struct gguf_sched_eval products = { wants_product, count_product,
                                                  &n_asked };
        ignore_status(gguf_sched_set_eval(s, products, NULL));
        random_graph_run(s, &many, x);
        differ_again += !random_graph_same(&one, &many);
        gguf_sched_destroy(s);
        random_graph_free(&one);
        random_graph_free(&many);
    }
    ok(!differ, "%d random graphs over 2 and 3 backends: the CPU's results",
       n_graphs);
    ok(!differ_twice, "and again, with inputs that are not set again");
    ok(!differ_again && n_asked > n_graphs / 2,
       "the same with an evaluation callback, called for %d products",
       n_asked);
    ok(!a.n_foreign && !b.n_foreign,
       "no backend was given memory that it cannot reach");
    printf("# %.1f splits and %.1f copies per graph; A computed %d nodes, B "
           "%d\n",
           (double)n_splits / n_graphs, (double)n_copies / n_graphs, a.n_nodes,
           b.n_nodes);
    ok(a.n_nodes > n_graphs && b.n_nodes > n_graphs, "both had work");
    gguf_sched_destroy(alone);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&a.backend);
    gguf_backend_destroy(&b.backend);
}

static const struct gguf_sched_eval no_eval;

/* --- by hand -------------------------------------------------------------- */

struct end {
    const tensor *t;
    int n_handed;
};

static enum gg_sched_answer end_at(void *user, const tensor *t)
{
    return t == ((const struct end *)user)->t ? GG_SCHED_END : GG_SCHED_SKIP;
}

static bool count_end(void *user, tensor *t)
{
    struct end *e = user;
    e->n_handed += t == e->t;
    return false;
}

/* End the graph before node t. n: number of nodes that A computes. */
static void check_end(struct gguf_sched *s, struct gguf_graph *g,
                      const struct fake_backend *a, const tensor *t, int n)
{
    struct end e = { t, 0 };
    struct gguf_error err;
    const int before = a->n_nodes;
    const struct gg_sched_watch watch = { end_at, count_end, &e };
    ignore_status(gg_sched_set_watch(s, watch, NULL));
    ok(!gguf_sched_compute(s, g, &err) && e.n_handed == 1 &&
           a->n_nodes - before == n,
       "ended at %s: %d of 3 nodes of A are computed", gguf_op_name(t->op), n);
    ignore_status(gguf_sched_set_eval(s, no_eval, NULL));
}

static void check_by_hand(void)
{
    struct gguf_error err;
    static struct fake_backend a;
    struct gguf_backend *cpu;
    struct gguf_sched *s;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    static char text[2000];
    must(fake_backend_init(&a, "A", false, NULL, &err), &err);
    a.refuses[GGUF_OP_SOFT_MAX] = true;
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct gguf_backend *const all[] = { &a.backend, cpu };
    p.backends = all;
    p.n_backends = 1;
    ok(gguf_sched_create(&s, &p, &err) == GGUF_E_INVALID && !s, "%s",
       err.message);
    p.n_backends = 2;
    must(gguf_sched_create(&s, &p, &err), &err);
    cp.mem_size = 1 << 16;
    cp.no_alloc = true;
    must(gguf_ctx_create(&c, &cp, &err), &err);
    tensor *w = gguf_tensor_set_name(
        gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 4, 4), "w");
    struct gguf_buffer *b;
    must(gguf_ctx_alloc_tensors(c, &a.buft, NULL, &b, &err), &err);
    gguf_buffer_set_usage(b, GGUF_USAGE_WEIGHTS);
    ignore_status(gguf_buffer_clear(b, 0, NULL));
    tensor *x =
        gguf_tensor_set_name(gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 4), "x");
    gguf_tensor_add_flags(x, GGUF_TENSOR_INPUT);
    tensor *y = gguf_op_matmul(c, w, x);
    tensor *sm =
        gguf_tensor_set_name(gguf_op_soft_max(c, y, NULL, 1, 0), "sm");
    tensor *z = gguf_op_matmul(c, w, sm);
    tensor *r = gguf_tensor_add_flags(gguf_op_relu(c, z), GGUF_TENSOR_OUTPUT);
    struct gguf_graph *g = gguf_graph_create(c, 16);
    must(gguf_graph_finish(c, g, r, &err), &err);
    must(gguf_sched_reserve(s, g, &err), &err);
    ok(!y->data && gguf_sched_n_splits(s) == 3 &&
           gguf_sched_n_copies(s) == 3 && gguf_sched_find_backend(s, y) == 0 &&
           gguf_sched_find_backend(s, sm) == 1 &&
           gguf_sched_find_backend(s, r) == 0 &&
           gguf_sched_find_backend(s, x) == 1,
       "weights decide, and refused operations go to the CPU");
    const struct gguf_write_callback out = { collect_text, text };
    must(gguf_sched_dump(s, out, &err), &err);
    ok(!strcmp(text, "split 0: A, 1 nodes\n  copy 'x' F32 [4]\n"
                     "  matmul F32 [4]\n"
                     "split 1: CPU, 1 nodes\n  copy F32 [4]\n"
                     "  soft_max 'sm' F32 [4]\n"
                     "split 2: A, 2 nodes\n  copy 'sm' F32 [4]\n"
                     "  matmul F32 [4]\n  relu F32 [4]\n"),
       "printed");
    must(gguf_sched_alloc(s, g, &err), &err);
    float v[4] = { 1, 2, 3, 4 };
    must(gguf_tensor_set(x, v, 0, 16, &err), &err);
    must(gguf_sched_compute(s, g, &err), &err);
    must(gguf_tensor_get(r, v, 0, 16, &err), &err);
    ok(v[0] == 0 && v[3] == 0, "computed");
    const struct gguf_sched_eval stops = { wants_relu, stop_always, NULL };
    ignore_status(gguf_sched_set_eval(s, stops, NULL));
    ok(gguf_sched_compute(s, g, &err) == GGUF_E_CANCELLED, "%s", err.message);
    ignore_status(gguf_sched_set_eval(s, no_eval, NULL));
    check_end(s, g, &a, y, 0);
    check_end(s, g, &a, sm, 1);
    check_end(s, g, &a, r, 2);
    must(gguf_sched_pin(s, r, 1, &err), &err);
    must(gguf_sched_alloc(s, g, &err), &err);
    ok(gguf_sched_find_backend(s, r) == 1 && gguf_sched_n_splits(s) == 4,
       "pinned to the CPU");
    ok(gguf_sched_pin(s, r, 2, &err) == GGUF_E_INVALID, "%s", err.message);
    must(gguf_sched_pin(s, sm, 0, &err), &err);
    ok(gguf_sched_alloc(s, g, &err) == GGUF_E_OP, "%s", err.message);
    ignore_status(gguf_sched_reset(s, NULL));
    ok(gguf_sched_n_splits(s) == 0, "reset");
    gguf_sched_destroy(s);
    gguf_buffer_destroy(b);
    gguf_ctx_destroy(c);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&a.backend);
}

/* --- graphs like the last one --------------------------------------------- */

/* Graphs of one shape, built anew each time, are assigned once. Another shape,
 * pin or place of the weights gives another assignment. */
static void check_again(void)
{
    struct gguf_error err;
    static struct fake_backend a;
    struct gguf_backend *cpu;
    struct gguf_sched *s, *alone;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    bool once = true, right = true;
    must(fake_backend_init(&a, "A", false, NULL, &err), &err);
    a.refuses[GGUF_OP_SOFT_MAX] = a.refuses[GGUF_OP_ADD] = true;
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct gguf_backend *const all[] = { &a.backend, cpu };
    const struct gguf_buft *host[] = { gguf_host_buft(), gguf_host_buft(),
                                       gguf_host_buft(), gguf_host_buft() };
    const struct gguf_buft *home[] = { &a.buft, gguf_host_buft(), &a.buft,
                                       gguf_host_buft() };
    p.backends = all + 1;
    p.n_backends = 1;
    must(gguf_sched_create(&alone, &p, &err), &err);
    p.backends = all;
    p.n_backends = 2;
    must(gguf_sched_create(&s, &p, &err), &err);
    struct random_graph held[4];
    uint64_t seed = 1;
    for (bool has_weight = false; !has_weight; seed += !has_weight) {
        struct random_graph one = random_graph_make(seed, host);
        has_weight = gguf_graph_has(one.graph, one.weights[0]);
        random_graph_free(&one);
    }
    for (int k = 0; k < 4; k++) {
        /* other tensors, at other addresses, with other values */
        struct random_graph one = random_graph_make(seed, host);
        held[k] = random_graph_make(seed, home);
        random_graph_run(alone, &one, (uint64_t)k);
        random_graph_run(s, &held[k], (uint64_t)k);
        right = right && random_graph_same(&one, &held[k]);
        random_graph_run(s, &held[k], (uint64_t)k);
        right = right && random_graph_same(&one, &held[k]);
        once = once && gguf_sched_n_plans(s) == 1;
        random_graph_free(&one);
    }
    ok(once, "a graph of the same shape is not assigned again");
    ok(right, "and its results are right");
    size_t n = 0;
    const struct gguf_write_callback out = { count_lines, &n };
    must(gguf_sched_dump(s, out, &err), &err);
    ok(n > gguf_graph_n_nodes(held[3].graph), "%zu lines of assignments", n);
    must(gguf_sched_pin(s, held[3].out[0], 1, &err), &err);
    must(gguf_sched_alloc(s, held[3].graph, &err), &err);
    ok(gguf_sched_n_plans(s) == 2, "a pin changes assignments");
    gguf_buffer_set_usage(held[3].buffers[0], GGUF_USAGE_ANY);
    must(gguf_sched_reserve(s, held[3].graph, &err), &err);
    ok(gguf_sched_n_plans(s) == 3, "so does the use of a buffer");
    struct random_graph other = random_graph_make(seed + 1, home);
    must(gguf_sched_alloc(s, other.graph, &err), &err);
    ok(gguf_sched_n_plans(s) == 4, "so does another graph");
    gguf_sched_destroy(s);
    gguf_sched_destroy(alone);
    for (int k = 0; k < 4; k++)
        random_graph_free(&held[k]);
    random_graph_free(&other);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&a.backend);
}

/* --- copies and buffers --------------------------------------------------- */

enum { LINKS = 5, WIDTH = 64 };

/* A chain in which A and the CPU alternate. Each link of A reads a weight and
 * a mask of the CPU. A reads the cache, the CPU writes it, and A reads it
 * again. */
struct chain {
    struct gguf_ctx *ctx;
    struct gguf_buffer *buffer;
    tensor *weight, *cache, *mask, *out;
    struct gguf_graph *graph;
};

/* Pin a tensor to the last backend, or to the one before it. */
static void pin_tensor(struct gguf_sched *s, tensor *t, bool last)
{
    struct gguf_error err;
    const unsigned n = gguf_sched_n_backends(s);
    if (n > 1)
        must(gguf_sched_pin(s, t, last ? n - 1 : n - 2, &err), &err);
}

static struct chain make_chain(struct gguf_sched *s)
{
    struct gguf_error err;
    struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
    struct chain c;
    cp.mem_size = 1 << 16;
    cp.no_alloc = true;
    must(gguf_ctx_create(&c.ctx, &cp, &err), &err);
    c.weight = gguf_tensor_create_1d(c.ctx, GGUF_DTYPE_F32, WIDTH);
    c.cache = gguf_tensor_create_1d(c.ctx, GGUF_DTYPE_F32, 2 * WIDTH);
    must(
        gguf_ctx_alloc_tensors(c.ctx, gguf_host_buft(), NULL, &c.buffer, &err),
        &err);
    random_graph_fill(c.weight, 1);
    random_graph_fill(c.cache, 2);
    c.mask = gguf_tensor_add_flags(
        gguf_tensor_create_1d(c.ctx, GGUF_DTYPE_F32, WIDTH),
        GGUF_TENSOR_INPUT);
    tensor *t = c.mask;
    for (int i = 0; i < LINKS; i++) {
        pin_tensor(s, t = gguf_op_mul(c.ctx, t, c.weight), false);
        pin_tensor(s, t = gguf_op_add(c.ctx, t, c.mask), false);
        pin_tensor(s, t = gguf_op_tanh(c.ctx, t), true);
    }
    tensor *v = gguf_op_view_1d(c.ctx, c.cache, WIDTH, 4 * WIDTH);
    pin_tensor(s, t = gguf_op_add(c.ctx, t, v), false);
    tensor *write = gguf_op_cpy(c.ctx, t, v);
    pin_tensor(s, write, true);
    pin_tensor(s, t = gguf_op_mul(c.ctx, write, v), false);
    c.out = gguf_tensor_add_flags(t, GGUF_TENSOR_OUTPUT);
    c.graph = gguf_graph_create(c.ctx, 64);
    must(gguf_graph_finish(c.ctx, c.graph, t, &err), &err);
    return c;
}

static void drop_chain(struct chain *c)
{
    gguf_buffer_destroy(c->buffer);
    gguf_ctx_destroy(c->ctx);
}

static void compute_chain(struct gguf_sched *s, struct chain *c,
                          float out[WIDTH])
{
    struct gguf_error err;
    must(gguf_sched_alloc(s, c->graph, &err), &err);
    random_graph_fill(c->mask, 3);
    must(gguf_sched_compute(s, c->graph, &err), &err);
    must(gguf_tensor_get(c->out, out, 0, WIDTH * sizeof *out, &err), &err);
}

static void check_copies(bool async, unsigned n_lanes)
{
    struct gguf_error err;
    static struct fake_backend a;
    struct gguf_backend *cpu;
    struct gguf_sched *s, *alone;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    float want[WIDTH], got[WIDTH];
    must(fake_backend_init(&a, "A", async, NULL, &err), &err);
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    struct gguf_backend *const all[] = { &a.backend, cpu };
    p.backends = all + 1;
    p.n_backends = 1;
    must(gguf_sched_create(&alone, &p, &err), &err);
    p.backends = all;
    p.n_backends = 2;
    p.n_copies = n_lanes;
    must(gguf_sched_create(&s, &p, &err), &err);
    struct chain plain = make_chain(alone), c = make_chain(s);
    compute_chain(alone, &plain, want);
    compute_chain(s, &c, got);
    /* Copies to A: the weight, the mask, the input of each link but the first
     * and the cache's; the cache before it is written; the written rows, and
     * the cache again. Copies to the CPU: the output of each link and of A's
     * last but one. */
    const int to_a = 2 + LINKS - 1 + 1 + 1 + 2, to_cpu = LINKS + 1;
    ok((int)gguf_sched_n_copies(s) == to_a + to_cpu && a.n_sets == to_a &&
           a.n_bytes == (uint64_t)to_a * sizeof got,
       "%s, %u copies: %zu copies for %zu splits, A was given %d: each once",
       async ? "with a queue" : "without", n_lanes, gguf_sched_n_copies(s),
       gguf_sched_n_splits(s), a.n_sets);
    ok(!memcmp(want, got, sizeof got), "written rows are copied again");
    gguf_sched_destroy(s);
    gguf_sched_destroy(alone);
    drop_chain(&c);
    drop_chain(&plain);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&a.backend);
}

/* Two backends with host memory share one buffer. */
static void check_one_buffer(void)
{
    struct gguf_error err;
    static struct fake_backend a;
    struct gguf_backend *cpu, *other;
    struct gguf_sched *s, *alone;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    float want[WIDTH], got[WIDTH];
    static char text[4000];
    must(fake_backend_init(&a, "A", false, NULL, &err), &err);
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    must(gguf_cpu_backend_create(&other, NULL, &err), &err);
    struct gguf_backend *const all[] = { other, &a.backend, cpu };
    struct gguf_backend *const two[] = { other, cpu };
    p.backends = all + 2;
    p.n_backends = 1;
    must(gguf_sched_create(&alone, &p, &err), &err);
    struct chain plain = make_chain(alone);
    compute_chain(alone, &plain, want);
    p.backends = two;
    p.n_backends = 2;
    must(gguf_sched_create(&s, &p, &err), &err);
    struct chain c = make_chain(s);
    compute_chain(s, &c, got);
    ok(!memcmp(want, got, sizeof got) && gguf_sched_n_copies(s) == 0 &&
           gguf_sched_n_splits(s) > 2 &&
           gguf_sched_buffer_size(s, 0) == gguf_sched_buffer_size(alone, 0) &&
           gguf_sched_buffer_size(s, 1) == 0,
       "two backends of host memory take the memory of one: %zu bytes",
       gguf_sched_buffer_size(s, 0));
    const struct gguf_write_callback out = { collect_text, text };
    must(gguf_sched_dump_plan(s, out, &err), &err);
    ok(strstr(text, "buffer 1: CPU, the same as 0\n") &&
           !strstr(text, ": buffer 1"),
       "which is printed");
    gguf_sched_destroy(s);
    drop_chain(&c);
    p.backends = all;
    p.n_backends = 3;
    must(gguf_sched_create(&s, &p, &err), &err);
    c = make_chain(s);
    compute_chain(s, &c, got);
    ok(!memcmp(want, got, sizeof got) && gguf_sched_buffer_size(s, 2) == 0 &&
           gguf_sched_buffer_size(s, 1) > 0,
       "and with one between them that has memory of its own");
    gguf_sched_destroy(s);
    drop_chain(&c);
    gguf_sched_destroy(alone);
    drop_chain(&plain);
    gguf_backend_destroy(other);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&a.backend);
}

/* --- failing memory ------------------------------------------------------- */

/* An allocator for several threads: a backend's threads allocate, too. */
struct locked {
    struct gguf_allocator a;
    struct failalloc f;
    pthread_mutex_t mutex;
};

static void *locked_alloc(void *user, size_t size)
{
    struct locked *l = user;
    pthread_mutex_lock(&l->mutex);
    void *p = failalloc_alloc(&l->f, size);
    pthread_mutex_unlock(&l->mutex);
    return p;
}

static void locked_free(void *user, void *p)
{
    struct locked *l = user;
    pthread_mutex_lock(&l->mutex);
    failalloc_free(&l->f, p);
    pthread_mutex_unlock(&l->mutex);
}

/* Objects created by one try. */
struct
try {
    struct fake_backend is;
    struct gguf_backend *cpu;
    struct gguf_ctx *ctx;
    struct gguf_buffer *buffer;
    struct gguf_sched *sched;
};

static enum gguf_status build_objects(struct try *y,
                                      const struct gguf_allocator *a,
                                      struct gguf_graph **graph, tensor **in,
                                      struct gguf_error *err)
{
    struct gguf_ctx_params cp = GGUF_CTX_PARAMS_INIT;
    cp.mem_size = 1 << 15;
    cp.no_alloc = true;
    cp.allocator = a;
    GG_TRY(gguf_ctx_create(&y->ctx, &cp, err));
    struct gguf_ctx *c = y->ctx;
    tensor *w = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 8, 8);
    GG_TRY(gguf_ctx_alloc_tensors(c, &y->is.buft, a, &y->buffer, err));
    gguf_buffer_set_usage(y->buffer, GGUF_USAGE_WEIGHTS);
    ignore_status(gguf_buffer_clear(y->buffer, 0, NULL));
    *in = gguf_tensor_add_flags(gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 8, 3),
                                GGUF_TENSOR_INPUT);
    tensor *t = gguf_op_matmul(c, w, *in);
    t = gguf_op_matmul(c, w, gguf_op_soft_max(c, t, NULL, 1, 0));
    *graph = gguf_graph_create(c, 16);
    return gguf_graph_finish(
        c, *graph,
        gguf_tensor_add_flags(gguf_op_add(c, t, *in), GGUF_TENSOR_OUTPUT),
        err);
}

static enum gguf_status try_all(struct try *y, const struct gguf_allocator *a,
                                bool async, unsigned n_copies,
                                struct gguf_error *err)
{
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_cpu_params cpu = GGUF_CPU_PARAMS_INIT;
    struct gguf_graph *g;
    tensor *in;
    GG_TRY(fake_backend_init(&y->is, "A", async, a, err));
    y->is.refuses[GGUF_OP_SOFT_MAX] = y->is.refuses[GGUF_OP_ADD] = true;
    cpu.allocator = a;
    GG_TRY(gguf_cpu_backend_create(&y->cpu, &cpu, err));
    GG_TRY(build_objects(y, a, &g, &in, err));
    struct gguf_backend *const all[] = { &y->is.backend, y->cpu };
    p.backends = all;
    p.n_backends = 2;
    p.n_copies = n_copies;
    p.allocator = a;
    GG_TRY(gguf_sched_create(&y->sched, &p, err));
    GG_TRY(gguf_sched_pin(y->sched, in, 1, err));
    GG_TRY(gguf_sched_reserve(y->sched, g, err));
    GG_TRY(gguf_sched_alloc(y->sched, g, err));
    GG_TRY(gguf_tensor_fill(in, 0, 0, gguf_tensor_size(in), err));
    GG_TRY(gguf_sched_compute_async(y->sched, g, err));
    return gguf_sched_compute(y->sched, g, err);
}

static void check_failing(bool async, unsigned n_copies)
{
    struct locked l = { .a = { .struct_size = sizeof(struct gguf_allocator),
                               .alloc = locked_alloc,
                               .free = locked_free,
                               .user = &l } };
    bool right = true;
    unsigned n = 0;
    pthread_mutex_init(&l.mutex, NULL);
    do {
        static struct try y;
        struct gguf_error err;
        memset(&y, 0, sizeof y);
        failalloc_init(&l.f, n++);
        enum gguf_status st = try_all(&y, &l.a, async, n_copies, &err);
        gguf_sched_destroy(y.sched);
        gguf_buffer_destroy(y.buffer);
        gguf_ctx_destroy(y.ctx);
        gguf_backend_destroy(y.cpu);
        if (y.is.cpu)
            gguf_backend_destroy(&y.is.backend);
        right = right && !l.f.live &&
                st == (l.f.calls < n ? GGUF_OK : GGUF_E_NOMEM);
    } while (l.f.calls >= n && n < 1000);
    pthread_mutex_destroy(&l.mutex);
    ok(right && n > 50 && n < 1000,
       "%s, %u copies: memory that fails at the n-th call, for %u n: a status, "
       "no leak",
       async ? "with a queue" : "without", n_copies, n - 1);
}

int main(int argc, char **argv)
{
    check_by_hand();
    check_again();
    check_copies(false, 1);
    check_copies(true, 1);
    check_copies(true, 2);
    check_one_buffer();
    check_failing(false, 1);
    check_failing(true, 1);
    check_failing(true, 3);
    check_random(argc > 1 ? atoi(argv[1]) : 1000,
                 argc > 2 ? (uint64_t)atoll(argv[2]) : 1);
    return done_testing();
}
