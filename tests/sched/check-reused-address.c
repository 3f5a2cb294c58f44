/* SPDX-License-Identifier: MIT */
/* check-reused-address.c - graphs and tensors at the addresses of earlier ones
 *
 * A context that is reset, or destroyed and created again, gives the same
 * addresses to other objects. Code that remembers a graph or a tensor must
 * notice.
 */
#include "config.h"
#include "gguf/cpu.h"
#include "gguf/sched.h"
#include "tests/failalloc.h"
#include "tests/graph/fake_backend.h"
#include "tests/ignore_status.h"

enum { N = 64 };

/* Inputs of graphs, in memory of their own. */
struct world {
    struct gguf_ctx *data, *ctx;
    struct gguf_buffer *buffer;
    tensor *x, *y; /* y: result */
    struct gguf_backend *cpu;
    struct fake_backend is;
    struct gguf_graph *graph;
    tensor *mid; /* a node of the graph */
};

static struct gguf_ctx *make_ctx(size_t n_tensors)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    p.mem_size = n_tensors * gguf_tensor_overhead() + gguf_graph_overhead(32);
    p.no_alloc = true;
    must(gguf_ctx_create(&c, &p, &err), &err);
    return c;
}

static void begin_world(struct world *w)
{
    struct gguf_error err;
    float v[N];
    memset(w, 0, sizeof *w);
    must(gguf_cpu_backend_create(&w->cpu, NULL, &err), &err);
    must(fake_backend_init(&w->is, "A", false, NULL, &err), &err);
    w->is.refuses[GGUF_OP_CPY] = true;
    w->data = make_ctx(4);
    w->x = gguf_tensor_create_1d(w->data, GGUF_DTYPE_F32, N);
    w->y = gguf_tensor_create_1d(w->data, GGUF_DTYPE_F32, N);
    must(gguf_ctx_alloc_tensors(w->data, gguf_host_buft(), NULL, &w->buffer,
                                &err),
         &err);
    for (int i = 0; i < N; i++)
        v[i] = (float)i;
    must(gguf_tensor_set(w->x, v, 0, sizeof v, &err), &err);
    w->ctx = make_ctx(24);
}

static void end_world(struct world *w)
{
    gguf_ctx_destroy(w->ctx);
    gguf_buffer_destroy(w->buffer);
    gguf_ctx_destroy(w->data);
    gguf_backend_destroy(&w->is.backend);
    gguf_backend_destroy(w->cpu);
}

/* y = x * (2 + n), through nodes without memory. */
static void make_graph(struct world *w, int n)
{
    struct gguf_error err;
    struct gguf_ctx *c = w->ctx;
    w->graph = gguf_graph_create(c, 32);
    tensor *t = w->mid = gguf_op_add(c, w->x, w->x);
    for (int i = 0; i < n; i++)
        t = gguf_op_add(c, t, w->x);
    must(gguf_graph_finish(c, w->graph, gguf_op_cpy(c, t, w->y), &err), &err);
}

static bool is_times(struct world *w, int n)
{
    struct gguf_error err;
    float v[N];
    bool good = true;
    must(gguf_tensor_get(w->y, v, 0, sizeof v, &err), &err);
    for (int i = 0; i < N; i++)
        good = good && v[i] == (float)(i * n);
    must(gguf_tensor_fill(w->y, 0xff, 0, sizeof v, &err), &err);
    return good;
}

static struct gguf_sched *make_sched(struct world *w, unsigned n_backends,
                                     struct gguf_sched *memory_of)
{
    struct gguf_error err;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_backend *const all[] = { &w->is.backend, w->cpu };
    struct gguf_sched *s;
    p.backends = all + (2 - n_backends);
    p.n_backends = n_backends;
    p.memory_of = memory_of;
    must(gguf_sched_create(&s, &p, &err), &err);
    return s;
}

static bool drop_graph(void *user, const char *text, size_t n)
{
    (void)user, (void)text, (void)n;
    return false;
}

/* --- graphs --------------------------------------------------------------- */

/* Compute without allocating the graph that now has this address. */
static bool compute_again(struct world *w, struct gguf_sched *s, int n)
{
    struct gguf_error err;
    must(gguf_sched_compute(s, w->graph, &err), &err);
    return is_times(w, 2 + n);
}

static void check_sched(unsigned n_backends)
{
    struct gguf_error err;
    struct world w;
    bool same_place = true;
    begin_world(&w);
    struct gguf_sched *s = make_sched(&w, n_backends, NULL);
    make_graph(&w, 1);
    const struct gguf_graph *at = w.graph;
    must(gguf_sched_alloc(s, w.graph, &err), &err);
    bool good = compute_again(&w, s, 1);
    for (int n = 0; n < 4; n++) {
        gguf_ctx_reset(w.ctx);
        make_graph(&w, n);
        same_place = same_place && w.graph == at;
        good = good && compute_again(&w, s, n);
    }
    ok(good && same_place,
       "%u backends: a graph made again at the same address is computed",
       n_backends);
    gguf_graph_clear(w.graph);
    gguf_graph_add(w.graph,
                   gguf_op_cpy(w.ctx, gguf_op_scale(w.ctx, w.x, 7), w.y));
    ok(compute_again(&w, s, 5), "%u backends: and one that was filled anew",
       n_backends);
    gguf_ctx_destroy(w.ctx);
    w.ctx = make_ctx(24);
    make_graph(&w, 2);
    ok(compute_again(&w, s, 2), "%u backends: and one of another context",
       n_backends);
    /* its nodes have memory elsewhere now */
    struct gguf_galloc *ga;
    must(gguf_galloc_create(&ga, NULL, gguf_host_buft(), &err), &err);
    must(gguf_galloc_alloc(ga, w.graph, &err), &err);
    ok(compute_again(&w, s, 2),
       "%u backends: and one that an allocator placed elsewhere", n_backends);
    gguf_galloc_destroy(ga);
    gguf_ctx_reset(w.ctx);
    const struct gguf_write_callback out = { drop_graph, NULL };
    ok(gguf_sched_find_backend(s, w.mid) == -1 &&
           gguf_sched_dump(s, out, &err) == GGUF_E_INVALID &&
           gguf_sched_dump_plan(s, out, &err) == GGUF_E_INVALID,
       "%u backends: no call reaches a destroyed one: %s", n_backends,
       err.message);
    gguf_sched_destroy(s);
    end_world(&w);
}

/* Another scheduler in the same memory needs more of it. */
static void check_moved(void)
{
    struct gguf_error err;
    struct world w;
    begin_world(&w);
    struct gguf_sched *s = make_sched(&w, 1, NULL);
    struct gguf_sched *other = make_sched(&w, 1, s);
    struct gguf_ctx *c = make_ctx(8);
    struct gguf_graph *g = gguf_graph_create(c, 8);
    make_graph(&w, 3);
    must(gguf_sched_alloc(s, w.graph, &err), &err);
    tensor *big = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 1 << 20);
    must(gguf_graph_finish(c, g, gguf_op_sum(c, gguf_op_sqr(c, big)), &err),
         &err);
    must(gguf_sched_alloc(other, g, &err), &err);
    ok(compute_again(&w, s, 3), "memory that was replaced is not computed in");
    gguf_ctx_destroy(c);
    gguf_sched_destroy(other);
    gguf_sched_destroy(s);
    end_world(&w);
}

static void check_plan(void)
{
    struct gguf_error err;
    struct world w;
    struct gguf_galloc *ga;
    struct gguf_plan *p;
    int n_refused = 0;
    begin_world(&w);
    must(gguf_galloc_create(&ga, NULL, gguf_host_buft(), &err), &err);
    for (int way = 0; way < 3; way++) {
        gguf_ctx_reset(w.ctx);
        make_graph(&w, 2);
        must(gguf_galloc_alloc(ga, w.graph, &err), &err);
        must(gguf_plan_create(&p, w.cpu, w.graph, &err), &err);
        must(gguf_plan_compute(p, &err), &err);
        if (!is_times(&w, 4))
            break;
        if (way == 0) {
            gguf_ctx_reset(w.ctx);
        } else if (way == 1) {
            gguf_ctx_reset(w.ctx);
            make_graph(&w, 3);
        } else {
            gguf_graph_add(w.graph, gguf_op_neg(w.ctx, w.x));
        }
        n_refused += gguf_plan_compute(p, &err) == GGUF_E_INVALID;
        gguf_plan_destroy(p);
    }
    ok(n_refused == 3, "a plan of a graph that is another one: %s",
       err.message);
    gguf_galloc_destroy(ga);
    end_world(&w);
}

static void check_generation(void)
{
    struct gguf_error err;
    struct gguf_ctx *c = make_ctx(8);
    struct gguf_graph *g = gguf_graph_create(c, 8), *v;
    uint64_t a = gguf_graph_generation(g);
    tensor *x = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 4);
    tensor *y = gguf_op_neg(c, x);
    must(gguf_graph_finish(c, g, y, &err), &err);
    uint64_t b = gguf_graph_generation(g);
    gguf_graph_add(g, y);
    ok(a && a != b && b == gguf_graph_generation(g),
       "a generation changes with the nodes, and only then");
    v = gguf_graph_view(c, g, 0, 1);
    ok(gguf_graph_generation(v) && gguf_graph_generation(v) != b,
       "a view has its own");
    gguf_graph_clear(g);
    uint64_t d = gguf_graph_generation(g);
    gguf_ctx_reset(c);
    ok(d != a && d != b && !gguf_graph_generation(g) &&
           !gguf_graph_generation(v) && !gguf_graph_n_nodes(g),
       "a reset ends all graphs");
    struct gguf_graph *h = gguf_graph_create(c, 8);
    uint64_t e = gguf_graph_generation(h);
    ok(h == g && e && e != a && e != b && e != d,
       "one at the same address has another");
    gguf_ctx_destroy(c);
}

/* --- pins ----------------------------------------------------------------- */

/* Backend of the middle node, whichever scheduler allocates first. */
static int backend_of_mid(struct world *w, struct gguf_sched *s)
{
    struct gguf_error err;
    for (size_t i = 0; i < gguf_graph_n_nodes(w->graph); i++) {
        tensor *t = gguf_graph_node(w->graph, i);
        t->data = NULL;
        t->buffer = NULL;
    }
    must(gguf_sched_alloc(s, w->graph, &err), &err);
    return gguf_sched_find_backend(s, w->mid);
}

static void check_pins(void)
{
    struct gguf_error err;
    struct world w;
    begin_world(&w);
    struct gguf_sched *s = make_sched(&w, 2, NULL);
    struct gguf_sched *other = make_sched(&w, 2, NULL);
    make_graph(&w, 1);
    const int free_choice = backend_of_mid(&w, s);
    const unsigned pin = (unsigned)!free_choice;
    must(gguf_sched_pin(s, w.mid, pin, &err), &err);
    must(gguf_sched_pin(other, w.mid, (unsigned)free_choice, &err), &err);
    bool good = backend_of_mid(&w, s) == (int)pin;
    must(gguf_sched_pin(other, w.mid, pin, &err), &err);
    good = good && backend_of_mid(&w, other) == (int)pin;
    must(gguf_sched_pin(other, w.mid, (unsigned)free_choice, &err), &err);
    ok(good && backend_of_mid(&w, other) == free_choice &&
           backend_of_mid(&w, s) == (int)pin,
       "two schedulers pin one tensor, each its own way");
    const tensor *at = w.mid;
    gguf_ctx_reset(w.ctx);
    make_graph(&w, 1);
    ok(w.mid == at && backend_of_mid(&w, s) == free_choice,
       "a tensor at the address of a pinned one is not pinned");
    must(gguf_sched_pin(other, w.mid, pin, &err), &err);
    ok(backend_of_mid(&w, s) == free_choice,
       "nor by the pin of another scheduler");
    must(gguf_sched_pin(s, w.mid, pin, &err), &err);
    gguf_ctx_destroy(w.ctx);
    w.ctx = make_ctx(24);
    make_graph(&w, 1);
    ok(backend_of_mid(&w, s) == free_choice, "nor one of another context");
    ignore_status(gguf_sched_reset(other, NULL));
    must(gguf_sched_pin(s, w.mid, pin, &err), &err);
    ignore_status(gguf_sched_reset(s, NULL));
    ok(backend_of_mid(&w, s) == free_choice, "a reset ends pins");
    gguf_sched_destroy(other);
    gguf_sched_destroy(s);
    end_world(&w);
}

/* Pins for each of many batches do not accumulate. */
static void check_many_pins(void)
{
    struct gguf_error err;
    struct gguf_sched_params p = GGUF_SCHED_PARAMS_INIT;
    struct gguf_sched *s;
    struct failalloc f;
    struct world w;
    begin_world(&w);
    struct gguf_backend *const all[] = { &w.is.backend, w.cpu };
    p.allocator = failalloc_init(&f, UINT_MAX);
    p.backends = all;
    p.n_backends = 2;
    must(gguf_sched_create(&s, &p, &err), &err);
    unsigned n_calls = 0;
    for (int i = 0; i < 1000; i++) {
        gguf_ctx_reset(w.ctx);
        make_graph(&w, 8);
        for (size_t k = 0; k < gguf_graph_n_nodes(w.graph); k++)
            must(gguf_sched_pin(s, gguf_graph_node(w.graph, k), 1, &err),
                 &err);
        n_calls = i ? n_calls : f.calls;
    }
    ok(n_calls && f.calls == n_calls,
       "pins of 1000 graphs take the memory of the first's");
    gguf_sched_destroy(s);
    ok(!f.live, "which is given back");
    end_world(&w);
}

static void check_list(void)
{
    struct world w;
    begin_world(&w);
    struct gguf_sched *s = make_sched(&w, 2, NULL);
    ok(gguf_sched_n_backends(s) == 2 &&
           gguf_sched_backend(s, 0) == &w.is.backend &&
           gguf_sched_backend(s, 1) == w.cpu && !gguf_sched_backend(s, 2),
       "a scheduler lists its backends");
    gguf_sched_destroy(s);
    end_world(&w);
}

int main(void)
{
    check_generation();
    check_sched(1);
    check_sched(2);
    check_moved();
    check_plan();
    check_pins();
    check_many_pins();
    check_list();
    return done_testing();
}
