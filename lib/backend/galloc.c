/* SPDX-License-Identifier: MIT */
/* galloc.c - the graph allocator: layouts of graphs in buffers
 *
 * Types of buffer that are the same share a buffer, a pool of the layout. The
 * last few layouts are kept, by the structure of their graphs: programs compute
 * a few kinds of graphs in turn, in many sizes.
 */
#include "config.h"
#include "alloc/graph_layout.h"
#include "backend/backend_int.h"
#include "base/params.h"

#include <string.h>

enum { N_LAYOUTS = 24 };

struct gguf_galloc {
    const struct gguf_allocator *allocator;
    unsigned n_types; /* that were given */
    unsigned n_pools; /* different ones of them */
    unsigned n_plans, n_moves;
    unsigned *pool_of;              /* pool of each type */
    const struct gguf_buft **bufts; /* type of each pool */
    struct gguf_buffer **buffers;   /* the objects stay for good, so that their
                                     address tells which tensors are ours */
    uint64_t *align;
    struct gg_alloc_layout layouts[N_LAYOUTS]; /* the one used last first */
    /* pools of the graph of the last reserve_n or alloc_n: of its nodes, then
     * leaves; those of another structure are all in the first */
    int *pools;
    size_t pools_cap, n_nodes, n_leaves;
    uint64_t pools_hash;
};

/* --- create, destroy ------------------------------------------------------ */

static void find_pools(struct gguf_galloc *ga,
                       const struct gguf_buft *const *bufts)
{
    for (unsigned i = 0; i < ga->n_types; i++) {
        unsigned k = 0;
        while (k < ga->n_pools && ga->bufts[k] != bufts[i])
            k++;
        if (k == ga->n_pools) {
            ga->bufts[k] = bufts[i];
            ga->align[k] = bufts[i]->alignment;
            ga->n_pools++;
        }
        ga->pool_of[i] = k;
    }
}

static enum gguf_status make_buffers(struct gguf_galloc *ga, bool measure,
                                     struct gguf_error *err)
{
    for (unsigned i = 0; i < ga->n_pools; i++) {
        GG_TRY(gguf_buffer_create(&ga->buffers[i],
                                  measure ? gg_measure_buft() : ga->bufts[i],
                                  0, ga->allocator, err));
        ga->buffers[i]->foreign = measure; /* any alignment */
        gguf_buffer_set_usage(ga->buffers[i], GGUF_USAGE_COMPUTE);
    }
    return GGUF_OK;
}

enum gguf_status gg_galloc_create(struct gguf_galloc **out,
                                  const struct gguf_allocator *allocator,
                                  const struct gguf_buft *const *bufts,
                                  unsigned n, bool measure,
                                  struct gguf_error *err)
{
    *out = NULL;
    if (!n)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a graph allocator needs a buffer type");
    GG_TRY(gg_params_need_all(bufts, n, "buffer type", err));
    struct gguf_galloc *ga = gg_mem_alloc_zero(allocator, 1, sizeof *ga);
    if (!ga)
        return gg_error_set_nomem(err, sizeof *ga);
    ga->allocator = allocator;
    ga->n_types = n;
    ga->pool_of = gg_mem_alloc_zero(allocator, n, sizeof *ga->pool_of);
    ga->bufts = gg_mem_alloc_zero(allocator, n, sizeof *ga->bufts);
    ga->buffers = gg_mem_alloc_zero(allocator, n, sizeof *ga->buffers);
    ga->align = gg_mem_alloc_zero(allocator, n, sizeof *ga->align);
    enum gguf_status st = GGUF_OK;
    if (!ga->pool_of || !ga->bufts || !ga->buffers || !ga->align)
        st = gg_error_set_nomem(err, n * sizeof *ga->bufts);
    else
        find_pools(ga, bufts);
    for (unsigned k = 0; st == GGUF_OK && k < N_LAYOUTS; k++)
        st =
            gg_alloc_layout_init(&ga->layouts[k], allocator, ga->n_pools, err);
    if (st == GGUF_OK)
        st = make_buffers(ga, measure, err);
    if (st != GGUF_OK)
        gguf_galloc_destroy(ga);
    else
        *out = ga;
    return st;
}

enum gguf_status gguf_galloc_create_n(struct gguf_galloc **out,
                                      const struct gguf_allocator *allocator,
                                      const struct gguf_buft *const *bufts,
                                      unsigned n_bufts, struct gguf_error *err)
{
    return gg_galloc_create(out, allocator, bufts, n_bufts, false, err);
}

enum gguf_status gguf_galloc_create(struct gguf_galloc **out,
                                    const struct gguf_allocator *allocator,
                                    const struct gguf_buft *buft,
                                    struct gguf_error *err)
{
    return gguf_galloc_create_n(out, allocator, &buft, 1, err);
}

void gguf_galloc_destroy(struct gguf_galloc *ga)
{
    if (!ga)
        return;
    for (unsigned i = 0; ga->buffers && i < ga->n_pools; i++)
        gguf_buffer_destroy(ga->buffers[i]);
    for (unsigned k = 0; k < N_LAYOUTS; k++)
        gg_alloc_layout_fini(&ga->layouts[k]);
    gg_mem_free(ga->allocator, ga->pools);
    gg_mem_free(ga->allocator, ga->align);
    gg_mem_free(ga->allocator, ga->buffers);
    gg_mem_free(ga->allocator, (void *)ga->bufts);
    gg_mem_free(ga->allocator, ga->pool_of);
    gg_mem_free(ga->allocator, ga);
}

/* --- whose memory --------------------------------------------------------- */

static int find_pool(const struct gguf_galloc *ga, const struct gguf_buffer *b)
{
    for (unsigned i = 0; i < ga->n_pools; i++)
        if (b == ga->buffers[i])
            return (int)i;
    return -1;
}

unsigned gg_galloc_first_same_buft(const struct gguf_galloc *ga, unsigned i)
{
    unsigned k = 0;
    while (ga->pool_of[k] != ga->pool_of[i])
        k++;
    return k;
}

int gg_galloc_find_buffer(const struct gguf_galloc *ga,
                          const struct gguf_buffer *b)
{
    const int pool = find_pool(ga, b);
    for (unsigned i = 0; pool >= 0 && i < ga->n_types; i++)
        if (ga->pool_of[i] == (unsigned)pool)
            return (int)i;
    return -1;
}

bool gg_galloc_owns(const struct gguf_galloc *ga, const struct gguf_buffer *b)
{
    return find_pool(ga, b) >= 0;
}

/* --- planning ------------------------------------------------------------- */

static uint64_t pool_size(void *user, unsigned pool,
                          const struct gguf_tensor *t)
{
    const struct gguf_galloc *ga = user;
    return gguf_buft_tensor_size(ga->bufts[pool], t);
}

static bool needs_memory(void *user, const struct gguf_tensor *t)
{
    return t->buffer ? gg_galloc_owns(user, t->buffer) : !t->data;
}

static struct gg_alloc_layout_in
make_layout_input(struct gguf_galloc *ga, const struct gguf_graph *graph,
                  bool with_pools)
{
    struct gg_alloc_layout_in in = { .graph = graph,
                                     .n_pools = ga->n_pools,
                                     .align = ga->align,
                                     .size = pool_size,
                                     .ours = needs_memory,
                                     .user = ga };
    if (with_pools && ga->pools) {
        in.node_pool = ga->pools;
        in.leaf_pool = ga->pools + ga->n_nodes;
    }
    in.hash = gg_alloc_layout_hash(&in);
    return in;
}

/* The numbers of pools for the numbers of types that the caller has. */
static enum gguf_status save_pools(struct gguf_galloc *ga,
                                   const struct gguf_graph *graph,
                                   const int *node, const int *leaf,
                                   struct gguf_error *err)
{
    const size_t n = gguf_graph_n_nodes(graph);
    const size_t n_all = n + gguf_graph_n_leaves(graph);
    ga->n_nodes = ga->n_leaves = 0;
    ga->pools = gg_mem_renew(ga->allocator, ga->pools, &ga->pools_cap,
                             sizeof *ga->pools, n_all, err);
    if (!ga->pools)
        return GGUF_E_NOMEM;
    for (size_t i = 0; i < n_all; i++) {
        const int k = i < n ? (node ? node[i] : 0) : (leaf ? leaf[i - n] : 0);
        if (k < 0 || (unsigned)k >= ga->n_types)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "buffer type %d of %u", k, ga->n_types);
        ga->pools[i] = (int)ga->pool_of[k];
    }
    ga->n_nodes = n;
    ga->n_leaves = n_all - n;
    return GGUF_OK;
}

/* Layout k becomes the first; those before it move back. */
static struct gg_alloc_layout *move_to_front(struct gguf_galloc *ga,
                                             unsigned k)
{
    struct gg_alloc_layout l = ga->layouts[k];
    memmove(ga->layouts + 1, ga->layouts, k * sizeof l);
    ga->layouts[0] = l;
    return ga->layouts;
}

/* A new layout, in place of the one that was not used for longest; the first
 * one from now on. */
static enum gguf_status plan_layout(struct gguf_galloc *ga,
                                    const struct gg_alloc_layout_in *in,
                                    struct gguf_error *err)
{
    struct gg_alloc_layout *l = move_to_front(ga, N_LAYOUTS - 1);
    GG_TRY(gg_alloc_layout_make(l, in, err));
    ga->n_plans++;
    for (unsigned i = 0; i < ga->n_pools; i++) {
        /* a tensor without elements has an address too */
        uint64_t need = GG_MAX(l->total[i], ga->align[i]);
        if (need > SIZE_MAX)
            return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                                "a graph needs %" PRIu64 " bytes", need);
        if (need <= ga->buffers[i]->size)
            continue;
        ga->n_moves++;
        GG_TRY(gg_buffer_resize(ga->buffers[i], (size_t)need, err));
    }
    return GGUF_OK;
}

/* Find a valid layout and make it the first. Returns false without one. */
static bool find_layout(struct gguf_galloc *ga,
                        const struct gg_alloc_layout_in *in)
{
    unsigned k = 0;
    while (k < N_LAYOUTS && !gg_alloc_layout_fits(&ga->layouts[k], in))
        k++;
    if (k == N_LAYOUTS)
        return false;
    const struct gg_alloc_layout *l = move_to_front(ga, k);
    bool fits = true;
    for (unsigned i = 0; i < ga->n_pools; i++) /* shorter after a failure */
        fits = fits && l->total[i] <= ga->buffers[i]->size &&
               ga->buffers[i]->size;
    return fits;
}

enum gguf_status gguf_galloc_reserve_n(struct gguf_galloc *ga,
                                       const struct gguf_graph *graph,
                                       const int *node_buft,
                                       const int *leaf_buft,
                                       struct gguf_error *err)
{
    GG_TRY(save_pools(ga, graph, node_buft, leaf_buft, err));
    const struct gg_alloc_layout_in in = make_layout_input(ga, graph, true);
    ga->pools_hash = in.hash;
    return plan_layout(ga, &in, err);
}

enum gguf_status gguf_galloc_reserve(struct gguf_galloc *ga,
                                     const struct gguf_graph *graph,
                                     struct gguf_error *err)
{
    return gguf_galloc_reserve_n(ga, graph, NULL, NULL, err);
}

/* --- placing -------------------------------------------------------------- */

static enum gguf_status place_tensor(struct gguf_galloc *ga,
                                     struct gguf_tensor *t,
                                     const struct gg_alloc_place *p,
                                     struct gguf_error *err)
{
    if (p->pool < 0)
        return GGUF_OK;
    t->data = NULL;
    t->buffer = NULL;
    return gguf_buffer_place_tensor(ga->buffers[p->pool], t, p->off, err);
}

static enum gguf_status alloc_graph(struct gguf_galloc *ga,
                                    struct gguf_graph *graph,
                                    const struct gg_alloc_layout_in *in,
                                    struct gguf_error *err)
{
    if (!find_layout(ga, in))
        GG_TRY(plan_layout(ga, in, err));
    for (unsigned i = 0; i < ga->n_pools; i++)
        gguf_buffer_reset(ga->buffers[i]);
    const struct gg_alloc_place *p = ga->layouts[0].places;
    size_t n = gguf_graph_n_nodes(graph),
           n_leaves = gguf_graph_n_leaves(graph);
    for (size_t i = 0; i < n_leaves; i++)
        GG_TRY(place_tensor(ga, gguf_graph_leaf(graph, i), &p[n + i], err));
    for (size_t i = 0; i < n; i++)
        GG_TRY(place_tensor(ga, gguf_graph_node(graph, i), &p[i], err));
    /* a view's root may be any tensor: views come last */
    for (size_t i = 0; i < n; i++) {
        struct gguf_tensor *t = gguf_graph_node(graph, i);
        if (t->view_src)
            GG_TRY(gguf_tensor_bind_view(t, err));
    }
    graph->placer = ga;
    return GGUF_OK;
}

enum gguf_status gguf_galloc_alloc(struct gguf_galloc *ga,
                                   struct gguf_graph *graph,
                                   struct gguf_error *err)
{
    const bool counts = gguf_graph_n_nodes(graph) == ga->n_nodes &&
                        gguf_graph_n_leaves(graph) == ga->n_leaves;
    struct gg_alloc_layout_in in = make_layout_input(ga, graph, counts);
    if (counts && in.hash != ga->pools_hash)
        in = make_layout_input(ga, graph, false);
    return alloc_graph(ga, graph, &in, err);
}

enum gguf_status gg_galloc_alloc_n(struct gguf_galloc *ga,
                                   struct gguf_graph *graph,
                                   const int *node_buft, const int *leaf_buft,
                                   struct gguf_error *err)
{
    GG_TRY(save_pools(ga, graph, node_buft, leaf_buft, err));
    const struct gg_alloc_layout_in in = make_layout_input(ga, graph, true);
    ga->pools_hash = in.hash;
    return alloc_graph(ga, graph, &in, err);
}

/* --- asking --------------------------------------------------------------- */

size_t gguf_galloc_buffer_size(const struct gguf_galloc *ga, unsigned i)
{
    if (i >= ga->n_types || gg_galloc_first_same_buft(ga, i) != i)
        return 0;
    return ga->buffers[ga->pool_of[i]]->size;
}

unsigned gg_galloc_n_moves(const struct gguf_galloc *ga)
{
    return ga->n_moves;
}

unsigned gguf_galloc_n_plans(const struct gguf_galloc *ga)
{
    return ga->n_plans;
}
