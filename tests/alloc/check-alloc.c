/* SPDX-License-Identifier: MIT */
/* check-alloc.c - the allocator of graphs: best fit, lifetimes, plans
 *
 * Random graphs are computed in planned memory, and again with memory of its
 * own for every tensor. The results must be the same bytes. Lifetimes are
 * computed independently (lifetimes.h): tensors that live at the same time
 * must not overlap, and the peak must be near the lower bound.
 *
 *   check-alloc [GRAPHS [SEED]]
 */
#include "config.h"
#include "alloc/bestfit.h"
#include "backend/backend_int.h"
#include "gguf/cpu.h"
#include "tests/alloc/lifetimes.h"
#include "tests/graph/randop.h"
#include "tests/ignore_status.h"
#include "tests/tap.h"

typedef struct gguf_tensor tensor;
enum { MAX_NODES = 80, GRAPH_NODES = 16 * MAX_NODES };

static struct gguf_backend *cpu;

static void bail_out(const char *what, const struct gguf_error *err)
{
    printf("Bail out! %s: %s\n", what, err->message);
    exit(1);
}

/* --- best fit ------------------------------------------------------------- */

static void check_bestfit(void)
{
    struct gg_bestfit b;
    struct {
        uint64_t off, size;
    } held[64] = { { 0, 0 } };
    static uint8_t used[1 << 16];
    bool overlap = false;
    uint64_t most = 0, now = 0, off, off2;
    if (gg_bestfit_init(&b, NULL, 16, NULL) != GGUF_OK)
        exit(99);
    for (int i = 0; i < 50000; i++) {
        size_t k = (size_t)rnd_below(64);
        if (held[k].size) {
            memset(used + held[k].off, 0, held[k].size);
            now -= (held[k].size + 15) / 16 * 16;
            if (gg_bestfit_free(&b, held[k].off, held[k].size, NULL))
                exit(99);
            held[k].size = 0;
        } else {
            held[k].size = 1 + rnd_below(400);
            if (gg_bestfit_alloc(&b, held[k].size, &held[k].off, NULL))
                exit(99);
            for (uint64_t j = 0; j < held[k].size; j++)
                overlap = overlap || used[held[k].off + j]++;
            overlap = overlap || held[k].off % 16;
            now += (held[k].size + 15) / 16 * 16;
            most = GG_MAX(most, now);
        }
    }
    ok(!overlap, "50000 random requests do not overlap");
    ok(b.high >= most && b.high < most * 5 / 4,
       "high-water mark %" PRIu64 " for %" PRIu64 " at most in use", b.high,
       most);
    for (size_t k = 0; k < 64; k++)
        if (held[k].size &&
            gg_bestfit_free(&b, held[k].off, held[k].size, NULL))
            exit(99);
    ok(b.n == 1 && b.spans[0].off == 0, "all free: one span again");

    uint64_t o[5];
    for (int i = 0; i < 5; i++)
        if (gg_bestfit_alloc(&b, i == 1 ? 100 : 48, &o[i], NULL))
            exit(99);
    if (gg_bestfit_free(&b, o[1], 100, NULL) ||
        gg_bestfit_free(&b, o[3], 48, NULL) ||
        gg_bestfit_alloc(&b, 40, &off, NULL) ||
        gg_bestfit_alloc(&b, 90, &off2, NULL))
        exit(99);
    ok(off == o[3] && off2 == o[1], "the smallest span that is large enough");
    struct gguf_error err;
    ok(gg_bestfit_alloc(&b, UINT64_MAX - 3, &off, &err) == GGUF_E_OVERFLOW,
       "too much: %s", err.message);
    gg_bestfit_fini(&b);
}

/* --- random graphs -------------------------------------------------------- */

struct made {
    struct gguf_ctx *ctx;
    struct gguf_graph *graph;
    tensor *inputs[8];
    int n_inputs;
    tensor *cache; /* has memory of its own; the graph writes it */
};

/* Pick a tensor of the list; late ones are more likely. */
static tensor *pick_tensor(tensor *const *t, int n)
{
    int most = rnd_below(3) ? 5 : n;
    int back = (int)rnd_below((uint64_t)GG_MIN(n, most));
    return t[n - 1 - back];
}

static tensor *random_node(struct gguf_ctx *c, tensor *const *t, int n,
                           tensor *cache)
{
    tensor *a = pick_tensor(t, n), *b = pick_tensor(t, n);
    if (rnd_below(4) == 0)
        return randop_any(&(struct randop){ c, a, b, cache, rnd64() });
    int64_t m = gguf_tensor_n_elements(a);
    switch (rnd_below(15)) {
    case 0:
    case 1:
        return gguf_tensor_can_repeat(b, a) ? gguf_op_add(c, a, b)
                                            : gguf_op_scale(c, a, 0.5f);
    case 2:
        return gguf_tensor_same_shape(a, b) ? gguf_op_swiglu(c, a, b)
                                            : gguf_op_silu(c, a);
    case 3: return gguf_op_rms_norm(c, a, 1e-3f);
    case 4: return gguf_op_soft_max(c, a, NULL, 1, 0);
    case 5: return gguf_op_tanh(c, a);
    case 6:
        return a->ne[0] == b->ne[0] && b->ne[2] * b->ne[3] == 1 &&
                       b->ne[1] * gguf_tensor_n_rows(a) < 2000
                   ? gguf_op_scale(c,
                                   gguf_op_matmul(c, gguf_op_cont(c, b),
                                                  gguf_op_cont(c, a)),
                                   0.01f)
                   : gguf_op_relu(c, a);
    case 7: return gguf_op_reshape_1d(c, gguf_op_cont(c, a), m);
    case 8: return gguf_op_cont(c, gguf_op_transpose(c, a));
    case 9:
        return gguf_op_sub(c, gguf_op_transpose(c, a),
                           gguf_op_transpose(c, a));
    case 10:
        return a->ne[0] > 1
                   ? gguf_op_view_1d(c, a, a->ne[0] / 2, (uint64_t)a->nb[0])
                   : gguf_op_sigmoid(c, a);
    case 11:
        return m % 8 ? gguf_op_mul(c, a, a)
                     : gguf_op_reshape_2d(c, gguf_op_cont(c, a), 8, m / 8);
    case 12:
        /* cpy onto memory that it shares is undefined */
        if (m <= gguf_tensor_n_elements(cache) && a->view_src != cache)
            return gguf_op_cpy(c, a, gguf_op_view_1d(c, cache, m, 0));
        return gguf_op_dup(c, a);
    case 13:
        return gguf_op_relu(c, gguf_op_reshape_1d(c, gguf_op_cont(c, a), m));
    default: return gguf_op_mul(c, a, a);
    }
}

/* The random graph of a seed. scale: factor of all tensors' sizes. */
static struct made make_graph(uint64_t seed, bool no_alloc, int64_t scale)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct made g = { .n_inputs = 0 };
    tensor *t[3 * MAX_NODES];
    int n = 0;
    p.mem_size = 32 << 20;
    p.no_alloc = no_alloc;
    if (gguf_ctx_create(&g.ctx, &p, &err) != GGUF_OK)
        bail_out("context", &err);
    tap_rng = seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    g.graph = gguf_graph_create(g.ctx, GRAPH_NODES);
    gguf_ctx_set_no_alloc(g.ctx, false);
    g.cache = gguf_tensor_create_1d(g.ctx, GGUF_DTYPE_F32, 600 * scale);
    memset(g.cache->data, 0, (size_t)gguf_tensor_size(g.cache));
    gguf_ctx_set_no_alloc(g.ctx, no_alloc);
    g.n_inputs = 1 + (int)rnd_below(4);
    int64_t row = 8 * (1 + (int64_t)rnd_below(12));
    for (int i = 0; i < g.n_inputs; i++) {
        g.inputs[i] = gguf_tensor_create_2d(
            g.ctx, GGUF_DTYPE_F32, row, (1 + (int64_t)rnd_below(6)) * scale);
        gguf_tensor_add_flags(g.inputs[i], GGUF_TENSOR_INPUT);
        t[n++] = g.inputs[i];
    }
    int n_nodes = 5 + (int)rnd_below(MAX_NODES - 5);
    for (int i = 0; i < n_nodes; i++) {
        tensor *x = random_node(g.ctx, t, n, g.cache);
        if (!x) {
            ignore_status(gguf_ctx_status(g.ctx, &err));
            bail_out("node", &err);
        }
        t[n++] = x;
        if (!rnd_below(10))
            gguf_tensor_add_flags(x, GGUF_TENSOR_OUTPUT);
        if (!rnd_below(5))
            gguf_graph_add(g.graph, x);
    }
    gguf_tensor_add_flags(t[n - 1], GGUF_TENSOR_OUTPUT);
    if (gguf_graph_finish(g.ctx, g.graph, t[n - 1], &err) != GGUF_OK)
        bail_out("graph", &err);
    return g;
}

static void fill_inputs(struct made *g, uint64_t seed)
{
    tap_rng = seed + 77;
    memset(g->cache->data, 0, (size_t)gguf_tensor_size(g->cache));
    for (int i = 0; i < g->n_inputs; i++)
        for (int64_t k = 0; k < gguf_tensor_n_elements(g->inputs[i]); k++) {
            float v = rnd_f32();
            if (g->inputs[i]->data) /* NULL if no node reads it */
                ((float *)g->inputs[i]->data)[k] = v;
        }
}

/* --- laying out ----------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static bool same_results(const struct made *a, const struct made *b)
{
    for (size_t i = 0; i < gguf_graph_n_nodes(a->graph); i++) {
        const tensor *x = gguf_graph_node(a->graph, i);
        const tensor *y = gguf_graph_node(b->graph, i);
        if (!(x->flags & GGUF_TENSOR_OUTPUT) || x->view_src == a->cache)
            continue;
        if (memcmp(x->data, y->data, (size_t)gguf_tensor_size(x)))
            return false;
    }
    return !memcmp(a->cache->data, b->cache->data,
                   (size_t)gguf_tensor_size(a->cache));
}

/* The allocator's buffer. The cache has no buffer. */
static const struct gguf_buffer *buffer_of(const struct made *g)
{
    for (size_t i = 0; i < gguf_graph_n_nodes(g->graph); i++)
        if (gguf_graph_node(g->graph, i)->buffer)
            return gguf_graph_node(g->graph, i)->buffer;
    for (size_t i = 0; i < gguf_graph_n_leaves(g->graph); i++)
        if (gguf_graph_leaf(g->graph, i)->buffer)
            return gguf_graph_leaf(g->graph, i)->buffer;
    return NULL;
}

/* A graph for each operation, so that the random graphs' table lacks none. */
static void check_each_op(void)
{
    int n = 0;
    for (uint32_t op = 1; op < GGUF_N_OPS; op++) {
        struct gguf_error err;
        struct made g = make_graph(op, false, 1);
        const struct randop r = { g.ctx, g.inputs[0], g.inputs[0], g.cache,
                                  op };
        tensor *t = randop_make(&r, op);
        bool found = false;
        gguf_graph_clear(g.graph);
        if (gguf_graph_finish(g.ctx, g.graph, t, &err))
            bail_out(gguf_op_name(op), &err);
        for (size_t i = 0; i < gguf_graph_n_nodes(g.graph); i++)
            found = found || gguf_graph_node(g.graph, i)->op == op;
        if (t && t->dtype == GGUF_DTYPE_F32 && found)
            n++;
        else
            printf("# %s has no row in randop.c\n", gguf_op_name(op));
        gguf_ctx_destroy(g.ctx);
    }
    ok(n == GGUF_N_OPS - 1, "random graphs have %d operations, all there are",
       n);
}

static void check_random(int n_graphs, uint64_t seed)
{
    static struct span s[2 * GRAPH_NODES];
    double *ratio = malloc(sizeof *ratio * (size_t)n_graphs);
    int n_overlap = 0, n_differ = 0, n_differ_again = 0;
    struct gguf_error err;
    struct gguf_galloc *ga;
    for (int k = 0; k < n_graphs; k++) {
        struct made g = make_graph(seed + (uint64_t)k, true, 1);
        struct made plain = make_graph(seed + (uint64_t)k, false, 1);
        if (gguf_galloc_create(&ga, NULL, gguf_backend_buft(cpu), &err) ||
            gguf_galloc_alloc(ga, g.graph, &err))
            bail_out("allocation", &err);
        int n = spans_of(g.graph, buffer_of(&g), s);
        n_overlap += spans_overlap(s, n);
        ratio[k] = (double)gguf_galloc_buffer_size(ga, 0) /
                   (double)spans_bound(s, n, g.graph);
        fill_inputs(&g, seed);
        fill_inputs(&plain, seed);
        if (gguf_backend_compute(cpu, g.graph, &err) ||
            gguf_backend_compute(cpu, plain.graph, &err))
            bail_out("computation", &err);
        n_differ += !same_results(&g, &plain);
        /* inputs must be unchanged */
        memset(g.cache->data, 0, (size_t)gguf_tensor_size(g.cache));
        if (gguf_backend_compute(cpu, g.graph, &err))
            bail_out("computation", &err);
        n_differ_again += !same_results(&g, &plain);
        gguf_galloc_destroy(ga);
        gguf_ctx_destroy(g.ctx);
        gguf_ctx_destroy(plain.ctx);
    }
    qsort(ratio, (size_t)n_graphs, sizeof *ratio, by_value);
    ok(!n_overlap, "%d random graphs: no overlap of what lives", n_graphs);
    ok(!n_differ, "results are those without reuse");
    ok(!n_differ_again, "and again, with inputs that are not set again");
    printf("# peak over lower bound: median %.3f, 90%% %.3f, worst %.3f\n",
           ratio[n_graphs / 2], ratio[n_graphs * 9 / 10], ratio[n_graphs - 1]);
    ok(ratio[n_graphs / 2] <= 1.10 && ratio[0] >= 1, "peak at the median");
    ok(ratio[n_graphs - 1] <= 1.25, "peak at worst");
    free(ratio);
}

/* A plan serves smaller graphs of the same structure. Larger graphs and other
 * structures are planned anew. */
static void check_reuse(unsigned n_models)
{
    struct gguf_error err;
    struct gguf_galloc *ga;
    int n_differ = 0, n_again = 0, n_grown = 0;
    for (uint64_t k = 0; k < n_models; k++) {
        if (gguf_galloc_create(&ga, NULL, gguf_host_buft(), &err))
            bail_out("allocator", &err);
        struct made big = make_graph(k, true, 3);
        if (gguf_galloc_reserve(ga, big.graph, &err))
            bail_out("reserve", &err);
        size_t size = gguf_galloc_buffer_size(ga, 0);
        for (int64_t scale = 1; scale <= 4; scale++) {
            struct made g = make_graph(k, true, scale);
            struct made plain = make_graph(k, false, scale);
            unsigned before = gguf_galloc_n_plans(ga);
            for (int round = 0; round < 2; round++) {
                if (gguf_galloc_alloc(ga, g.graph, &err))
                    bail_out("allocation", &err);
                fill_inputs(&g, k);
                fill_inputs(&plain, k);
                if (gguf_backend_compute(cpu, g.graph, &err) ||
                    gguf_backend_compute(cpu, plain.graph, &err))
                    bail_out("computation", &err);
                n_differ += !same_results(&g, &plain);
            }
            n_again += scale == 3 && gguf_galloc_n_plans(ga) != before;
            n_grown += scale == 4 && gguf_galloc_buffer_size(ga, 0) > size;
            gguf_ctx_destroy(g.ctx);
            gguf_ctx_destroy(plain.ctx);
        }
        gguf_ctx_destroy(big.ctx);
        gguf_galloc_destroy(ga);
    }
    ok(!n_differ, "reserved plans give the same results, twice each");
    printf("# planned again for the reserved shape: %d of %u (another scale "
           "came between)\n",
           n_again, n_models);
    ok(n_grown > (int)n_models / 2, "%d of %u grew for a larger graph",
       n_grown, n_models);

    struct made a = make_graph(5, true, 1), b = make_graph(6, true, 1);
    if (gguf_galloc_create(&ga, NULL, gguf_host_buft(), &err) ||
        gguf_galloc_alloc(ga, a.graph, &err) ||
        gguf_galloc_alloc(ga, a.graph, &err))
        bail_out("allocation", &err);
    ok(gguf_galloc_n_plans(ga) == 1, "the same graph is not planned twice");
    if (gguf_galloc_alloc(ga, b.graph, &err))
        bail_out("allocation", &err);
    ok(gguf_galloc_n_plans(ga) == 2, "another is");
    gguf_galloc_destroy(ga);
    gguf_ctx_destroy(a.ctx);
    gguf_ctx_destroy(b.ctx);
}

/* A graph that grows with the sequence: x [4, n] in rows of n, contiguous with
 * one column and not with more. */
static struct gguf_graph *make_growing(struct gguf_ctx *c, int64_t n)
{
    struct gguf_error err;
    gguf_ctx_reset(c);
    struct gguf_graph *g = gguf_graph_create(c, 16);
    tensor *x = gguf_tensor_add_flags(
        gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 4, n), GGUF_TENSOR_INPUT);
    tensor *y = gguf_op_cont(c, gguf_op_transpose(c, gguf_op_silu(c, x)));
    y = gguf_op_cont(c, gguf_op_reshape_3d(c, y, n, 2, 2));
    y = gguf_op_relu(c, gguf_op_cont(c, gguf_op_permute(c, y, 0, 2, 1, 3)));
    if (gguf_graph_finish(c, g, y, &err))
        bail_out("graph", &err);
    return g;
}

static void check_growing(void)
{
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_galloc *ga;
    p.mem_size = 1 << 16;
    p.no_alloc = true;
    if (gguf_ctx_create(&c, &p, &err) ||
        gguf_galloc_create(&ga, NULL, gguf_host_buft(), &err) ||
        gguf_galloc_reserve(ga, make_growing(c, 64), &err))
        bail_out("reserve", &err);
    for (int64_t n = 1; n <= 64; n++)
        if (gguf_galloc_alloc(ga, make_growing(c, n), &err))
            bail_out("allocation", &err);
    ok(gguf_galloc_n_plans(ga) == 1, "64 sizes of a reserved graph: %u plan",
       gguf_galloc_n_plans(ga));
    gguf_galloc_destroy(ga);
    gguf_ctx_destroy(c);
}

/* Graphs of two structures alternate: each keeps its plan. */
static void check_turns(void)
{
    struct gguf_error err;
    struct gguf_galloc *ga;
    if (gguf_galloc_create(&ga, NULL, gguf_host_buft(), &err))
        bail_out("allocator", &err);
    for (int round = 0; round < 3; round++)
        for (uint64_t k = 0; k < 4; k++) {
            struct made g = make_graph(k, true, 1);
            if (round ? gguf_galloc_alloc(ga, g.graph, &err)
                      : gguf_galloc_reserve(ga, g.graph, &err))
                bail_out("allocation", &err);
            gguf_ctx_destroy(g.ctx);
        }
    ok(gguf_galloc_n_plans(ga) == 4, "four structures in turn: %u plans",
       gguf_galloc_n_plans(ga));
    gguf_galloc_destroy(ga);
}

/* Buffer types belong to the structure they were given for. Equal types share
 * a buffer. */
static void check_types(void)
{
    enum { N = 3 };
    struct gguf_error err;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_galloc *ga;
    struct gguf_buft other = *gguf_host_buft();
    const struct gguf_buft *const types[] = { gguf_host_buft(), &other,
                                              gguf_host_buft() };
    const int one[N] = { 1, 1, 1 }, two[N] = { 2, 2, 2 };
    struct gguf_graph *g[2];
    tensor *t[2][N + 1];
    p.mem_size = 1 << 16;
    p.no_alloc = true;
    if (gguf_ctx_create(&c, &p, &err) ||
        gguf_galloc_create_n(&ga, NULL, types, 3, &err))
        bail_out("allocator", &err);
    for (int k = 0; k < 2; k++) {
        g[k] = gguf_graph_create(c, 8);
        t[k][0] = gguf_tensor_create_1d(c, GGUF_DTYPE_F32, 100);
        for (int i = 0; i < N; i++)
            t[k][i + 1] =
                k ? gguf_op_sqr(c, t[k][i]) : gguf_op_neg(c, t[k][i]);
        if (gguf_graph_finish(c, g[k], t[k][N], &err))
            bail_out("graph", &err);
    }
    if (gguf_galloc_reserve_n(ga, g[0], one, one, &err) ||
        gguf_galloc_alloc(ga, g[1], &err) || gguf_galloc_alloc(ga, g[0], &err))
        bail_out("allocation", &err);
    ok(gguf_buffer_buft(t[0][1]->buffer) == &other &&
           gguf_buffer_buft(t[1][1]->buffer) == gguf_host_buft(),
       "types are for the structure that they were given for");
    for (int i = 0; i <= N; i++) {
        t[0][i]->data = NULL;
        t[0][i]->buffer = NULL;
    }
    if (gguf_galloc_reserve_n(ga, g[0], two, two, &err) ||
        gguf_galloc_alloc(ga, g[0], &err))
        bail_out("allocation", &err);
    ok(t[0][1]->buffer == t[1][1]->buffer &&
           gguf_galloc_buffer_size(ga, 0) > 0 &&
           gguf_galloc_buffer_size(ga, 1) > 0 &&
           gguf_galloc_buffer_size(ga, 2) == 0,
       "the same type twice has one buffer");
    ok(gguf_galloc_reserve_n(ga, g[0], (int[]){ 0, 3, 0 }, one, &err) ==
           GGUF_E_INVALID,
       "%s", err.message);
    gguf_galloc_destroy(ga);
    gguf_ctx_destroy(c);
}

int main(int argc, char **argv)
{
    if (gguf_cpu_backend_create(&cpu, NULL, NULL) != GGUF_OK)
        return 99;
    check_bestfit();
    /* a barrier takes a hundred times as long under the thread sanitizer */
    const bool sample = getenv("GGUF_TEST_SAMPLE") != NULL;
    const int n_graphs = getenv("GGUF_TEST_LONG") ? 50000
                         : sample                 ? 200
                                                  : 2000;
    check_random(argc > 1 ? atoi(argv[1]) : n_graphs,
                 argc > 2 ? (uint64_t)atoll(argv[2]) : 1);
    check_each_op();
    check_reuse(sample ? 10 : 100);
    check_growing();
    check_turns();
    check_types();
    gguf_backend_destroy(cpu);
    return done_testing();
}
