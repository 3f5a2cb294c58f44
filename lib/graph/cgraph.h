/* SPDX-License-Identifier: MIT */
/* cgraph.h - inside of a graph, for the layers that place and compute it */
#ifndef GG_GRAPH_CGRAPH_H
#define GG_GRAPH_CGRAPH_H

#include "graph/op_table.h"
#include "gguf/graph.h"

#define GG_GRAPH_NONE UINT32_MAX

/* Each tensor of a graph has a number: 2i for node i, 2i + 1 for leaf i.
 *
 * Edges spare the passes over a graph a search for the tensors that a node
 * refers to. The edges of node i begin at edges[first_edge[i]]: the number of
 * its root if it is a view, then the numbers of its sources that are not NULL,
 * in order. GG_GRAPH_NONE stands for a tensor outside of the graph. */
struct gguf_graph {
    struct gguf_ctx *ctx;
    size_t capacity;
    size_t n_nodes, n_leaves, n_edges;
    struct gguf_tensor **nodes, **leaves;
    uint32_t *first_edge, *edges;
    uint8_t *next_src;   /* next source to visit, of nodes that wait for their
                            sources (gguf_graph_add()) */
    size_t n_slots;      /* size of slots; 0: a view, without edges */
    uint32_t *slots;     /* hash set of numbers + 1; 0: an empty slot */
    uint64_t generation; /* gguf_graph_generation() */
    const void *placer; /* allocator or scheduler that placed the tensors last;
                            NULL once nodes have changed */
    struct gguf_graph
        *older; /* graph that was made before it in its context */
};

/* Number of t in the graph, or GG_GRAPH_NONE. */
uint32_t gg_graph_find_number(const struct gguf_graph *graph,
                              const struct gguf_tensor *t);

/* Tensor at a place: places count the nodes, then the leaves. */
static inline struct gguf_tensor *gg_graph_at(const struct gguf_graph *g,
                                              size_t place)
{
    return place < g->n_nodes ? g->nodes[place]
                              : g->leaves[place - g->n_nodes];
}

/* Compute the edges of t by searching. Returns the number of edges in found. */
size_t gg_graph_find_edges(const struct gguf_graph *graph,
                           const struct gguf_tensor *t, uint32_t *found);

/* Most edges of a node: its sources and a root. */
enum { GG_GRAPH_EDGES = GGUF_TENSOR_SRC + 1 };

/* Edges of the tensor at a place. Leaves, and nodes of a view of a graph, have
 * none stored: theirs are computed into found. */
static inline const uint32_t *gg_graph_edges(const struct gguf_graph *g,
                                             size_t place,
                                             uint32_t found[GG_GRAPH_EDGES])
{
    if (g->n_slots && place < g->n_nodes)
        return g->edges + g->first_edge[place];
    gg_graph_find_edges(g, gg_graph_at(g, place), found);
    return found;
}

/* Place of the tensor with that number. -1 for GG_GRAPH_NONE. */
static inline int32_t gg_graph_place(const struct gguf_graph *g,
                                     uint32_t number)
{
    if (number == GG_GRAPH_NONE)
        return -1;
    return (int32_t)(number & 1 ? g->n_nodes + number / 2 : number / 2);
}

/* Place of t in the graph, or -1. */
static inline int32_t gg_graph_find(const struct gguf_graph *g,
                                    const struct gguf_tensor *t)
{
    return gg_graph_place(g, gg_graph_find_number(g, t));
}

/* Append t without its sources. t must not be in the graph, and its sources
 * must not be added after it. Sticky GGUF_E_FULL. */
void gg_graph_append(struct gguf_graph *graph, struct gguf_tensor *t);

#endif
