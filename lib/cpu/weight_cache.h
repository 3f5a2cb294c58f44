/* SPDX-License-Identifier: MIT */
/* weight_cache.h - cache of packed weights
 *
 * Products of many columns read weights in panels, which are packed for each
 * product (matmul.h). With a cache, the first product of a weight packs its
 * panels and later products use them. Weights get room in the order in which
 * they are first used, up to a limit; panels of other weights are packed each
 * time. Results have the same bits.
 *
 * The key of an entry is the weight's address, layout, type and the version of
 * its buffer (backend/buffer_version.h). The version changes with the data:
 * entries of older data are not found any more, and are freed.
 */
#ifndef GG_CPU_WEIGHT_CACHE_H
#define GG_CPU_WEIGHT_CACHE_H

#include "cpu/matmul.h"
#include "gguf/graph.h"
#include "gguf/memory.h"

/* Panels of a tensor, matrix after matrix. */
struct gg_cpu_panels {
    struct gg_cpu_gemm_packed first; /* panels of the first matrix */
    size_t n;                        /* panels of a matrix */
    size_t size;                     /* bytes of a panel */
};

/* Panels of matrix i. With p NULL: no panels. */
static inline struct gg_cpu_gemm_packed
gg_cpu_panels_matrix(const struct gg_cpu_panels *p, int64_t i)
{
    if (!p)
        return (struct gg_cpu_gemm_packed){ 0 };
    const size_t first = (size_t)i * p->n;
    return (struct gg_cpu_gemm_packed){ p->first.at + first * p->size,
                                        p->first.ready + first };
}

/* Describe the product of t in *a; of several products, the one with the most
 * columns. Returns false if t computes no product with panels. */
typedef bool gg_cpu_product_fn(const struct gguf_tensor *t,
                               const struct gg_kern *kern,
                               struct gg_cpu_gemm_args *a);

struct gg_cpu_panels_entry;

/* The cache. */
struct gg_cpu_weight_cache {
    const struct gguf_allocator *allocator;
    uint64_t limit; /* most bytes; 0: no cache */
    uint64_t used; /* bytes of all entries, also of those without memory yet */
    struct gg_cpu_panels_entry **entries;
    size_t n, room; /* entries, and room for entries */
    size_t last;    /* entry that was found last: the search starts after it */
};

/* Set up an empty cache of at most limit bytes. */
void gg_cpu_weight_cache_init(struct gg_cpu_weight_cache *s,
                              const struct gguf_allocator *a, uint64_t limit);
void gg_cpu_weight_cache_fini(struct gg_cpu_weight_cache *s);

/* Free the entries of weights that have changed or are gone. */
void gg_cpu_weight_cache_sweep(struct gg_cpu_weight_cache *s);

/* Panels of the weights that t multiplies, with a new entry if there is room
 * for one. NULL: not cached. Valid until the next sweep. */
const struct gg_cpu_panels *
gg_cpu_weight_cache_find(struct gg_cpu_weight_cache *s,
                         const struct gguf_tensor *t,
                         const struct gg_kern *kern);

/* Bytes that the cache will have in use once a graph is computed. The results
 * of the graph may have no memory. Makes entries for its weights. */
uint64_t gg_cpu_weight_cache_estimate(struct gg_cpu_weight_cache *s,
                                      const struct gguf_graph *graph,
                                      const struct gg_kern *kern);

#endif
