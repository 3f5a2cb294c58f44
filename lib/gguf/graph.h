/* SPDX-License-Identifier: MIT */
/* graph.h - which tensors to compute, in which order
 *
 * A graph is built forward from results: sources first, depth first, each
 * tensor once. Tensors that have no operation and are not parameters are
 * leaves, all others nodes; each node stands after its sources. A graph lies
 * in a context and dies with it; it refers to tensors and owns none.
 *
 *     struct gguf_graph *g = gguf_graph_create(ctx, 2048);
 *     struct gguf_tensor *y = gguf_op_add(ctx, gguf_op_matmul(ctx, w, x), b);
 *     gguf_tensor_add_flags(y, GGUF_TENSOR_OUTPUT);
 *     st = gguf_graph_finish(ctx, g, y, &err);
 *
 * One thread at a time; readers may run concurrently.
 */
#ifndef GGUF_GRAPH_H
#define GGUF_GRAPH_H

#include <gguf/op.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_graph;

/* Bytes that a graph of that capacity takes in a context. Since: 0.1 */
GGUF_API size_t gguf_graph_overhead(size_t capacity);

/* An empty graph with room for capacity nodes and as many leaves. NULL with
 * a sticky GGUF_E_FULL (arena) or GGUF_E_INVALID (capacity of 0 or above
 * 2^28). Since: 0.1 */
GGUF_API struct gguf_graph *gguf_graph_create(struct gguf_ctx *ctx,
                                              size_t capacity);

/* Append t and all that it depends on, each tensor once. Nothing happens if t
 * or graph is NULL. Sticky GGUF_E_FULL when there are more than capacity nodes
 * or leaves. Since: 0.1 */
GGUF_API void gguf_graph_add(struct gguf_graph *graph, struct gguf_tensor *t);

/* Append result (NULL: nothing) and return the first failure of ctx: the one
 * check that a builder needs. graph may be NULL after a failure. Since: 0.1 */
GGUF_API enum gguf_status
gguf_graph_finish(struct gguf_ctx *ctx, struct gguf_graph *graph,
                  struct gguf_tensor *result,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Forget nodes and leaves. Since: 0.1 */
GGUF_API void gguf_graph_clear(struct gguf_graph *graph);

/* A number that changes whenever graph is added to or cleared, and that
 * differs from those of all graphs that lay at this address in this context
 * before, also across resets. Code that remembers a graph by its address
 * compares it. 0 after its context was reset. Since: 0.1 */
GGUF_API uint64_t gguf_graph_generation(const struct gguf_graph *graph);

/* Nodes that it has room for; nodes and leaves in it. Since: 0.1 */
GGUF_API size_t gguf_graph_capacity(const struct gguf_graph *graph);
GGUF_API size_t gguf_graph_n_nodes(const struct gguf_graph *graph);
GGUF_API size_t gguf_graph_n_leaves(const struct gguf_graph *graph);
/* i < n. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_graph_node(const struct gguf_graph *graph,
                                             size_t i);
GGUF_API struct gguf_tensor *gguf_graph_leaf(const struct gguf_graph *graph,
                                             size_t i);
/* A node or leaf by name, or NULL. A walk. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_graph_find(const struct gguf_graph *graph,
                                             const char *name);
/* Whether t is a node or leaf. Since: 0.1 */
GGUF_API bool gguf_graph_has(const struct gguf_graph *graph,
                             const struct gguf_tensor *t);

/* Nodes begin to end - 1 of graph as a graph of its own that shares graph's
 * memory. Nothing may be added to it, and it is invalid when graph changes. It
 * has no leaves. NULL with a sticky failure. Since: 0.1 */
GGUF_API struct gguf_graph *gguf_graph_view(struct gguf_ctx *ctx,
                                            const struct gguf_graph *graph,
                                            size_t begin, size_t end);

/* The same nodes and leaves in a new graph of the same capacity; the tensors
 * are shared. NULL with a sticky failure. Since: 0.1 */
GGUF_API struct gguf_graph *gguf_graph_copy(struct gguf_ctx *ctx,
                                            const struct gguf_graph *graph);

/* Receives text, piece by piece, not NUL-terminated. Not 0 stops. */
typedef int gguf_write_fn(void *user, const char *text, size_t size);

/* A line per node and leaf: number, operation, result, sources. File text is
 * escaped. part (letters and digits, or NULL) names a graph that is one of
 * several. write is required. GGUF_E_CANCELLED if write stopped,
 * GGUF_E_INVALID if it is NULL. Since: 0.1 */
GGUF_API enum gguf_status
gguf_graph_dump(const struct gguf_graph *graph, const char *part,
                gguf_write_fn *write, void *user,
                struct gguf_error *err) GGUF_MUST_CHECK;
/* The same for Graphviz: a digraph, or of a part a cluster with its name, which
 * the caller writes into a digraph. write is required. Since: 0.1 */
GGUF_API enum gguf_status
gguf_graph_dump_dot(const struct gguf_graph *graph, const char *part,
                    gguf_write_fn *write, void *user,
                    struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
