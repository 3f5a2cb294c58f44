/* cgraph.h - inside of a graph, for the layers that lay out and run it */
#ifndef GG_GRAPH_CGRAPH_H
#define GG_GRAPH_CGRAPH_H

#include "graph/optab.h"
#include "gguf/graph.h"

#define GG_GRAPH_NONE UINT32_MAX

/* Number of a node: 2i; of a leaf: 2i + 1. */
struct gguf_graph {
    struct gguf_ctx *ctx;
    size_t capacity;
    size_t n_nodes, n_leaves;
    struct gguf_tensor **nodes, **leaves;
    uint8_t *next_src;               /* of tensors on the stack, see add */
    size_t n_slots;                  /* power of two; 0: a view of a graph */
    const struct gguf_tensor **keys; /* hash set; NULL: empty slot */
    uint32_t *numbers;               /* of the tensor in that slot */
};

/* Number of t, or GG_GRAPH_NONE. */
uint32_t gg_graph_number(const struct gguf_graph *graph,
                         const struct gguf_tensor *t);

/* Append t alone, a leaf or a node as graph_add tells them apart, in whatever
 * order the caller says; t is not there yet. Sticky GGUF_E_FULL. */
void gg_graph_append(struct gguf_graph *graph, struct gguf_tensor *t);

#endif
