/* SPDX-License-Identifier: MIT */
/* graph.h - graphs: tensors in the order of their computation
 *
 * A graph is a list of nodes and a list of leaves. Leaves are tensors without
 * an operation, such as inputs and weights. Nodes are results of operations and
 * tensors with GGUF_TENSOR_PARAM; each stands after its sources.
 *
 * A graph is built from results: adding a result adds every tensor that it
 * depends on, sources first and each tensor once.
 *
 *     struct gguf_graph *g = gguf_graph_create(ctx, 2048);
 *     struct gguf_tensor *y = gguf_op_add(ctx, gguf_op_matmul(ctx, w, x), b);
 *     st = gguf_graph_finish(ctx, g,
 *                            gguf_tensor_add_flags(y, GGUF_TENSOR_OUTPUT),
 *                            &err);
 *
 * A graph lies in a context and ends with it. It does not own its tensors,
 * which must outlive it. Backends compute it (backend.h), one or several
 * together (sched.h).
 *
 * Threads: one at a time; functions with const pointers alone may run in
 * several threads at once.
 */
#ifndef GGUF_GRAPH_H
#define GGUF_GRAPH_H

#include <gguf/op.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_graph;

/* Bytes that a graph with room for capacity nodes takes in a context. Any
 * thread. Since: 0.1 */
GGUF_API size_t gguf_graph_overhead(size_t capacity);

/* Create an empty graph.
 *
 * ctx        Context of the graph.
 * capacity   Most nodes, and most leaves, that the graph can hold: 1 to 2^28.
 *
 * Returns the graph, or NULL after a sticky failure:
 *
 * GGUF_E_FULL      The context has too little room.
 * GGUF_E_INVALID   capacity is out of range.
 *
 * Since: 0.1 */
GGUF_API struct gguf_graph *gguf_graph_create(struct gguf_ctx *ctx,
                                              size_t capacity);

/* Append a result and all tensors that it depends on.
 *
 * graph    A graph. NULL is ignored.
 * t        The result. NULL is ignored. Tensors that the graph has already are
 *          not added again.
 *
 * Sticky failures, in the context of the graph:
 *
 * GGUF_E_FULL      The graph has no room for another node or leaf.
 * GGUF_E_INVALID   graph is a view of another graph.
 *
 * Since: 0.1 */
GGUF_API void gguf_graph_add(struct gguf_graph *graph, struct gguf_tensor *t);

/* Append a result and return the first failure of the whole building.
 *
 * ctx      Context in which the tensors were built.
 * graph    The graph. It may be NULL if its creation failed.
 * result   The result to append, as gguf_graph_add() does. NULL: none.
 *
 * GGUF_OK          Every tensor and the graph were built.
 * GGUF_E_INVALID   ctx or graph is NULL, and no failure is stored.
 *
 * Otherwise the first failure that is stored in ctx, or in the context of the
 * graph.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_graph_finish(struct gguf_ctx *ctx, struct gguf_graph *graph,
                  struct gguf_tensor *result,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Remove all nodes and leaves from a graph. Since: 0.1 */
GGUF_API void gguf_graph_clear(struct gguf_graph *graph);

/* Number that changes whenever a graph is added to or cleared.
 *
 * Code that remembers a graph by its address compares this number to learn
 * whether it is still the same graph. No two graphs that ever lay at one
 * address in a context have the same number. It is 0 once the context was
 * reset, until the memory is used again.
 *
 * Since: 0.1 */
GGUF_API uint64_t gguf_graph_generation(const struct gguf_graph *graph);

/* Number of nodes that the graph has room for. Since: 0.1 */
GGUF_API size_t gguf_graph_capacity(const struct gguf_graph *graph);

/* Number of nodes in the graph. Since: 0.1 */
GGUF_API size_t gguf_graph_n_nodes(const struct gguf_graph *graph);

/* Number of leaves in the graph. Since: 0.1 */
GGUF_API size_t gguf_graph_n_leaves(const struct gguf_graph *graph);

/* Node i, which must be below gguf_graph_n_nodes(). Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_graph_node(const struct gguf_graph *graph,
                                             size_t i);

/* Leaf i, which must be below gguf_graph_n_leaves(). Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_graph_leaf(const struct gguf_graph *graph,
                                             size_t i);

/* First node of that name, else the first leaf of that name, or NULL. A linear
 * search. Since: 0.1 */
GGUF_API struct gguf_tensor *gguf_graph_find(const struct gguf_graph *graph,
                                             const char *name);

/* True if t is a node or a leaf of the graph. Since: 0.1 */
GGUF_API bool gguf_graph_has(const struct gguf_graph *graph,
                             const struct gguf_tensor *t);

/* Create a graph of some of another graph's nodes.
 *
 * ctx      Context of the view.
 * graph    The graph to look into. The view shares its memory: it must outlive
 *          the view, and the view is invalid once the graph is changed.
 * begin    First node of the view.
 * end      Node after the last of the view.
 *
 * A view has no leaves, and nothing can be added to it.
 *
 * Returns the view, or NULL after a sticky failure:
 *
 * GGUF_E_INVALID   begin > end, or end is above the number of nodes.
 * GGUF_E_FULL      The context has too little room.
 *
 * Since: 0.1 */
GGUF_API struct gguf_graph *gguf_graph_view(struct gguf_ctx *ctx,
                                            const struct gguf_graph *graph,
                                            size_t begin, size_t end);

/* Create a graph with the nodes, leaves and capacity of another. The tensors
 * themselves are shared, not copied. Returns the graph, or NULL as
 * gguf_graph_create() does. Since: 0.1 */
GGUF_API struct gguf_graph *gguf_graph_copy(struct gguf_ctx *ctx,
                                            const struct gguf_graph *graph);

/* --- dumps ---------------------------------------------------------------- */

/* Receive a piece of text.
 *
 * user     The callback's pointer.
 * text     size bytes, without a NUL.
 * size     Bytes of text.
 *
 * Returns true to stop the dump. */
typedef bool gguf_write_fn(void *user, const char *text, size_t size);

/* Consumer of text. Later versions add no members to this struct. */
struct gguf_write_callback {
    gguf_write_fn *fn; /* required */
    void *user;        /* passed to fn */
};

/* Write a graph as text, one line for each leaf and node: its number,
 * operation, result and sources.
 *
 * part     Name of the graph if it is one of several: letters and digits. NULL:
 *          none.
 * write    Receives the text. Names of tensors are escaped.
 *
 * GGUF_OK            The whole graph was written.
 * GGUF_E_CANCELLED   write stopped the dump.
 * GGUF_E_INVALID     write has no function.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_graph_dump(const struct gguf_graph *graph, const char *part,
                struct gguf_write_callback write,
                struct gguf_error *err) GGUF_MUST_CHECK;

/* Write a graph in the language of Graphviz.
 *
 * part     NULL: a whole digraph. Otherwise the name of a cluster, of letters
 *          and digits: the program writes the digraph around it.
 * write    Receives the text. Names of tensors are escaped.
 *
 * GGUF_OK            The whole graph was written.
 * GGUF_E_CANCELLED   write stopped the dump.
 * GGUF_E_INVALID     write has no function.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_graph_dump_dot(const struct gguf_graph *graph, const char *part,
                    struct gguf_write_callback write,
                    struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
