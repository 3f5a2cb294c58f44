/* SPDX-License-Identifier: MIT */
/* clone.c - a graph with its data on another backend
 *
 * Leaves are made first, and what views look at without being in the graph;
 * then nodes, in order, with the copies of their sources.
 */
#include "config.h"
#include "backend/backend_int.h"
#include "base/params.h"
#include "gguf/compare.h"
#include "graph/cgraph.h"

struct gguf_clone {
    const struct gguf_allocator *allocator;
    struct gguf_backend *backend;
    struct gguf_ctx *leaf_ctx, *node_ctx;
    struct gguf_buffer *leaf_buffer, *node_buffer; /* node: without reuse */
    struct gguf_galloc *galloc; /* allocator of nodes, if memory is reused */
    struct gguf_graph *graph;
    struct gguf_tensor *
        *leaves; /* copies of the leaves, in the graph's order */
    /* roots of views that are not in the graph, and their copies */
    const struct gguf_tensor **outside;
    struct gguf_tensor **outside_copy;
    size_t n_outside;
};

void gguf_clone_destroy(struct gguf_clone *c)
{
    if (!c)
        return;
    gguf_galloc_destroy(c->galloc);
    gguf_buffer_destroy(c->node_buffer);
    gguf_buffer_destroy(c->leaf_buffer);
    gguf_ctx_destroy(c->node_ctx);
    gguf_ctx_destroy(c->leaf_ctx);
    gg_mem_free(c->allocator, c->leaves);
    gg_mem_free(c->allocator, (void *)c->outside);
    gg_mem_free(c->allocator, c->outside_copy);
    gg_mem_free(c->allocator, c);
}

struct gguf_graph *gguf_clone_graph(const struct gguf_clone *c)
{
    return c->graph;
}

/* Copy of t in the clone. */
static struct gguf_tensor *find_copy(const struct gguf_clone *c,
                                     const struct gguf_graph *g,
                                     const struct gguf_tensor *t)
{
    uint32_t k = gg_graph_find_number(g, t);
    if (k == GG_GRAPH_NONE) {
        for (size_t i = 0; i < c->n_outside; i++)
            if (c->outside[i] == t)
                return c->outside_copy[i];
        return NULL;
    }
    if (k & 1)
        return c->leaves[k / 2];
    return k / 2 < c->graph->n_nodes ? c->graph->nodes[k / 2] : NULL;
}

static bool is_shared(const struct gguf_clone *c, const struct gguf_tensor *t)
{
    return t->buffer && t->data &&
           gguf_buffer_usage(t->buffer) == GGUF_USAGE_WEIGHTS &&
           gguf_backend_supports_buft(c->backend, gguf_buffer_buft(t->buffer));
}

/* Add a copy of t to ctx: its description, with the copies of its sources and
 * of its root. */
static struct gguf_tensor *
describe_tensor(const struct gguf_clone *c, const struct gguf_graph *g,
                struct gguf_ctx *ctx, const struct gguf_tensor *t, bool share)
{
    struct gg_tensor_storage proto = *gg_tensor_storage(t);
    for (int i = 0; i < GGUF_TENSOR_SRC; i++)
        if (t->src[i])
            proto.src[i] = find_copy(c, g, t->src[i]);
    proto.t.src = proto.src;
    proto.t.op_params = proto.op_params;
    proto.t.name = proto.name;
    proto.t.data = proto.t.extra = NULL;
    proto.t.buffer = NULL;
    if (t->view_src)
        proto.t.view_src = find_copy(c, g, t->view_src);
    struct gguf_tensor *y = gg_ctx_add_tensor(ctx, &proto.t);
    if (y && share && !t->view_src && is_shared(c, t)) {
        y->data = t->data;
        y->buffer = t->buffer;
        y->extra = t->extra;
    }
    return y;
}

static enum gguf_status find_outside(struct gguf_clone *c,
                                     const struct gguf_graph *g,
                                     struct gguf_error *err)
{
    size_t room = 0;
    for (size_t i = 0; i < g->n_nodes + g->n_leaves; i++) {
        const struct gguf_tensor *r =
            (i < g->n_nodes ? g->nodes[i] : g->leaves[i - g->n_nodes])
                ->view_src;
        bool known = !r || gg_graph_find_number(g, r) != GG_GRAPH_NONE;
        for (size_t k = 0; !known && k < c->n_outside; k++)
            known = c->outside[k] == r;
        if (known)
            continue;
        if (c->n_outside == room) {
            void *p = gg_mem_grow(c->allocator, (void *)c->outside, &room,
                                  sizeof *c->outside, 4, err);
            if (!p)
                return GGUF_E_NOMEM;
            c->outside = p;
        }
        c->outside[c->n_outside++] = r;
    }
    c->outside_copy =
        gg_mem_alloc_zero(c->allocator, c->n_outside, sizeof *c->outside_copy);
    return c->outside_copy ? GGUF_OK : gg_error_set_nomem(err, c->n_outside);
}

static enum gguf_status make_ctx(struct gguf_clone *c, size_t n_tensors,
                                 size_t n_graph, struct gguf_ctx **out,
                                 struct gguf_error *err)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.allocator = c->allocator;
    p.mem_size = n_tensors * gguf_tensor_overhead() + 256 +
                 (n_graph ? gguf_graph_overhead(n_graph) : 0);
    p.no_alloc = true;
    return gguf_ctx_create(out, &p, err);
}

static enum gguf_status copy_data(const struct gguf_tensor *from,
                                  struct gguf_tensor *to,
                                  struct gguf_error *err)
{
    if (!from->data || from->data == to->data || from->view_src)
        return GGUF_OK;
    return gguf_tensor_copy(from, to, err);
}

static enum gguf_status clone_leaves(struct gguf_clone *c,
                                     const struct gguf_graph *g, bool share,
                                     struct gguf_error *err)
{
    const struct gguf_buft *buft = gguf_backend_buft(c->backend);
    for (size_t i = 0; i < c->n_outside; i++)
        c->outside_copy[i] =
            describe_tensor(c, g, c->leaf_ctx, c->outside[i], share);
    /* views among the leaves may stand before their roots */
    for (int views = 0; views < 2; views++)
        for (size_t i = 0; i < g->n_leaves; i++)
            if ((g->leaves[i]->view_src != NULL) == views)
                c->leaves[i] =
                    describe_tensor(c, g, c->leaf_ctx, g->leaves[i], share);
    GG_TRY(gguf_ctx_status(c->leaf_ctx, err));
    for (size_t i = 0; i < g->n_leaves; i++)
        gg_graph_append(c->graph, c->leaves[i]);
    GG_TRY(gguf_ctx_alloc_tensors(c->leaf_ctx, buft, c->allocator,
                                  &c->leaf_buffer, err));
    for (size_t i = 0; i < c->n_outside; i++)
        GG_TRY(copy_data(c->outside[i], c->outside_copy[i], err));
    for (size_t i = 0; i < g->n_leaves; i++)
        GG_TRY(copy_data(g->leaves[i], c->leaves[i], err));
    return GGUF_OK;
}

static enum gguf_status clone_nodes(struct gguf_clone *c,
                                    const struct gguf_graph *g, bool reuse,
                                    struct gguf_error *err)
{
    const struct gguf_buft *buft = gguf_backend_buft(c->backend);
    for (size_t i = 0; i < g->n_nodes; i++) {
        struct gguf_tensor *y =
            describe_tensor(c, g, c->node_ctx, g->nodes[i], false);
        if (y)
            gg_graph_append(c->graph, y);
    }
    GG_TRY(gguf_ctx_status(c->node_ctx, err));
    if (reuse) {
        GG_TRY(gguf_galloc_create(&c->galloc, c->allocator, buft, err));
        GG_TRY(gguf_galloc_alloc(c->galloc, c->graph, err));
    } else {
        GG_TRY(gguf_ctx_alloc_tensors(c->node_ctx, buft, c->allocator,
                                      &c->node_buffer, err));
    }
    /* parameters are not computed: their data is copied */
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!reuse || g->nodes[i]->op == GGUF_OP_NONE)
            GG_TRY(copy_data(g->nodes[i], c->graph->nodes[i], err));
    return GGUF_OK;
}

static enum gguf_status fill_clone(struct gguf_clone *c,
                                   const struct gguf_graph *g,
                                   const struct gguf_clone_params *p,
                                   struct gguf_error *err)
{
    const size_t capacity = GG_MAX(GG_MAX(g->n_nodes, g->n_leaves), 1);
    GG_TRY(find_outside(c, g, err));
    c->leaves =
        gg_mem_alloc_zero(c->allocator, g->n_leaves, sizeof *c->leaves);
    if (!c->leaves)
        return gg_error_set_nomem(err, g->n_leaves * sizeof *c->leaves);
    GG_TRY(make_ctx(c, g->n_leaves + c->n_outside, 0, &c->leaf_ctx, err));
    GG_TRY(make_ctx(c, g->n_nodes, capacity, &c->node_ctx, err));
    c->graph = gguf_graph_create(c->node_ctx, capacity);
    GG_TRY(gguf_ctx_status(c->node_ctx, err));
    GG_TRY(clone_leaves(c, g, !p->copy_weights, err));
    return clone_nodes(c, g, p->reuse, err);
}

enum gguf_status gguf_clone_create(struct gguf_clone **out,
                                   struct gguf_backend *backend,
                                   const struct gguf_graph *graph,
                                   const struct gguf_clone_params *params,
                                   struct gguf_error *err)
{
    struct gguf_clone_params own = GGUF_CLONE_PARAMS_INIT;
    *out = NULL;
    GG_TRY(gg_params_take(&own, sizeof own, params, "gguf_clone_params", err));
    if (!graph->n_slots)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a clone needs a whole graph");
    struct gguf_clone *c = gg_mem_alloc_zero(own.allocator, 1, sizeof *c);
    if (!c)
        return gg_error_set_nomem(err, sizeof *c);
    c->allocator = own.allocator;
    c->backend = backend;
    enum gguf_status st = fill_clone(c, graph, &own, err);
    if (st != GGUF_OK)
        gguf_clone_destroy(c);
    else
        *out = c;
    return st;
}
