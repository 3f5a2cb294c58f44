/* SPDX-License-Identifier: MIT */
/* gradient.h - gradients of the results of a graph
 *
 * gguf_gradients_build() appends to a graph the nodes that compute the gradient
 * of its results by some of its tensors: by weights, inputs or the results of
 * other nodes. It applies the chain rule from the last node to the first
 * (reverse mode; Griewank and Walther, Evaluating Derivatives, chapter 3). Each
 * operation has a function that builds its vector-Jacobian product.
 *
 * The results' own gradients, the seeds, are inputs that the program sets: 1
 * for the gradient of a single number, or the gradient of any function of the
 * results, such as softmax - one-hot for the cross entropy of logits.
 *
 *     gguf_graph_add(g, logits);
 *     struct gguf_tensor *seed = gguf_tensor_add_flags(
 *         gguf_tensor_create_like(ctx, logits), GGUF_TENSOR_INPUT);
 *     struct gguf_gradients_params p = GGUF_GRADIENTS_PARAMS_INIT;
 *     p.n_results = 1, p.results = &logits, p.seeds = &seed;
 *     p.n_wanted = 1, p.wanted = &norm_weight;
 *     st = gguf_gradients_build(ctx, g, &p, &gradient, &err);
 *
 * The results of the forward nodes stay the same. A graph allocator keeps the
 * memory of each forward result until the last backward node that reads it.
 * Sums have a fixed order: gradients do not depend on the number of threads.
 *
 * Threads: as the graph.
 */
#ifndef GGUF_GRADIENT_H
#define GGUF_GRADIENT_H

#include <gguf/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results of a graph, and tensors whose gradients are wanted. */
struct gguf_gradients_params {
    size_t struct_size;

    /* Number of results, 1 or more. */
    size_t n_results;

    /* n_results nodes of the graph. */
    struct gguf_tensor *const *results;

    /* Gradient of each result: F32, in the shape of the result. It must not
     * depend on a node that depends on a wanted tensor. */
    struct gguf_tensor *const *seeds;

    /* Number of tensors whose gradients are wanted. */
    size_t n_wanted;

    /* n_wanted nodes or leaves of the graph. */
    struct gguf_tensor *const *wanted;
};
#define GGUF_GRADIENTS_PARAMS_INIT GGUF_INIT(struct gguf_gradients_params)

/* Most tensors that gguf_gradients_build() creates for one node of the graph.
 */
enum { GGUF_GRADIENTS_MAX_TENSORS = 48 };

/* Append the nodes that compute gradients to a graph.
 *
 * ctx         Context of the new tensors. For each node of the graph it needs
 *             room for at most GGUF_GRADIENTS_MAX_TENSORS tensors. The usual
 *             number is 8.
 * graph       The graph. It needs room for the same number of nodes.
 * params      Results, seeds and wanted tensors.
 * gradients   Receives params->n_wanted tensors: the gradient of each wanted
 *             tensor, F32, contiguous, of its shape, marked
 *             GGUF_TENSOR_OUTPUT. NULL for a tensor that no result depends on.
 *             A gradient may be a seed itself, and two tensors may have the
 *             same gradient.
 *
 * GGUF_OK             The graph has all gradients.
 * GGUF_E_INVALID      The number of results is 0, a result or wanted tensor is
 *                     not in the graph, the graph is a view of another, or a
 *                     pointer is NULL.
 * GGUF_E_SHAPE        A seed does not have the shape of its result.
 * GGUF_E_TYPE         A seed is not F32.
 * GGUF_E_UNSUPPORTED  An operation on the way has no vector-Jacobian product:
 *                     the one that gguf_gradients_missing() finds. Nothing is
 *                     appended.
 * GGUF_E_FULL         The context or the graph has too little room.
 * GGUF_E_NOMEM        Out of memory.
 *
 * Otherwise the first failure that is stored in ctx. After a failure all
 * gradients are NULL.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_gradients_build(struct gguf_ctx *ctx, struct gguf_graph *graph,
                     const struct gguf_gradients_params *params,
                     struct gguf_tensor **gradients,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* Find a node through which gradients cannot be computed.
 *
 * graph     The graph.
 * params    Results and wanted tensors. Seeds are not read.
 * missing   Receives the first node, in the order of the graph, between a
 *           wanted tensor and a result whose operation has no vector-Jacobian
 *           product by the source on the way. NULL: all gradients can be
 *           computed.
 *
 * GGUF_OK          *missing is set.
 * GGUF_E_INVALID   The number of results is 0, a result or wanted tensor is not
 *                  in the graph, or a pointer is NULL.
 * GGUF_E_NOMEM     Out of memory.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_gradients_missing(const struct gguf_graph *graph,
                       const struct gguf_gradients_params *params,
                       const struct gguf_tensor **missing,
                       struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
