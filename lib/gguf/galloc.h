/* SPDX-License-Identifier: MIT */
/* galloc.h - the graph allocator: memory for the nodes of a graph
 *
 * The allocator plans where each result of a graph lies in a buffer, so that
 * the memory of a result is reused after its last reader.
 *
 *     1  gguf_galloc_create()
 *     2  gguf_galloc_reserve()    optional: with the largest graph, so that
 *                                 later graphs need no more memory
 *     3  gguf_galloc_alloc()      places the tensors of a graph
 *     4  gguf_tensor_set()        inputs: the memory has undefined values
 *     5  gguf_backend_compute(), gguf_tensor_get(); then 3 again
 *     6  gguf_galloc_destroy()
 *
 * Rules of placement:
 *
 *   - Tensors that have memory, such as weights and caches, are left alone.
 *   - Outputs (GGUF_TENSOR_OUTPUT), and results that no node reads, keep their
 *     memory to the end of the graph. A view that no node reads keeps the
 *     memory of its root.
 *   - An input (GGUF_TENSOR_INPUT) keeps its memory to itself, so that a graph
 *     can be computed again. Other leaves keep theirs up to their last reader.
 *   - An operation that can work in place takes over the memory of a source if
 *     nothing else reads the source later.
 *
 * Threads: an allocator, and the graphs that it places, belong to one thread at
 * a time.
 */
#ifndef GGUF_GALLOC_H
#define GGUF_GALLOC_H

#include <gguf/buffer.h>
#include <gguf/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_galloc;

/* Create a graph allocator with one buffer.
 *
 * out         Receives the allocator. NULL after a failure.
 * allocator   Source of host memory. NULL: malloc. It must outlive *out.
 * buft        Type of the buffer. It must outlive *out.
 *
 * Free *out with gguf_galloc_destroy().
 *
 * GGUF_OK          *out is ready; its buffer has no memory yet.
 * GGUF_E_INVALID   buft is NULL.
 * GGUF_E_NOMEM     Not enough memory for the allocator.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status gguf_galloc_create(
    struct gguf_galloc **out, const struct gguf_allocator *allocator,
    const struct gguf_buft *buft, struct gguf_error *err) GGUF_MUST_CHECK;

/* Create a graph allocator with several buffers, for graphs that several
 * backends compute.
 *
 * out         Receives the allocator. NULL after a failure.
 * allocator   Source of host memory. NULL: malloc. It must outlive *out.
 * bufts       n_bufts types of buffer, which must outlive *out. Each gets a
 *             buffer; a type that occurs twice gets one.
 * n_bufts     Number of types, at least 1.
 *
 * Free *out with gguf_galloc_destroy().
 *
 * GGUF_OK          *out is ready; its buffers have no memory yet.
 * GGUF_E_INVALID   n_bufts is 0, or a type is NULL.
 * GGUF_E_NOMEM     Not enough memory for the allocator.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_galloc_create_n(struct gguf_galloc **out,
                     const struct gguf_allocator *allocator,
                     const struct gguf_buft *const *bufts, unsigned n_bufts,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Free an allocator and its buffers. Tensors in them must not be used any more.
 * NULL is ignored. Since: 0.1 */
GGUF_API void gguf_galloc_destroy(struct gguf_galloc *ga);

/* Plan a graph and make the buffers large enough for it. Its tensors are not
 * placed.
 *
 * graph   The largest graph that will come, or one of its shape.
 *
 * GGUF_OK          The buffers are large enough.
 * GGUF_E_NOMEM     A device or the process has too little memory.
 * GGUF_E_LIMIT     A buffer would be larger than its type allows.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_galloc_reserve(struct gguf_galloc *ga, const struct gguf_graph *graph,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Plan a graph over several buffers and make them large enough. Its tensors are
 * not placed.
 *
 * graph       The largest graph that will come, or one of its shape.
 * node_buft   Index of a buffer type for each node. NULL: all 0.
 * leaf_buft   Index of a buffer type for each leaf. NULL: all 0.
 *
 * gguf_galloc_alloc() uses the same indices for later graphs of the same
 * structure. It places graphs of another structure in the first buffer.
 *
 * GGUF_OK          The buffers are large enough.
 * GGUF_E_INVALID   An index is out of range.
 * GGUF_E_NOMEM     A device or the process has too little memory.
 * GGUF_E_LIMIT     A buffer would be larger than its type allows.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_galloc_reserve_n(struct gguf_galloc *ga, const struct gguf_graph *graph,
                      const int *node_buft, const int *leaf_buft,
                      struct gguf_error *err) GGUF_MUST_CHECK;

/* Place the tensors of a graph.
 *
 * graph   The graph. Its tensors' data and buffer members are set; the data is
 *         undefined.
 *
 * A graph that is like one of the last 24 planned ones (same operations and
 * sources, no tensor larger) is not planned again: that takes one pass over its
 * nodes. The buffers grow if the graph does not fit in them; tensors that were
 * placed earlier lose their memory then.
 *
 * GGUF_OK          Every tensor has memory.
 * GGUF_E_NOMEM     A device or the process has too little memory.
 * GGUF_E_LIMIT     A buffer would be larger than its type allows.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_galloc_alloc(struct gguf_galloc *ga, struct gguf_graph *graph,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Bytes of the buffer of type i. 0 if i is out of range, or an earlier type is
 * the same and has the buffer. Since: 0.1 */
GGUF_API size_t gguf_galloc_buffer_size(const struct gguf_galloc *ga,
                                        unsigned i);

/* Number of plans that were made so far: to find graphs that are planned again
 * and again. Since: 0.1 */
GGUF_API unsigned gguf_galloc_n_plans(const struct gguf_galloc *ga);

#ifdef __cplusplus
}
#endif
#endif
