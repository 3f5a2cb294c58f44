/* SPDX-License-Identifier: MIT */
/* check-fuse.c - fused nodes: which nodes are fused, and their results have
 * the same bits */
#include "config.h"
#include "base/mem.h"
#include "cpu/fuse.h"
#include "cpu/compute_table.h"
#include "gguf/sched.h"
#include "tests/cpu/ops.h"

#include <stdatomic.h>

enum { D = 64, R = 60, N_IN = 3, N_NODES = 40 };

/* ---- which nodes go together ---- */

static struct gg_cpu_step step_of(tensor *t)
{
    return (struct gg_cpu_step){ .node = t, .n = 1 };
}

/* Number of nodes among a, b and c (NULL: none) that form one step. */
static size_t nodes_together(tensor *a, tensor *b, tensor *c)
{
    struct gg_cpu_step s[] = { step_of(a), step_of(b), step_of(c ? c : b) };
    gg_cpu_fuse(s, c ? 3 : 2, 1);
    return s[0].n;
}

static tensor *plain_source(ctx_t *c, int64_t n0, int64_t n1)
{
    return source(c, GGUF_DTYPE_F32, PLAIN, n0, n1, 1, 1);
}

static void check_patterns(void)
{
    ctx_t *c = new_ctx();
    tensor *x = plain_source(c, D, R), *r = plain_source(c, D, R),
           *w = plain_source(c, D, 1);
    tensor *sum = gguf_op_add(c, x, r);
    tensor *norm = gguf_op_rms_norm(c, sum, 1e-5f);
    tensor *y = gguf_op_mul(c, norm, w);
    ok(nodes_together(sum, norm, y) == 3, "a residual, a norm and its weight");
    tensor *heads = gguf_op_reshape_3d(c, y, D / 4, 4, R);
    tensor *part = gguf_op_rms_norm(c, heads, 1e-5f);
    struct gg_cpu_step s[] = { step_of(y), step_of(part) };
    gg_cpu_fuse(s, 2, 4 * D * sizeof(float));
    ok(s[0].n == 2 && s[0].n_rows == R && s[0].some == 1,
       "a norm of heads after one of rows, row by row");
    gg_cpu_fuse(s, 1, 1);
    tensor *up = plain_source(c, D, R);
    ok(nodes_together(gguf_op_silu(c, x), gguf_op_mul(c, x, up), NULL) == 2,
       "two that read the same");
    ok(nodes_together(gguf_op_silu(c, x), gguf_op_silu(c, up), NULL) == 1,
       "not two that have nothing in common");
    ok(nodes_together(sum, gguf_op_mul(c, up, gguf_op_view_1d(c, sum, D, 0)),
                      NULL) == 1,
       "not one that needs the first row for all");
    tensor *square = plain_source(c, D, D), *first = gguf_op_relu(c, square);
    ok(nodes_together(first,
                      gguf_op_add(c, square, gguf_op_transpose(c, first)),
                      NULL) == 1,
       "nor columns");
    ok(nodes_together(sum, gguf_op_silu(c, gguf_op_reshape_2d(c, sum, R, D)),
                      NULL) == 1,
       "nor rows that begin elsewhere");
    tensor *one = gguf_op_relu(c, w);
    ok(nodes_together(one, gguf_op_silu(c, one), NULL) == 1,
       "nor a single row");
    ok(nodes_together(sum, gguf_op_dup(c, sum), NULL) == 1 &&
           nodes_together(sum, gguf_op_sum_rows(c, sum), NULL) == 1 &&
           nodes_together(gguf_op_matmul(c, square, x), sum, NULL) == 1,
       "nor operations that do not share out rows");
    struct gg_cpu_step mixed[] = { step_of(sum), step_of(norm) };
    mixed[1].single = true;
    gg_cpu_fuse(mixed, 2, 1);
    ok(mixed[0].n == 1, "nor rows shared by a team with those of one thread");
    gguf_ctx_destroy(c);
}

/* Results that an allocator places over dead tensors. */
static void check_memory(void)
{
    const size_t row = D * sizeof(float);
    ctx_t *c = new_ctx();
    tensor *x = plain_source(c, D, R), *u = plain_source(c, D, R);
    tensor *a = gguf_op_add(c, x, u), *b = gguf_op_silu(c, a);
    tensor *d = gguf_op_mul(c, b, u);
    b->data = a->data;
    ok(nodes_together(a, b, d) == 3, "in place");
    b->data = x->data;
    ok(nodes_together(a, b, d) == 3, "over a source of the first, row by row");
    b->data = (char *)x->data + row;
    ok(nodes_together(a, b, d) == 1, "not a row further on: it is needed yet");
    b->data = (char *)x->data - row;
    ok(nodes_together(a, b, d) == 1, "nor a row before");
    b->data = (char *)a->data + row;
    ok(nodes_together(a, b, d) == 1, "nor so over the first's result");
    b->data = (char *)a->data + R * row;
    d->data = (char *)a->data + row;
    ok(nodes_together(a, b, d) == 2, "nor the third over the first's");
    gguf_ctx_destroy(c);
}

/* ---- the same bits ---- */

struct drawn {
    ctx_t *ctx;
    struct gguf_galloc *ga;
    struct gguf_graph *graph;
    tensor *in[N_IN], *w[2], *out[N_NODES];
    int n_out;
};

/* A random node that reads t[0] to t[n - 1], most often the last. */
static tensor *draw_node(struct drawn *g, tensor **t, int n)
{
    ctx_t *c = g->ctx;
    struct gguf_rope rope = GGUF_ROPE_INIT;
    tensor *a = t[n - 1 - (int)rnd_below(n < 3 ? (uint64_t)n : 3)];
    tensor *b = t[rnd_below((uint64_t)n)], *w = g->w[rnd_below(2)];
    rope.n_dims = D / 4;
    switch (rnd_below(15)) {
    case 0: return gguf_op_add(c, a, b);
    case 1: return gguf_op_add(c, a, w);
    case 2: return gguf_op_mul(c, a, w);
    case 3: return gguf_op_rms_norm(c, a, 1e-5f);
    case 4: return gguf_op_norm(c, a, 1e-5f);
    case 5: return gguf_op_swiglu(c, a, b);
    case 6: return gguf_op_scale(c, a, 0.5f);
    case 7: return gguf_op_tanh(c, a);
    case 8: return gguf_op_soft_max(c, a, NULL, 1, 0);
    case 9: return gguf_op_l2_norm(c, a, 1e-5f);
    case 10:
        a = gguf_op_reshape_3d(c, a, D / 4, 4, R);
        return gguf_op_reshape_2d(c, gguf_op_rms_norm(c, a, 1e-5f), D, R);
    case 11:
        a = gguf_op_rope(c, gguf_op_reshape_3d(c, a, D / 4, 4, R), t[-1], NULL,
                         &rope);
        return gguf_op_reshape_2d(c, a, D, R);
    case 12:
        a = gguf_op_reshape_2d(c, a, R, D);
        return gguf_op_reshape_2d(c, gguf_op_silu(c, a), D, R);
    case 13:
        return gguf_op_reshape_2d(c, gguf_op_cont(c, gguf_op_transpose(c, a)),
                                  D, R);
    default: return gguf_op_mul(c, a, b);
    }
}

static void draw_graph(struct drawn *g, uint64_t seed)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_error err;
    tensor *all[1 + N_IN + N_NODES], **t = all + 1;
    *g = (struct drawn){ .n_out = 0 };
    p.mem_size = 1 << 20;
    p.no_alloc = true;
    tap_rng = seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    if (gguf_ctx_create(&g->ctx, &p, &err))
        exit(99);
    all[0] = gguf_tensor_add_flags(
        gguf_tensor_create_1d(g->ctx, GGUF_DTYPE_I32, R), GGUF_TENSOR_INPUT);
    for (int i = 0; i < N_IN; i++)
        t[i] = g->in[i] = gguf_tensor_add_flags(
            gguf_tensor_create_2d(g->ctx, GGUF_DTYPE_F32, D, R),
            GGUF_TENSOR_INPUT);
    for (int i = 0; i < 2; i++)
        g->w[i] = gguf_tensor_add_flags(
            gguf_tensor_create_1d(g->ctx, GGUF_DTYPE_F32, D),
            GGUF_TENSOR_INPUT);
    g->graph = gguf_graph_create(g->ctx, 8 * N_NODES);
    for (int i = 0; i < N_NODES; i++) {
        t[N_IN + i] = draw_node(g, t, N_IN + i);
        if (!rnd_below(8) || i == N_NODES - 1) {
            g->out[g->n_out++] =
                gguf_tensor_add_flags(t[N_IN + i], GGUF_TENSOR_OUTPUT);
            gguf_graph_add(g->graph, t[N_IN + i]);
        }
    }
    gguf_graph_add(g->graph, gguf_op_get_rows(g->ctx, t[0], all[0]));
    if (gguf_graph_finish(g->ctx, g->graph, NULL, &err) ||
        gguf_galloc_create(&g->ga, NULL, gguf_host_buft(), &err) ||
        gguf_galloc_alloc(g->ga, g->graph, &err)) {
        printf("Bail out! %s\n", err.message);
        exit(99);
    }
    for (int i = 0; i < R; i++)
        ((int32_t *)all[0]->data)[i] = i * 7 % R;
    for (int i = 0; i < N_IN + 2; i++)
        if (i >= N_IN ? g->w[i - N_IN]->data : g->in[i]->data)
            fill(i < N_IN ? g->in[i] : g->w[i - N_IN]);
}

static void drop_graph(struct drawn *g)
{
    gguf_galloc_destroy(g->ga);
    gguf_ctx_destroy(g->ctx);
}

/* Compute the graph and copy its outputs to out. Returns the number of nodes
 * that joined another one's step. */
static size_t compute_drawn(struct drawn *g, unsigned team, size_t bytes,
                            char *out)
{
    const unsigned nth = gguf_pool_n_threads(ops_pools[team]);
    struct gg_cpu_plan p;
    struct gg_barrier barrier;
    struct gguf_error err;
    size_t n_joined = 0;
    gg_cpu_plan_init(&p, NULL, bytes);
    if (gg_cpu_plan_make(&p, g->graph, nth, &ops_kern, &err) ||
        gg_barrier_init(&barrier, nth, 0, &err))
        exit(99);
    for (size_t i = 0; i < p.n; i += p.steps[i].n)
        n_joined += p.steps[i].n - 1;
    const struct gguf_abort_callback never = { NULL, NULL };
    void *work = gg_mem_alloc_aligned(NULL, p.work_size, 64);
    if (!work || gg_cpu_plan_run(&p, ops_pools[team], &barrier, work,
                                 &ops_kern, never, NULL, &err))
        exit(99);
    for (int i = 0; i < g->n_out; i++)
        memcpy(out + (size_t)i * D * R * sizeof(float), g->out[i]->data,
               D * R * sizeof(float));
    gg_mem_free_aligned(NULL, work);
    gg_barrier_fini(&barrier);
    gg_cpu_plan_fini(&p);
    return n_joined;
}

static void check_bits(int n_graphs)
{
    static char want[N_NODES * D * R * sizeof(float)], got[sizeof want];
    static const size_t bytes[] = { 1, 8 * D * sizeof(float),
                                    GG_CPU_FUSE_BYTES };
    size_t n_joined = 0;
    int n_wrong = 0;
    for (int k = 0; k < n_graphs; k++) {
        struct drawn g;
        draw_graph(&g, (uint64_t)k + 1);
        const size_t size = (size_t)g.n_out * D * R * sizeof(float);
        for (unsigned i = 0; i < N_TEAMS; i++) {
            if (compute_drawn(&g, i, 0, want))
                n_wrong++;
            for (size_t b = 0; b < GG_LEN(bytes); b++) {
                n_joined += compute_drawn(&g, i, bytes[b], got);
                n_wrong += memcmp(want, got, size) != 0;
            }
        }
        drop_graph(&g);
    }
    ok(!n_wrong && n_joined > (size_t)n_graphs * 60,
       "%d graphs with %zu nodes that join others: %d differ", n_graphs,
       n_joined, n_wrong);
}

/* ---- scratch ---- */

/* Memory of the plan's work that each call may write, and its thread. */
static struct {
    atomic_uint n;
    struct call {
        const char *from, *to;
        const void *thread;
    } call[512];
} calls;

static _Thread_local char me;

static void note_call(struct gguf_tensor *t, const struct gg_cpu_task *task)
{
    const unsigned i = atomic_fetch_add(&calls.n, 1);
    const size_t size = gg_cpu_op_row(t->op)->work(t, 1, task->kern);
    if (i >= GG_LEN(calls.call))
        return;
    calls.call[i].from = (char *)task->work + task->ith * size;
    calls.call[i].to = calls.call[i].from + size;
    calls.call[i].thread = &me;
}

static unsigned n_clashes(const char *work, size_t size)
{
    unsigned n = 0;
    for (unsigned i = 0; i < calls.n; i++) {
        const struct call *a = &calls.call[i];
        n += a->from < work || a->to > work + size;
        for (unsigned k = 0; k < i; k++) {
            const struct call *b = &calls.call[k];
            n += a->thread != b->thread && a->from < b->to && b->from < a->to;
        }
    }
    return n;
}

/* Threads that compute different nodes of a step, each with another size of
 * work memory. */
static void check_scratch(void)
{
    struct gguf_rope rope = GGUF_ROPE_INIT;
    struct gguf_error err;
    struct gg_cpu_plan p;
    struct gg_barrier barrier;
    ctx_t *c = new_ctx();
    tensor *x = source(c, GGUF_DTYPE_F32, PLAIN, D / 4, 4, R, 1);
    tensor *pos = source(c, GGUF_DTYPE_I32, PLAIN, R, 1, 1, 1);
    struct gguf_graph *g = gguf_graph_create(c, 8);
    rope.n_dims = D / 4;
    tensor *a = gguf_op_rope(c, x, pos, NULL, &rope);
    tensor *b = gguf_op_scale(c, gguf_op_reshape_2d(c, a, D, R), 2);
    const unsigned nth = gguf_pool_n_threads(ops_pools[N_TEAMS - 1]);
    gg_cpu_plan_init(&p, NULL, 1);
    if (gguf_graph_finish(c, g, b, &err) ||
        gg_cpu_plan_make(&p, g, nth, &ops_kern, &err) ||
        gg_barrier_init(&barrier, nth, 0, &err))
        exit(99);
    ok(nth > 2 && p.n == 2 && p.steps->n == 2 &&
           gg_cpu_op_row(a->op)->work(a, 1, &ops_kern) !=
               gg_cpu_op_row(b->op)->work(b, 1, &ops_kern),
       "a step of nodes that need unlike scratch");
    p.steps[0].run = p.steps[1].run = note_call;
    const struct gguf_abort_callback never = { NULL, NULL };
    char *work = gg_mem_alloc_aligned(NULL, p.work_size, 64);
    if (!work || gg_cpu_plan_run(&p, ops_pools[N_TEAMS - 1], &barrier, work,
                                 &ops_kern, never, NULL, &err))
        exit(99);
    const unsigned n = n_clashes(work, p.work_size);
    ok(calls.n == 2 * R && !n, "%u calls, none over another thread's: %u",
       calls.n, n);
    gg_mem_free_aligned(NULL, work);
    gg_barrier_fini(&barrier);
    gg_cpu_plan_fini(&p);
    gguf_ctx_destroy(c);
}

/* Work memory is sized before nodes are fused: it must be the same for each
 * thread. */
static void check_work(void)
{
    struct drawn g;
    unsigned n = 0, n_wrong = 0;
    draw_graph(&g, 1);
    for (size_t i = 0; i < gguf_graph_n_nodes(g.graph); i++) {
        const tensor *t = gguf_graph_node(g.graph, i);
        const struct gg_cpu_op *op = gg_cpu_op_row(t->op);
        if (!op->by_rows || !op->work)
            continue;
        n_wrong += op->work(t, 7, &ops_kern) != 7 * op->work(t, 1, &ops_kern);
        n++;
    }
    ok(n > 20 && !n_wrong, "work of seven threads is seven times that of one");
    drop_graph(&g);
}

/* ---- a node that is asked for ---- */

struct asked {
    tensor *node;
    float value[D * R];
    int n;
};

static bool ask_node(void *user, const tensor *t)
{
    return t == ((const struct asked *)user)->node;
}

static bool see_node(void *user, tensor *t)
{
    struct asked *a = user;
    memcpy(a->value, t->data, sizeof a->value);
    a->n++;
    return false;
}

static void check_asked(void)
{
    static struct asked a;
    static float want[D * R];
    struct gguf_error err;
    struct gguf_sched *s;
    struct gguf_sched_params sp = GGUF_SCHED_PARAMS_INIT;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    ctx_t *c;
    p.mem_size = 1 << 16;
    p.no_alloc = true;
    sp.backends = ops_backends;
    sp.n_backends = 1;
    if (gguf_ctx_create(&c, &p, &err) || gguf_sched_create(&s, &sp, &err))
        exit(99);
    tensor *x = gguf_tensor_add_flags(
        gguf_tensor_create_2d(c, GGUF_DTYPE_F32, D, R), GGUF_TENSOR_INPUT);
    tensor *norm = gguf_op_relu(c, gguf_op_scale(c, x, 2));
    tensor *y = gguf_op_scale(c, norm, 3);
    struct gguf_graph *g = gguf_graph_create(c, 8);
    if (gguf_graph_finish(c, g, y, &err) || gguf_sched_alloc(s, g, &err) ||
        gguf_sched_set_eval(
            s, (struct gguf_sched_eval){ ask_node, see_node, &a }, &err))
        exit(99);
    fill(x);
    for (int i = 0; i < D * R; i++) {
        const float v = ((float *)x->data)[i] * 2;
        want[i] = v < 0 ? 0 : v;
    }
    a.node = norm;
    ok(gguf_sched_compute(s, g, &err) == GGUF_OK && a.n == 1 &&
           !memcmp(a.value, want, sizeof want),
       "a node in the middle is seen by who asks for it");
    gguf_sched_destroy(s);
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_patterns();
    check_memory();
    check_bits(200);
    check_scratch();
    check_work();
    check_asked();
    (void)ops_finish();
    return done_testing();
}
