/* SPDX-License-Identifier: MIT */
/* gradient.c - a graph extended backwards, node by node */
#include "config.h"
#include "graph/gradient_int.h"

#include "base/mem.h"
#include "base/params.h"

/* Gradients exist by numbers that change continuously. */
static bool has_gradient(const struct gguf_tensor *t)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    return info && info->family != GGUF_FAMILY_INT;
}

bool gg_gradient_wants(const struct gg_gradient_pass *g,
                       const struct gguf_tensor *t, int i)
{
    const struct gguf_tensor *s = t->src[i];
    if (!s || !has_gradient(s))
        return false;
    const uint32_t k = gg_graph_find_number(g->graph, s);
    return k != GG_GRAPH_NONE && g->needs[k];
}

void gg_gradient_add(struct gg_gradient_pass *g, const struct gguf_tensor *t,
                     int i, struct gguf_tensor *term)
{
    struct gguf_tensor **total =
        &g->total[gg_graph_find_number(g->graph, t->src[i])];
    if (term)
        *total = *total ? gguf_op_add(g->ctx, *total, term) : term;
}

/* --- which nodes ---------------------------------------------------------- */

static enum gguf_status find_number(const struct gguf_graph *graph,
                                    const struct gguf_tensor *t,
                                    const char *what, size_t i, uint32_t *k,
                                    struct gguf_error *err)
{
    char name[160];
    *k = t ? gg_graph_find_number(graph, t) : GG_GRAPH_NONE;
    if (*k != GG_GRAPH_NONE)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "gradients: %s %zu, %s, is not in the graph", what, i,
                        t ? gguf_tensor_format(t, name, sizeof name) : "NULL");
}

/* Does a node need the gradient of one of its sources? */
static bool any_source_needs(const struct gg_gradient_pass *g,
                             const struct gguf_tensor *t)
{
    for (int i = 0; i < gg_op_n_src(t); i++)
        if (gg_gradient_wants(g, t, i))
            return true;
    return false;
}

/* Mark the nodes on the way from wanted tensors to results. */
static enum gguf_status mark_way(struct gg_gradient_pass *g,
                                 const struct gguf_gradients_params *p,
                                 struct gguf_error *err)
{
    uint32_t k;
    for (size_t i = 0; i < p->n_wanted; i++) {
        GG_TRY(
            find_number(g->graph, p->wanted[i], "wanted tensor", i, &k, err));
        g->needs[k] = true;
    }
    for (size_t i = 0; i < p->n_results; i++) {
        GG_TRY(find_number(g->graph, p->results[i], "result", i, &k, err));
        g->reaches[k] = true;
    }
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct gguf_tensor *t = g->graph->nodes[i];
        g->needs[2 * i] =
            g->needs[2 * i] || (has_gradient(t) && any_source_needs(g, t));
    }
    for (size_t i = g->n_nodes; i-- > 0;) {
        const struct gguf_tensor *t = g->graph->nodes[i];
        for (int s = 0; g->reaches[2 * i] && s < gg_op_n_src(t); s++)
            if (gg_gradient_wants(g, t, s))
                g->reaches[gg_graph_find_number(g->graph, t->src[s])] = true;
    }
    return GGUF_OK;
}

/* Is node i on the way, and are gradients passed on to its sources? */
static bool passes_on(const struct gg_gradient_pass *g, size_t i)
{
    return g->needs[2 * i] && g->reaches[2 * i] &&
           any_source_needs(g, g->graph->nodes[i]);
}

static const struct gguf_tensor *find_missing(const struct gg_gradient_pass *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct gguf_tensor *t = g->graph->nodes[i];
        const struct gg_gradient_row *row = gg_gradient_row(t->op);
        if (!passes_on(g, i))
            continue;
        for (int s = 0; s < gg_op_n_src(t); s++)
            if (gg_gradient_wants(g, t, s) &&
                (!row->fn || !(row->sources >> s & 1)))
                return t;
    }
    return NULL;
}

/* --- memory --------------------------------------------------------------- */

static void fini_gradients(struct gg_gradient_pass *g)
{
    const struct gguf_allocator *a = g->graph->ctx->allocator;
    gg_mem_free(a, g->needs);
    gg_mem_free(a, g->reaches);
    gg_mem_free(a, g->total);
}

/* Set up g for a graph. fini_gradients() may follow a failure. */
static enum gguf_status init_gradients(struct gg_gradient_pass *g,
                                       struct gguf_ctx *ctx,
                                       struct gguf_graph *graph,
                                       struct gguf_error *err)
{
    const struct gguf_allocator *a = graph->ctx->allocator;
    const size_t n = 2 * GG_MAX(graph->n_nodes, graph->n_leaves) + 2;
    *g = (struct gg_gradient_pass){ .ctx = ctx,
                                    .graph = graph,
                                    .n_nodes = graph->n_nodes };
    g->needs = gg_mem_alloc_zero(a, n, sizeof *g->needs);
    g->reaches = gg_mem_alloc_zero(a, n, sizeof *g->reaches);
    g->total = gg_mem_alloc_zero(a, n, sizeof(struct gguf_tensor *));
    return g->needs && g->reaches && g->total
               ? GGUF_OK
               : gg_error_set_nomem(err, n * sizeof *g->total);
}

/* --- building ------------------------------------------------------------- */

static enum gguf_status take_seeds(struct gg_gradient_pass *g,
                                   const struct gguf_gradients_params *p,
                                   struct gguf_error *err)
{
    for (size_t i = 0; i < p->n_results; i++) {
        struct gguf_tensor *seed = p->seeds[i];
        const struct gguf_tensor *y = p->results[i];
        char name[160];
        if (!seed || seed->dtype != GGUF_DTYPE_F32)
            return gg_error_set(err, GGUF_E_TYPE, GGUF_NO_OFFSET,
                                "gradients: seed %zu is not f32", i);
        if (!gguf_tensor_same_shape(seed, y))
            return gg_error_set(
                err, GGUF_E_SHAPE, GGUF_NO_OFFSET,
                "gradients: seed %zu does not have the shape of %s", i,
                gguf_tensor_format(y, name, sizeof name));
        struct gguf_tensor **total =
            &g->total[gg_graph_find_number(g->graph, y)];
        if (!gguf_tensor_is_contiguous(seed))
            seed = gguf_op_cont(g->ctx, seed);
        *total = *total ? gguf_op_add(g->ctx, *total, seed) : seed;
    }
    return GGUF_OK;
}

static enum gguf_status check_room(const struct gg_gradient_pass *g,
                                   struct gguf_error *err)
{
    char name[160];
    const struct gguf_tensor *t = find_missing(g);
    if (!g->graph->n_slots)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gradients: a view of a graph cannot be extended");
    if (t)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "operation %s has no gradient: %s",
                            gguf_op_name(t->op),
                            gguf_tensor_format(t, name, sizeof name));
    return GGUF_OK;
}

/* Build the gradients of all nodes, from the last to the first. Each is added
 * to the graph when its last term is: so the graph's order is that of use. */
static void build_nodes(struct gg_gradient_pass *g)
{
    for (size_t i = g->n_nodes; i-- > 0;) {
        const struct gguf_tensor *t = g->graph->nodes[i];
        struct gguf_tensor *dy = g->total[2 * i];
        if (!dy || !g->needs[2 * i])
            continue;
        gguf_graph_add(g->graph, dy);
        if (passes_on(g, i))
            gg_gradient_row(t->op)->fn(g, t, dy);
    }
}

static enum gguf_status build_all(struct gg_gradient_pass *g,
                                  const struct gguf_gradients_params *p,
                                  struct gguf_tensor **gradients,
                                  struct gguf_error *err)
{
    GG_TRY(mark_way(g, p, err));
    GG_TRY(check_room(g, err));
    GG_TRY(take_seeds(g, p, err));
    build_nodes(g);
    GG_TRY(gguf_ctx_status(g->ctx, err));
    for (size_t i = 0; i < p->n_wanted; i++) {
        struct gguf_tensor *t =
            g->total[gg_graph_find_number(g->graph, p->wanted[i])];
        gguf_graph_add(g->graph, gguf_tensor_add_flags(t, GGUF_TENSOR_OUTPUT));
        if (t && t->op != GGUF_OP_NONE && !t->name[0])
            gg_op_name_from_source(t, p->wanted[i], "gradient", NULL);
        gradients[i] = t;
    }
    return gguf_ctx_status(g->graph->ctx, err);
}

/* Copy parameters, and check the pointers that are read. */
static enum gguf_status take_params(struct gguf_gradients_params *own,
                                    const struct gguf_gradients_params *p,
                                    const struct gguf_graph *graph,
                                    struct gguf_error *err)
{
    GG_TRY(gg_params_take(own, sizeof *own, p, "gguf_gradients_params", err));
    if (!graph || !own->n_results)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gradients: %s",
                            graph ? "no results" : "no graph");
    GG_TRY(gg_params_need(own->results, "results", err));
    return own->n_wanted ? gg_params_need(own->wanted, "wanted", err)
                         : GGUF_OK;
}

enum gguf_status gguf_gradients_build(struct gguf_ctx *ctx,
                                      struct gguf_graph *graph,
                                      const struct gguf_gradients_params *p,
                                      struct gguf_tensor **gradients,
                                      struct gguf_error *err)
{
    struct gguf_gradients_params own = GGUF_GRADIENTS_PARAMS_INIT;
    struct gg_gradient_pass g;
    GG_TRY(take_params(&own, p, graph, err));
    GG_TRY(gg_params_need(own.seeds, "seeds", err));
    for (size_t i = 0; i < own.n_wanted; i++)
        gradients[i] = NULL;
    GG_TRY(gguf_ctx_status(ctx, err));
    enum gguf_status st = init_gradients(&g, ctx, graph, err);
    if (st == GGUF_OK)
        st = build_all(&g, &own, gradients, err);
    for (size_t i = 0; st != GGUF_OK && i < own.n_wanted; i++)
        gradients[i] = NULL;
    fini_gradients(&g);
    return st;
}

enum gguf_status gguf_gradients_missing(const struct gguf_graph *graph,
                                        const struct gguf_gradients_params *p,
                                        const struct gguf_tensor **missing,
                                        struct gguf_error *err)
{
    struct gguf_gradients_params own = GGUF_GRADIENTS_PARAMS_INIT;
    struct gg_gradient_pass g;
    *missing = NULL;
    GG_TRY(take_params(&own, p, graph, err));
    /* the graph is only read */
    enum gguf_status st =
        init_gradients(&g, NULL, (struct gguf_graph *)(uintptr_t)graph, err);
    if (st == GGUF_OK)
        st = mark_way(&g, &own, err);
    if (st == GGUF_OK)
        *missing = find_missing(&g);
    fini_gradients(&g);
    return st;
}
