/* SPDX-License-Identifier: MIT */
/* cgraph.c - forward graphs: depth first, each tensor once
 *
 * The nodes that wait for their sources are a stack, which grows down from the
 * end of the array of nodes: what waits is not yet in the array, so both fit
 * as long as all nodes do. No recursion, whatever the graph's depth.
 */
#include "config.h"
#include "graph/cgraph.h"

#include <assert.h>

enum {
    MAX_CAPACITY = 1 << 28,
    /* Tensors lie one after the other in a page of memory, and are asked for
     * much in that order: they get slots beside each other, sixteen of them,
     * a cache line, for each page. Tensors are larger than a sixteenth. */
    PAGE_BITS = 12,
    SLOT_GROUP = 16,
    SLOT_BITS = PAGE_BITS - 4
};
static_assert(sizeof(struct gg_tensor_storage) + GG_OBJECT_HEAD >=
                  1 << SLOT_BITS,
              "tensors side by side have slots of their own");

/* A graph can have twice capacity tensors, most have little more than half of
 * that: the table is two thirds full at most. */
static uint64_t slots_for(uint64_t capacity)
{
    return (3 * capacity + SLOT_GROUP) / SLOT_GROUP * SLOT_GROUP;
}

/* Parts in one block: struct, nodes, leaves, slots, first_edge, edges (which
 * are packed: most of the room for them is never touched), next_src. */
static uint64_t graph_size(uint64_t capacity)
{
    return ((sizeof(struct gguf_graph) + GG_OBJECT_ALIGN - 1) &
            ~(size_t)(GG_OBJECT_ALIGN - 1)) +
           2 * capacity * sizeof(void *) +
           (slots_for(capacity) + (1 + GG_GRAPH_EDGES) * capacity) *
               sizeof(uint32_t) +
           capacity;
}

size_t gguf_graph_overhead(size_t capacity)
{
    if (capacity > MAX_CAPACITY)
        return SIZE_MAX;
    const uint64_t size =
        GG_OBJECT_HEAD + ((graph_size(capacity) + GG_OBJECT_ALIGN - 1) &
                          ~(uint64_t)(GG_OBJECT_ALIGN - 1));
    return size > SIZE_MAX ? SIZE_MAX : (size_t)size;
}

/* Nodes or leaves are others now. */
static void mark_changed(struct gguf_graph *g)
{
    g->generation = ++g->ctx->n_changes;
    g->placer = NULL;
}

static void enlist_graph(struct gguf_graph *g)
{
    g->older = g->ctx->graphs;
    g->ctx->graphs = g;
    mark_changed(g);
}

uint64_t gguf_graph_generation(const struct gguf_graph *g)
{
    return g->generation;
}

struct gguf_graph *gguf_graph_create(struct gguf_ctx *ctx, size_t capacity)
{
    if (gg_ctx_failed(ctx))
        return NULL;
    if (!capacity || capacity > MAX_CAPACITY) {
        gg_error_set(gg_ctx_err(ctx), GGUF_E_INVALID, GGUF_NO_OFFSET,
                     "a graph of %zu nodes: 1 to %d are possible", capacity,
                     MAX_CAPACITY);
        return NULL;
    }
    struct gguf_graph *g =
        gg_ctx_push(ctx, GGUF_OBJECT_GRAPH, graph_size(capacity), "a graph");
    if (!g)
        return NULL;
    size_t head =
        (sizeof *g + GG_OBJECT_ALIGN - 1) & ~(size_t)(GG_OBJECT_ALIGN - 1);
    char *p = (char *)g + head;
    *g = (struct gguf_graph){ .ctx = ctx, .capacity = capacity };
    g->n_slots = (size_t)slots_for(capacity);
    g->nodes = (struct gguf_tensor **)p;
    g->leaves = g->nodes + capacity;
    g->slots = (uint32_t *)(g->leaves + capacity);
    g->first_edge = g->slots + g->n_slots;
    g->edges = g->first_edge + capacity;
    g->next_src = (uint8_t *)(g->edges + GG_GRAPH_EDGES * capacity);
    enlist_graph(g);
    gguf_graph_clear(g);
    return g;
}

void gguf_graph_clear(struct gguf_graph *g)
{
    g->n_nodes = g->n_leaves = g->n_edges = 0;
    memset(g->slots, 0, g->n_slots * sizeof *g->slots);
    mark_changed(g);
}

static const struct gguf_tensor *tensor_by_number(const struct gguf_graph *g,
                                                  uint32_t number)
{
    return number & 1 ? g->leaves[number / 2] : g->nodes[number / 2];
}

/* Slot of t or the empty one where it belongs. The page's address is spread by
 * multiplying, best in the highest bits of the product (Knuth, 6.4). */
static size_t find_slot(const struct gguf_graph *g,
                        const struct gguf_tensor *t)
{
    const uint64_t at = (uintptr_t)t;
    uint64_t h = (at >> PAGE_BITS) * UINT64_C(0x9E3779B97F4A7C15);
    size_t i = (size_t)((h >> 32) * (g->n_slots / SLOT_GROUP) >> 32);
    i = i * SLOT_GROUP + (at >> SLOT_BITS) % SLOT_GROUP;
    while (g->slots[i] && tensor_by_number(g, g->slots[i] - 1) != t)
        i = i + 1 < g->n_slots ? i + 1 : 0;
    return i;
}

uint32_t gg_graph_find_number(const struct gguf_graph *g,
                              const struct gguf_tensor *t)
{
    if (g->n_slots) {
        const uint32_t k = g->slots[find_slot(g, t)];
        return k ? k - 1 : GG_GRAPH_NONE;
    }
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i] == t)
            return (uint32_t)(2 * i);
    return GG_GRAPH_NONE;
}

size_t gg_graph_find_edges(const struct gguf_graph *g,
                           const struct gguf_tensor *t, uint32_t *found)
{
    size_t n = 0;
    if (t->view_src)
        found[n++] = gg_graph_find_number(g, t->view_src);
    for (int s = 0, n_src = gg_op_n_src(t); s < n_src; s++)
        if (t->src[s])
            found[n++] = gg_graph_find_number(g, t->src[s]);
    return n;
}

bool gguf_graph_has(const struct gguf_graph *g, const struct gguf_tensor *t)
{
    return gg_graph_find_number(g, t) != GG_GRAPH_NONE;
}

static bool fail_full(struct gguf_graph *g, const struct gguf_tensor *t,
                      const char *what)
{
    char name[160];
    gg_error_set(gg_ctx_err(g->ctx), GGUF_E_FULL, GGUF_NO_OFFSET,
                 "the graph is full: no room for %s %s beside %zu %s",
                 gguf_op_name(t->op) ? gguf_op_name(t->op) : "?",
                 gguf_tensor_format(t, name, sizeof name), g->capacity, what);
    return false;
}

/* Append t if it is a leaf, or push it on the stack of *depth nodes. A tensor
 * that the graph has already is ignored. Returns false if the graph is full.
 * The slot of a node on the stack is stored in its first_edge. */
static bool visit_tensor(struct gguf_graph *g, struct gguf_tensor *t,
                         size_t *depth)
{
    const size_t slot = find_slot(g, t);
    if (g->slots[slot])
        return true;
    if (t->op == GGUF_OP_NONE && !(t->flags & GGUF_TENSOR_PARAM)) {
        if (g->n_leaves == g->capacity)
            return fail_full(g, t, "leaves");
        g->slots[slot] = (uint32_t)(2 * g->n_leaves + 1) + 1;
        g->leaves[g->n_leaves++] = t;
        mark_changed(g);
        return true;
    }
    if (g->n_nodes + *depth == g->capacity)
        return fail_full(g, t, "nodes");
    ++*depth;
    const size_t top = g->capacity - *depth;
    g->slots[slot] = (uint32_t)(2 * top) + 1;
    g->nodes[top] = t;
    g->next_src[top] = 0;
    g->first_edge[top] = (uint32_t)slot;
    return true;
}

/* The sources of the node on top of the stack are done: it goes to its place
 * after them. */
static void place_node(struct gguf_graph *g, size_t *depth)
{
    const size_t top = g->capacity - (*depth)--, i = g->n_nodes++;
    struct gguf_tensor *t = g->nodes[top];
    g->slots[g->first_edge[top]] = (uint32_t)(2 * i) + 1;
    g->nodes[i] = t;
    g->first_edge[i] = (uint32_t)g->n_edges;
    g->n_edges += gg_graph_find_edges(g, t, g->edges + g->n_edges);
    mark_changed(g);
}

void gg_graph_append(struct gguf_graph *g, struct gguf_tensor *t)
{
    size_t depth = 0;
    if (!gg_ctx_failed(g->ctx) && visit_tensor(g, t, &depth) && depth)
        place_node(g, &depth);
}

void gguf_graph_add(struct gguf_graph *g, struct gguf_tensor *t)
{
    if (!t || !g || gg_ctx_failed(g->ctx))
        return;
    if (!g->n_slots) {
        gg_error_set(gg_ctx_err(g->ctx), GGUF_E_INVALID, GGUF_NO_OFFSET,
                     "a view of a graph cannot be added to");
        return;
    }
    size_t depth = 0;
    if (!visit_tensor(g, t, &depth))
        return;
    while (depth) {
        size_t top = g->capacity - depth;
        struct gguf_tensor *n = g->nodes[top];
        if (g->next_src[top] < gg_op_n_src(n)) {
            struct gguf_tensor *s = n->src[g->next_src[top]++];
            if (s && !visit_tensor(g, s, &depth))
                return;
            continue;
        }
        place_node(g, &depth);
    }
}

enum gguf_status gguf_graph_finish(struct gguf_ctx *ctx, struct gguf_graph *g,
                                   struct gguf_tensor *result,
                                   struct gguf_error *err)
{
    gguf_graph_add(g, result);
    GG_TRY(gguf_ctx_status(ctx, err));
    if (!g)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET, "no graph");
    return gguf_ctx_status(g->ctx, err);
}

size_t gguf_graph_capacity(const struct gguf_graph *g)
{
    return g->capacity;
}

size_t gguf_graph_n_nodes(const struct gguf_graph *g)
{
    return g->n_nodes;
}

size_t gguf_graph_n_leaves(const struct gguf_graph *g)
{
    return g->n_leaves;
}

struct gguf_tensor *gguf_graph_node(const struct gguf_graph *g, size_t i)
{
    return g->nodes[i];
}

struct gguf_tensor *gguf_graph_leaf(const struct gguf_graph *g, size_t i)
{
    return g->leaves[i];
}

struct gguf_tensor *gguf_graph_find(const struct gguf_graph *g,
                                    const char *name)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!strcmp(g->nodes[i]->name, name))
            return g->nodes[i];
    for (size_t i = 0; i < g->n_leaves; i++)
        if (!strcmp(g->leaves[i]->name, name))
            return g->leaves[i];
    return NULL;
}

struct gguf_graph *gguf_graph_view(struct gguf_ctx *ctx,
                                   const struct gguf_graph *g, size_t begin,
                                   size_t end)
{
    if (gg_ctx_failed(ctx) || !g)
        return NULL;
    if (begin > end || end > g->n_nodes) {
        gg_error_set(gg_ctx_err(ctx), GGUF_E_INVALID, GGUF_NO_OFFSET,
                     "nodes %zu to %zu of a graph of %zu", begin, end,
                     g->n_nodes);
        return NULL;
    }
    struct gguf_graph *v =
        gg_ctx_push(ctx, GGUF_OBJECT_GRAPH, sizeof *v, "a view of a graph");
    if (!v)
        return NULL;
    *v = (struct gguf_graph){ .ctx = ctx,
                              .capacity = end - begin,
                              .n_nodes = end - begin,
                              .nodes = g->nodes + begin };
    enlist_graph(v);
    return v;
}

struct gguf_graph *gguf_graph_copy(struct gguf_ctx *ctx,
                                   const struct gguf_graph *g)
{
    struct gguf_graph *c =
        g ? gguf_graph_create(ctx, GG_MAX(g->capacity, (size_t)1)) : NULL;
    if (!c)
        return NULL;
    for (size_t i = 0; i < g->n_leaves; i++)
        gg_graph_append(c, g->leaves[i]);
    for (size_t i = 0; i < g->n_nodes; i++)
        gg_graph_append(c, g->nodes[i]);
    return c;
}
