/* SPDX-License-Identifier: MIT */
/* check-compare.c - copies of graphs, and comparison of two backends node by
 * node */
#include "config.h"
#include "gguf/compare.h"
#include "gguf/cpu.h"
#include "tests/failalloc.h"
#include "tests/graph/random_graph.h"

#include <math.h>
#include <stddef.h>

/* --- two tensors ---------------------------------------------------------- */

static void check_tensors(void)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_ctx *c;
    struct gguf_difference d = GGUF_DIFFERENCE_INIT;
    struct gguf_error err;
    p.mem_size = 1 << 14;
    must(gguf_ctx_create(&c, &p, &err), &err);
    tensor *a = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 3, 2);
    tensor *b = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 3, 2);
    static const float x[6] = { 3, 4, NAN, INFINITY, 0, 0 };
    memcpy(a->data, x, sizeof x);
    memcpy(b->data, x, sizeof x);
    must(gguf_tensor_compare(a, b, NULL, &d, &err), &err);
    ok(d.n == 6 && !d.n_differ && d.max_abs == 0 && d.error == 0,
       "equal, with NaN");
    ((float *)b->data)[1] = 4.5f;
    must(gguf_tensor_compare(a, b, NULL, &d, &err), &err);
    ok(d.n_differ == 1 && d.max_abs == 0.5 && fabs(d.error - 0.1) < 1e-12,
       "one differs by %.1f, %.1f of all", d.max_abs, d.error);
    ((float *)b->data)[4] = NAN;
    must(gguf_tensor_compare(a, b, NULL, &d, &err), &err);
    ok(d.n_differ == 2 && isinf(d.max_abs) && isinf(d.error),
       "a number and no number: infinitely far");
    tensor *i = gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 2);
    tensor *k = gguf_tensor_create_1d(c, GGUF_DTYPE_I32, 2);
    memcpy(i->data, (int32_t[]){ INT32_MAX, 1 }, 8);
    memcpy(k->data, (int32_t[]){ INT32_MAX - 1, 1 }, 8);
    must(gguf_tensor_compare(i, k, NULL, &d, &err), &err);
    ok(d.n_differ == 1 && d.max_abs == 1, "integers to the last bit");
    tensor *h = gguf_tensor_create_2d(c, GGUF_DTYPE_F16, 3, 2);
    memcpy(h->data, (uint16_t[]){ 0x4200, 0x4400, 0x7E00, 0x7C00, 0, 0 }, 12);
    must(gguf_tensor_compare(a, h, NULL, &d, &err), &err);
    ok(!d.n_differ, "types that differ, values that do not");
    must(gguf_tensor_compare(gguf_op_view_2d(c, a, 2, 2, 12, 4),
                             gguf_op_view_2d(c, a, 2, 2, 12, 4), NULL, &d,
                             &err),
         &err);
    ok(d.n == 4 && !d.n_differ, "views");
    /* as an older program has it */
    d = (struct gguf_difference){ .struct_size = offsetof(
                                      struct gguf_difference, max_abs),
                                  .max_abs = 7,
                                  .error = 8 };
    must(gguf_tensor_compare(a, b, NULL, &d, &err), &err);
    ok(d.n == 6 && d.n_differ == 2 && d.max_abs == 7 && d.error == 8,
       "no more is filled in than the caller has");
    d.struct_size = 0;
    ok(gguf_tensor_compare(a, b, NULL, &d, &err) == GGUF_E_INVALID, "%s",
       err.message);
    d.struct_size = sizeof d;
    ok(gguf_tensor_compare(a, i, NULL, &d, &err) == GGUF_E_SHAPE, "%s",
       err.message);
    ok(gguf_tensor_compare(gguf_op_transpose(c, a), gguf_op_transpose(c, a),
                           NULL, &d, &err) == GGUF_E_UNSUPPORTED,
       "%s", err.message);
    gguf_ctx_destroy(c);
}

/* --- copies of graphs ----------------------------------------------------- */

static bool equal_tensors(const tensor *a, const tensor *b)
{
    static char x[1 << 16], y[1 << 16];
    struct gguf_error err;
    const uint64_t size = gguf_tensor_size(a);
    must(gguf_tensor_get(a, x, 0, size, &err), &err);
    must(gguf_tensor_get(b, y, 0, size, &err), &err);
    return gguf_tensor_same_layout(a, b) && !memcmp(x, y, (size_t)size);
}

/* Every node has memory of its own, and the graph is computed. The copy has
 * the same data, and after computing it has them again. */
static void check_clones(int n_graphs)
{
    static struct fake_backend is;
    struct gguf_backend *cpu;
    struct gguf_error err;
    const struct gguf_buft *host[4];
    bool data = true, again = true, reused = true;
    must(fake_backend_init(&is, "A", false, NULL, &err), &err);
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    for (int i = 0; i < 4; i++)
        host[i] = gguf_host_buft();
    for (int k = 0; k < n_graphs; k++) {
        struct random_graph g = random_graph_make((uint64_t)k + 1, host);
        struct gguf_clone *c, *r;
        struct gguf_clone_params p = GGUF_CLONE_PARAMS_INIT;
        struct gguf_buffer *rest;
        must(gguf_ctx_alloc_tensors(g.ctx, host[0], NULL, &rest, &err), &err);
        for (int i = 0; i < 3; i++)
            random_graph_fill(g.inputs[i], (uint64_t)(k + i));
        p.reuse = true; /* before the nodes have data */
        must(gguf_clone_create(&r, &is.backend, g.graph, &p, &err), &err);
        float before[256]; /* computing changes caches */
        must(gguf_tensor_get(g.cache, before, 0, sizeof before, &err), &err);
        must(gguf_backend_compute(cpu, g.graph, &err), &err);
        p.reuse = false;
        must(gguf_clone_create(&c, &is.backend, g.graph, &p, &err), &err);
        struct gguf_graph *cg = gguf_clone_graph(c);
        const size_t n = gguf_graph_n_nodes(g.graph);
        for (size_t i = 0; i < n; i++)
            data = data && equal_tensors(gguf_graph_node(g.graph, i),
                                         gguf_graph_node(cg, i));
        for (size_t i = 0; i < gguf_graph_n_leaves(g.graph); i++)
            data = data && equal_tensors(gguf_graph_leaf(g.graph, i),
                                         gguf_graph_leaf(cg, i));
        must(gguf_backend_compute(&is.backend, gguf_clone_graph(r), &err),
             &err);
        for (int i = 0; i < g.n_out; i++)
            for (size_t j = 0; j < n; j++)
                if (gguf_graph_node(g.graph, j) == g.out[i])
                    reused =
                        reused &&
                        equal_tensors(g.out[i],
                                      gguf_graph_node(gguf_clone_graph(r), j));
        must(gguf_tensor_set(g.cache, before, 0, sizeof before, &err), &err);
        must(gguf_backend_compute(cpu, g.graph, &err), &err);
        for (size_t i = 0; i < gguf_graph_n_leaves(g.graph); i++)
            if (gguf_graph_leaf(g.graph, i) == g.cache)
                must(gguf_tensor_set(gguf_graph_leaf(cg, i), before, 0,
                                     sizeof before, &err),
                     &err);
        must(gguf_backend_compute(&is.backend, cg, &err), &err);
        for (size_t i = 0; i < n; i++)
            again = again && equal_tensors(gguf_graph_node(g.graph, i),
                                           gguf_graph_node(cg, i));
        gguf_clone_destroy(c);
        gguf_clone_destroy(r);
        gguf_buffer_destroy(rest);
        random_graph_free(&g);
    }
    gguf_clone_destroy(NULL);
    ok(data, "%d graphs copied with their data to another memory", n_graphs);
    ok(again, "and computed there");
    ok(reused, "and with nodes that share memory");
    ok(!is.n_foreign, "nothing lies elsewhere");
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&is.backend);
}

/* Weights that the backend can read are shared, if the caller asks for it. */
static void check_sharing(void)
{
    struct gguf_backend *cpu;
    struct gguf_error err;
    const struct gguf_buft *host[4];
    struct gguf_clone_params p = GGUF_CLONE_PARAMS_INIT;
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    for (int i = 0; i < 4; i++)
        host[i] = gguf_host_buft();
    struct random_graph g = random_graph_make(1, host);
    struct gguf_graph *one = gguf_graph_create(g.ctx, 8);
    must(gguf_graph_finish(
             g.ctx, one,
             gguf_op_add(g.ctx, gguf_op_matmul(g.ctx, g.weights[0], g.cache),
                         g.cache),
             &err),
         &err);
    for (int share = 0; share < 2; share++) {
        struct gguf_clone *c;
        p.copy_weights = !share;
        must(gguf_clone_create(&c, cpu, one, &p, &err), &err);
        struct gguf_graph *cg = gguf_clone_graph(c);
        bool same = true;
        for (size_t i = 0; i < 2; i++) {
            const tensor *t = gguf_graph_leaf(one, i);
            same = same && (gguf_graph_leaf(cg, i)->data == t->data) ==
                               (share && t == g.weights[0]);
        }
        ok(same, "%s",
           share ? "weights are shared, caches are not"
                 : "everything is copied");
        gguf_clone_destroy(c);
    }
    struct gguf_clone *c;
    struct gguf_graph *view = gguf_graph_view(g.ctx, one, 0, 1);
    ok(gguf_clone_create(&c, cpu, view, NULL, &err) == GGUF_E_INVALID && !c,
       "%s", err.message);
    random_graph_free(&g);
    gguf_backend_destroy(cpu);
}

/* --- two backends --------------------------------------------------------- */

struct look {
    int n, n_differ;
    size_t first;
    uint32_t op;
    bool right; /* shapes and layouts are equal */
};

static bool note_difference(void *user, size_t i, const tensor *node,
                            const tensor *a, const tensor *b)
{
    struct look *l = user;
    struct gguf_difference d = GGUF_DIFFERENCE_INIT;
    struct gguf_error err;
    l->n++;
    l->right = l->right && gguf_tensor_same_layout(node, a) &&
               gguf_tensor_same_layout(a, b) && a->op == node->op;
    must(gguf_tensor_compare(a, b, NULL, &d, &err), &err);
    if (d.n_differ && !l->n_differ++) {
        l->first = i;
        l->op = node->op;
    }
    return false;
}

static bool stop_always(void *user, size_t i, const tensor *node,
                        const tensor *a, const tensor *b)
{
    (void)user;
    (void)i;
    (void)node;
    (void)a;
    (void)b;
    return true;
}

/* w x -> silu -> + x -> rms_norm -> w */
struct chain {
    struct gguf_ctx *ctx;
    struct gguf_buffer *buffer;
    struct gguf_graph *graph;
};

static enum gguf_status make_chain(struct chain *h,
                                   const struct gguf_allocator *a,
                                   struct gguf_error *err)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.mem_size = 1 << 15;
    p.no_alloc = true;
    p.allocator = a;
    GG_TRY(gguf_ctx_create(&h->ctx, &p, err));
    struct gguf_ctx *c = h->ctx;
    tensor *w = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 8, 8);
    tensor *x = gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 8, 2);
    GG_TRY(gguf_ctx_alloc_tensors(c, gguf_host_buft(), a, &h->buffer, err));
    random_graph_fill(w, 1);
    random_graph_fill(x, 2);
    tensor *t = gguf_op_silu(c, gguf_op_matmul(c, w, x));
    t = gguf_op_rms_norm(c, gguf_op_add(c, t, x), 1e-5f);
    h->graph = gguf_graph_create(c, 16);
    return gguf_graph_finish(c, h->graph, gguf_op_matmul(c, w, t), err);
}

static void check_backends(void)
{
    static struct fake_backend is;
    struct gguf_backend *cpu;
    struct gguf_compare_params p = GGUF_COMPARE_PARAMS_INIT;
    struct gguf_compare_counts n = GGUF_COMPARE_COUNTS_INIT;
    struct look l = { .right = true };
    struct chain h = { .ctx = NULL };
    struct gguf_error err;
    must(fake_backend_init(&is, "A", true, NULL, &err), &err);
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    must(make_chain(&h, NULL, &err), &err);
    p.node.fn = note_difference;
    p.node.user = &l;
    must(gguf_compare_backends(cpu, &is.backend, h.graph, &p, &n, &err), &err);
    ok(l.n == 5 && l.right && !l.n_differ && n.n_both == 5 && !n.n_only_a,
       "5 nodes, all equal");
    is.wrong = GGUF_OP_SILU;
    l = (struct look){ .right = true };
    must(gguf_compare_backends(cpu, &is.backend, h.graph, &p, NULL, &err),
         &err);
    ok(l.n_differ == 1 && l.first == 1 && l.op == GGUF_OP_SILU,
       "the one wrong node is found, and those after it are not blamed");
    l = (struct look){ .right = true };
    p.chained = true;
    must(gguf_compare_backends(cpu, &is.backend, h.graph, &p, NULL, &err),
         &err);
    ok(l.n_differ == 4 && l.first == 1, "or they are, if each goes on with "
                                        "its own");
    p.chained = false;
    is.refuses[GGUF_OP_MATMUL] = true;
    l = (struct look){ .right = true };
    must(gguf_compare_backends(cpu, &is.backend, h.graph, &p, &n, &err), &err);
    ok(l.n == 3 && n.n_both == 3 && n.n_only_a == 2 && n.n_only_b == 0,
       "the first computes the second one's refused nodes");
    must(gguf_compare_backends(&is.backend, cpu, h.graph, &p, &n, &err), &err);
    ok(n.n_both == 3 && n.n_only_b == 2, "and the other way round");
    is.wrong = 0;
    ok(gguf_compare_backends(&is.backend, &is.backend, h.graph, &p, &n,
                             &err) == GGUF_E_OP,
       "%s", err.message);
    p.node.fn = stop_always;
    ok(gguf_compare_backends(cpu, &is.backend, h.graph, &p, &n, &err) ==
           GGUF_E_CANCELLED,
       "%s", err.message);
    gguf_buffer_destroy(h.buffer);
    gguf_ctx_destroy(h.ctx);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&is.backend);
}

static void check_failing(void)
{
    struct failalloc fa;
    static struct fake_backend is;
    struct gguf_backend *cpu;
    struct gguf_error err;
    bool right = true;
    must(fake_backend_init(&is, "A", false, NULL, &err), &err);
    must(gguf_cpu_backend_create(&cpu, NULL, &err), &err);
    for (unsigned n = 0;; n++) {
        struct gguf_compare_params p = GGUF_COMPARE_PARAMS_INIT;
        struct gguf_clone_params cp = GGUF_CLONE_PARAMS_INIT;
        struct chain h = { .ctx = NULL };
        struct gguf_clone *c = NULL;
        cp.allocator = p.allocator = failalloc_init(&fa, n);
        enum gguf_status st = make_chain(&h, p.allocator, &err);
        if (st == GGUF_OK)
            st = gguf_clone_create(&c, &is.backend, h.graph, &cp, &err);
        if (st == GGUF_OK)
            st = gguf_compare_backends(cpu, &is.backend, h.graph, &p, NULL,
                                       &err);
        gguf_clone_destroy(c);
        gguf_buffer_destroy(h.buffer);
        gguf_ctx_destroy(h.ctx);
        right =
            right && !fa.live && st == (fa.calls > n ? GGUF_E_NOMEM : GGUF_OK);
        if (fa.calls <= n)
            break;
    }
    ok(right && fa.calls > 40, "memory that fails at each of %u calls",
       fa.calls);
    gguf_backend_destroy(cpu);
    gguf_backend_destroy(&is.backend);
}

int main(void)
{
    check_tensors();
    check_clones(200);
    check_sharing();
    check_backends();
    check_failing();
    return done_testing();
}
