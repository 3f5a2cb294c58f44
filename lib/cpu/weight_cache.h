/* SPDX-License-Identifier: MIT */
/* weight_cache.h - packed weights that are kept
 *
 * Wide products multiply panels, which are packed of the weights each time
 * (matmul.h). With memory to spare the panels of a weight are packed by the
 * first product that needs them, and kept for those that follow, in the order
 * in which weights are first met, as long as there is room under a limit; what
 * does not fit is packed each time as before. Results have the same bits.
 *
 * Panels are found by the weight's place, layout and type, and by the age of
 * its buffer (backend/buffer_version.h), which changes with the data: panels of
 * older data are not found, and are freed.
 */
#ifndef GG_CPU_WEIGHT_CACHE_H
#define GG_CPU_WEIGHT_CACHE_H

#include "cpu/matmul.h"
#include "gguf/graph.h"
#include "gguf/memory.h"

/* Of a tensor: n for each of its matrices, one matrix after the other. */
struct gg_cpu_panels {
    struct gg_cpu_gemm_packed first;
    size_t n, size; /* panels of a matrix, and bytes of one */
};

/* Those of matrix i; p NULL: none. */
static inline struct gg_cpu_gemm_packed
gg_cpu_panels_matrix(const struct gg_cpu_panels *p, int64_t i)
{
    if (!p)
        return (struct gg_cpu_gemm_packed){ 0 };
    const size_t first = (size_t)i * p->n;
    return (struct gg_cpu_gemm_packed){ p->first.at + first * p->size,
                                        p->first.ready + first };
}

/* A product as the driver of products is asked for it; of several, the one with
 * most columns. False: t has another form. */
typedef bool gg_cpu_product_fn(const struct gguf_tensor *t,
                               const struct gg_kern *kern,
                               struct gg_cpu_gemm_args *a);

struct gg_cpu_panels_entry;
struct gg_cpu_weight_cache {
    const struct gguf_allocator *allocator;
    uint64_t limit, used; /* bytes; limit 0: nothing is kept. Used: once all
                             that has a place has memory */
    struct gg_cpu_panels_entry **entries;
    size_t n, room, last; /* found last: the next is mostly after it */
};

void gg_cpu_weight_cache_init(struct gg_cpu_weight_cache *s,
                              const struct gguf_allocator *a, uint64_t limit);
void gg_cpu_weight_cache_fini(struct gg_cpu_weight_cache *s);

/* Free what was made of weights that are no longer there. */
void gg_cpu_weight_cache_sweep(struct gg_cpu_weight_cache *s);

/* Panels of the weights that t, a product, multiplies, kept from now on if
 * there is room; NULL: none. Stays until the next sweep. */
const struct gg_cpu_panels *
gg_cpu_weight_cache_find(struct gg_cpu_weight_cache *s,
                         const struct gguf_tensor *t,
                         const struct gg_kern *kern);

/* Bytes of the store's allocator that it will have when graph, whose results
 * may have no memory, is computed beside those that were before: there is a
 * place for its weights from now on. */
uint64_t gg_cpu_weight_cache_estimate(struct gg_cpu_weight_cache *s,
                                      const struct gguf_graph *graph,
                                      const struct gg_kern *kern);

#endif
