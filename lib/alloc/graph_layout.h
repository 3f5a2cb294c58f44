/* SPDX-License-Identifier: MIT */
/* graph_layout.h - a graph's tensors to offsets, so that memory is reused
 *
 * Walks the nodes in order. A tensor gets a block when it is first needed; the
 * block is free again when its last reader (through views too) is done, unless
 * the tensor is an input or an output. A node whose operation can work in place
 * takes over the block of a source that nobody else reads any more. When all
 * lifetimes are known the blocks are placed (block_layout.h). Each tensor lies
 * in one of several pools (one per buffer); this layer does not know the memory
 * of a pool.
 */
#ifndef GG_ALLOC_GRAPH_LAYOUT_H
#define GG_ALLOC_GRAPH_LAYOUT_H

#include "base/mem.h"
#include "graph/cgraph.h"

/* What to lay out. Callbacks are pure. */
struct gg_alloc_layout_in {
    const struct gguf_graph *graph;
    unsigned n_pools;
    const uint64_t *align; /* of each pool, powers of two */
    const int *node_pool;  /* for each node, or NULL: 0 */
    const int *leaf_pool;
    /* bytes that t needs in a pool */
    uint64_t (*size)(void *user, unsigned pool, const struct gguf_tensor *t);
    /* whether t (never a view) is to be laid out: it has no memory yet */
    bool (*ours)(void *user, const struct gguf_tensor *t);
    void *user;
    uint64_t hash; /* gg_alloc_layout_hash() of the rest */
};

/* Of the graph's structure: operations, sources, views, flags, pools; not its
 * sizes. */
uint64_t gg_alloc_layout_hash(const struct gg_alloc_layout_in *in);

/* Where one tensor lies. */
struct gg_alloc_place {
    uint64_t off, size; /* of its block in the pool; size is the block's */
    int32_t pool;       /* -1: a view, or memory of its own */
    int32_t inplace;    /* source whose block it took, or -1 */
};

struct gg_alloc_layout {
    const struct gguf_allocator *allocator;
    struct gg_alloc_place *places; /* n_nodes, then n_leaves */
    bool is_made;
    size_t n_nodes, n_leaves;
    size_t cap;      /* places that there is memory for */
    uint64_t *total; /* bytes of each pool */
    unsigned n_pools;
    uint64_t hash; /* of the graph that was laid out */
};

/* Nothing laid out yet. GGUF_E_NOMEM. */
enum gguf_status gg_alloc_layout_init(struct gg_alloc_layout *l,
                                      const struct gguf_allocator *a,
                                      unsigned n_pools,
                                      struct gguf_error *err);
void gg_alloc_layout_fini(struct gg_alloc_layout *l);

/* Lay out in->graph. After a failure l is empty. GGUF_E_NOMEM,
 * GGUF_E_OVERFLOW. */
enum gguf_status gg_alloc_layout_make(struct gg_alloc_layout *l,
                                      const struct gg_alloc_layout_in *in,
                                      struct gguf_error *err);

/* Whether l serves in->graph too: same structure, no tensor larger than its
 * block, what was done in place still can be. */
bool gg_alloc_layout_fits(const struct gg_alloc_layout *l,
                          const struct gg_alloc_layout_in *in);

#endif
