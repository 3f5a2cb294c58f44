/* SPDX-License-Identifier: MIT */
/* graph_cuts.h - where a pass can be cut, so that it is computed layer by layer
 *
 * A cut lies between two nodes of a graph. Weights of a layer are read on one
 * side of it only, and so is a session's memory: what a layer keeps of a
 * sequence is of no use to layers after the cut, since other sequences go
 * through it first. What nodes before the cut leave for those after it is
 * carried: results in the memory of graphs, inputs apart.
 */
#ifndef GG_RUN_GRAPH_CUTS_H
#define GG_RUN_GRAPH_CUTS_H

#include "base/error.h"
#include "graph/cgraph.h"

/* Of one graph; used again for the next. */
struct gg_graph_cuts {
    const struct gguf_allocator *allocator;
    uint32_t n_layers;
    size_t *end;   /* [n_layers] nodes up to and with those of a layer; that
                      * of the one before where there can be no cut */
    uint64_t most; /* bytes that are carried over a cut, at most */
    struct gg_graph_cuts_root *root; /* [nodes, then leaves] */
    uint64_t *live; /* [n_nodes + 1] bytes that a cut there carries */
    uint32_t *open; /* [n_nodes + 1] why there can be no cut: how many */
    size_t cap;     /* nodes and leaves that there is room for */
};

/* n_layers is at least 1. GGUF_E_NOMEM; fini is fine after it. */
enum gguf_status gg_graph_cuts_init(struct gg_graph_cuts *c, uint32_t n_layers,
                                    const struct gguf_allocator *a,
                                    struct gguf_error *err);
void gg_graph_cuts_fini(struct gg_graph_cuts *c);

/* Find the cuts of a graph whose tensors have memory: between layers, where
 * least is carried. GGUF_E_NOMEM. */
enum gguf_status gg_graph_cuts_find(struct gg_graph_cuts *c,
                                    const struct gguf_graph *graph,
                                    struct gguf_error *err);

/* What is carried over the cut after that layer, one by one: begin with *i 0;
 * NULL after the last. */
struct gguf_tensor *gg_graph_cuts_next_carried(const struct gg_graph_cuts *c,
                                               const struct gguf_graph *graph,
                                               uint32_t layer, size_t *i);

#endif
