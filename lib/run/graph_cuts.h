/* SPDX-License-Identifier: MIT */
/* graph_cuts.h - where a pass can be cut, to be computed layer by layer
 *
 * A cut lies between two nodes of a graph. Nodes on one side only read the
 * weights of a layer, and its part of the session's memory: other sequences go
 * through the layer before the nodes after the cut are computed. Results of
 * nodes before the cut that nodes after it read are carried over the cut; they
 * lie in the memory of graphs, and inputs are not among them. */
#ifndef GG_RUN_GRAPH_CUTS_H
#define GG_RUN_GRAPH_CUTS_H

#include "base/error.h"
#include "graph/cgraph.h"

/* Cuts of one graph. The memory is reused for the next graph. */
struct gg_graph_cuts {
    const struct gguf_allocator *allocator;
    uint32_t n_layers;
    /* [n_layers], node after those of each layer. A layer after which no cut
     * is possible has the value of the layer before it. */
    size_t *end;
    uint64_t most; /* bytes that are carried over a cut, at most */
    struct gg_graph_cuts_root *root; /* [nodes, then leaves] */
    uint64_t *live; /* [n_nodes + 1], bytes carried over a cut there */
    uint32_t *open; /* [n_nodes + 1], number of reasons against a cut there */
    size_t cap;     /* nodes and leaves for which there is room */
};

/* Begin with no graph; n_layers is 1 or more. GGUF_E_NOMEM.
 * gg_graph_cuts_fini() may follow a failure. */
enum gguf_status gg_graph_cuts_init(struct gg_graph_cuts *c, uint32_t n_layers,
                                    const struct gguf_allocator *a,
                                    struct gguf_error *err);
void gg_graph_cuts_fini(struct gg_graph_cuts *c);

/* Find the cuts of a graph whose tensors have memory: between two layers the
 * one that carries the least. GGUF_E_NOMEM. */
enum gguf_status gg_graph_cuts_find(struct gg_graph_cuts *c,
                                    const struct gguf_graph *graph,
                                    struct gguf_error *err);

/* Compute live and open of a graph whose tensors have memory. Only memory of
 * the session forbids cuts: weights may be read on both sides. The cuts between
 * layers are not found. GGUF_E_NOMEM. */
enum gguf_status gg_graph_cuts_measure(struct gg_graph_cuts *c,
                                       const struct gguf_graph *graph,
                                       struct gguf_error *err);

/* Next tensor that is carried over the cut before node at; NULL after the last.
 * Begin with *i = 0. */
struct gguf_tensor *gg_graph_cuts_next_at(const struct gg_graph_cuts *c,
                                          const struct gguf_graph *graph,
                                          size_t at, size_t *i);

/* Next tensor that is carried over the cut after a layer; NULL after the last.
 * Begin with *i = 0. */
struct gguf_tensor *gg_graph_cuts_next_carried(const struct gg_graph_cuts *c,
                                               const struct gguf_graph *graph,
                                               uint32_t layer, size_t *i);

#endif
