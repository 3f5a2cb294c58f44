/* SPDX-License-Identifier: MIT */
/* cgraph.h - inside of a graph, for the layers that lay out and run it */
#ifndef GG_GRAPH_CGRAPH_H
#define GG_GRAPH_CGRAPH_H

#include "graph/op_table.h"
#include "gguf/graph.h"

#define GG_GRAPH_NONE UINT32_MAX

/* Number of a node: 2i; of a leaf: 2i + 1.
 *
 * The edges of node i, from edges[first_edge[i]] on, are numbers: that of its
 * root if it is a view, then that of each source that is not NULL, in order;
 * GG_GRAPH_NONE for what is not in the graph. They are there so that passes
 * over a graph need not search for the tensors that a node refers to. */
struct gguf_graph {
    struct gguf_ctx *ctx;
    size_t capacity;
    size_t n_nodes, n_leaves, n_edges;
    struct gguf_tensor **nodes, **leaves;
    uint32_t *first_edge, *edges;
    uint8_t *next_src;   /* of tensors on the stack, see add */
    size_t n_slots;      /* 0: a view of a graph, without edges */
    uint32_t *slots;     /* hash set of numbers + 1; 0: empty */
    uint64_t generation; /* gguf_graph_generation */
    const void *placer;  /* the allocator or scheduler that gave memory to its
                           tensors last, with no change of nodes since */
    struct gguf_graph *older; /* the one made before it in its context */
};

/* Number of t, or GG_GRAPH_NONE. */
uint32_t gg_graph_find_number(const struct gguf_graph *graph,
                              const struct gguf_tensor *t);

/* What is at a place of an array of nodes, then leaves. */
static inline struct gguf_tensor *gg_graph_at(const struct gguf_graph *g,
                                              size_t place)
{
    return place < g->n_nodes ? g->nodes[place]
                              : g->leaves[place - g->n_nodes];
}

/* Search for the edges of t: how many. */
size_t gg_graph_find_edges(const struct gguf_graph *graph,
                           const struct gguf_tensor *t, uint32_t *found);

/* Of a node: each source, and a root. */
enum { GG_GRAPH_EDGES = GGUF_TENSOR_SRC + 1 };

/* Edges of what is at a place; of a leaf and in a view of a graph they
 * are searched for, into found. */
static inline const uint32_t *gg_graph_edges(const struct gguf_graph *g,
                                             size_t place,
                                             uint32_t found[GG_GRAPH_EDGES])
{
    if (g->n_slots && place < g->n_nodes)
        return g->edges + g->first_edge[place];
    gg_graph_find_edges(g, gg_graph_at(g, place), found);
    return found;
}

/* Place of a number, or -1 for GG_GRAPH_NONE. */
static inline int32_t gg_graph_place(const struct gguf_graph *g,
                                     uint32_t number)
{
    if (number == GG_GRAPH_NONE)
        return -1;
    return (int32_t)(number & 1 ? g->n_nodes + number / 2 : number / 2);
}

static inline int32_t gg_graph_find(const struct gguf_graph *g,
                                    const struct gguf_tensor *t)
{
    return gg_graph_place(g, gg_graph_find_number(g, t));
}

/* Append t alone, a leaf or a node as graph_add tells them apart, in the order
 * of the caller; t is not in the graph yet, and its sources will not be added
 * later. Sticky GGUF_E_FULL. */
void gg_graph_append(struct gguf_graph *graph, struct gguf_tensor *t);

#endif
