/* SPDX-License-Identifier: MIT */
/* graph_layout.h - the memory plan of a graph: offsets for its tensors
 *
 * A pass over the nodes finds the lifetimes. A tensor needs a block from the
 * step that first writes it to its last reader (also through views); inputs and
 * outputs keep theirs to the end. A node that can work in place takes over the
 * block of a source that nothing else reads later. Then the blocks are placed
 * (block_layout.h). Each tensor belongs to one of several pools, one for each
 * buffer; this layer does not know the memory of a pool.
 */
#ifndef GG_ALLOC_GRAPH_LAYOUT_H
#define GG_ALLOC_GRAPH_LAYOUT_H

#include "base/mem.h"
#include "graph/cgraph.h"

/* Graph to plan. The functions must always give the same answers. */
struct gg_alloc_layout_in {
    const struct gguf_graph *graph;
    unsigned n_pools;
    const uint64_t *align; /* alignment of each pool in bytes, powers of two */
    const int *node_pool;  /* pool of each node; NULL: pool 0 */
    const int *leaf_pool;  /* pool of each leaf; NULL: pool 0 */
    /* Bytes that t takes in a pool. */
    uint64_t (*size)(void *user, unsigned pool, const struct gguf_tensor *t);
    /* Does t need memory? Not called for views. */
    bool (*ours)(void *user, const struct gguf_tensor *t);
    void *user;    /* passed to both */
    uint64_t hash; /* gg_alloc_layout_hash() of the other members */
};

/* Hash of the graph's structure: operations, sources, views, flags and pools,
 * but not sizes. */
uint64_t gg_alloc_layout_hash(const struct gg_alloc_layout_in *in);

/* Place of one tensor. */
struct gg_alloc_place {
    uint64_t off;    /* start of its block in the pool, bytes */
    uint64_t size;   /* bytes of the block */
    int32_t pool;    /* pool; -1: a view, or it has other memory */
    int32_t inplace; /* index of the source whose block it took over, or -1 */
};

/* Memory plan of a graph. */
struct gg_alloc_layout {
    const struct gguf_allocator *allocator;
    struct gg_alloc_place *places; /* one for each node, then each leaf */
    bool is_made;                  /* there is a plan */
    size_t n_nodes, n_leaves;      /* sizes of the planned graph */
    size_t cap;                    /* capacity of places */
    uint64_t *total;               /* bytes of each pool */
    unsigned n_pools;
    uint64_t hash; /* gg_alloc_layout_hash() of the planned graph */
};

/* Set up a layout without a plan. GGUF_E_NOMEM. */
enum gguf_status gg_alloc_layout_init(struct gg_alloc_layout *l,
                                      const struct gguf_allocator *a,
                                      unsigned n_pools,
                                      struct gguf_error *err);
void gg_alloc_layout_fini(struct gg_alloc_layout *l);

/* Plan in->graph. After a failure l has no plan. GGUF_E_NOMEM,
 * GGUF_E_OVERFLOW. */
enum gguf_status gg_alloc_layout_make(struct gg_alloc_layout *l,
                                      const struct gg_alloc_layout_in *in,
                                      struct gguf_error *err);

/* Is the plan valid for in->graph, too? The structure must be the same, no
 * tensor larger than its block, and operations in place still possible. */
bool gg_alloc_layout_fits(const struct gg_alloc_layout *l,
                          const struct gg_alloc_layout_in *in);

#endif
