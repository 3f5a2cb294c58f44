/* SPDX-License-Identifier: MIT */
/* compare.h - copies of graphs on other backends, and differences of results
 *
 * To find the operation that makes a backend's results differ: copy a graph to
 * two backends, compute one node after another on each, and compare each pair
 * of results. gguf_compare_backends() does all of it.
 *
 *     static bool print(void *user, size_t i, const struct gguf_tensor *node,
 *                       const struct gguf_tensor *a,
 *                       const struct gguf_tensor *b);
 *     ...
 *     struct gguf_compare_params p = GGUF_COMPARE_PARAMS_INIT;
 *     p.node.fn = print;
 *     st = gguf_compare_backends(cpu, other, graph, &p, &counts, &err);
 *
 * Threads: one at a time.
 */
#ifndef GGUF_COMPARE_H
#define GGUF_COMPARE_H

#include <gguf/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- clones --------------------------------------------------------------- */

/* A copy of a graph, with its data, in a backend's memory. */
struct gguf_clone;

struct gguf_clone_params {
    size_t struct_size;

    /* Source of host memory. NULL: malloc. It must outlive the clone. */
    const struct gguf_allocator *allocator;

    /* Copy weights (buffers with GGUF_USAGE_WEIGHTS) as well. If false, weights
     * that the backend reaches stay where they lie, and must outlive the
     * clone. */
    bool copy_weights;

    /* Reuse the memory of nodes after their last reader, as when they are
     * computed in order; nodes have no data at first. If false, each node has
     * memory of its own, with a copy of its data. */
    bool reuse;
};
#define GGUF_CLONE_PARAMS_INIT GGUF_INIT(struct gguf_clone_params)

/* Create a clone of a graph.
 *
 * out       Receives the clone. NULL after a failure.
 * backend   Backend whose memory to use. It must outlive the clone.
 * graph     Graph to copy, not a view of another graph. Tensors with memory are
 *           copied with their data. Leaves keep their strides, and views their
 *           roots.
 * params    How to copy. NULL: the defaults.
 *
 * Free *out with gguf_clone_destroy().
 *
 * GGUF_OK          *out is ready.
 * GGUF_E_INVALID   graph is a view.
 * GGUF_E_NOMEM     The device or the process has too little memory.
 * GGUF_E_LIMIT     A tensor is larger than a buffer can be.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_clone_create(struct gguf_clone **out, struct gguf_backend *backend,
                  const struct gguf_graph *graph,
                  const struct gguf_clone_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a clone, its graph and its memory. NULL is ignored. Since: 0.1 */
GGUF_API void gguf_clone_destroy(struct gguf_clone *clone);

/* Graph of a clone. Its node i and leaf i are copies of the original's node i
 * and leaf i. It lives as long as the clone. Since: 0.1 */
GGUF_API struct gguf_graph *gguf_clone_graph(const struct gguf_clone *clone);

/* --- differences of two results ------------------------------------------- */

struct gguf_difference {
    size_t struct_size; /* bytes that the caller has room for */
    uint64_t n;         /* number of elements */
    uint64_t n_differ;  /* number of elements that differ; NaN equals NaN */
    double max_abs;     /* largest |a - b|; infinite if one of a pair is not
                           finite */
    double error;       /* sqrt(sum (a - b)^2 / sum a^2): 0 if all elements are
                           equal, infinite if max_abs is or all of a is 0 */
};
#define GGUF_DIFFERENCE_INIT GGUF_INIT(struct gguf_difference)

/* Compare the elements of two tensors.
 *
 * a           The reference, in any buffer.
 * b           A tensor of the same shape, in any buffer. Both types decode, or
 *             are integers, which are compared as integers.
 * allocator   Source of scratch memory. NULL: malloc.
 * out         Receives the differences. Set out->struct_size before, by
 *             GGUF_DIFFERENCE_INIT.
 *
 * GGUF_OK              *out is filled in.
 * GGUF_E_SHAPE         The shapes differ.
 * GGUF_E_UNSUPPORTED   A type does not decode, or rows are not contiguous.
 * GGUF_E_INVALID       A tensor has no memory, or out has a wrong size.
 * GGUF_E_NOMEM         Not enough memory for a row.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_tensor_compare(const struct gguf_tensor *a, const struct gguf_tensor *b,
                    const struct gguf_allocator *allocator,
                    struct gguf_difference *out,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* --- two backends, node by node ------------------------------------------- */

/* Look at two results of one node.
 *
 * user   Pointer of the callback.
 * i      Index of the node in the graph.
 * node   The node of the original graph.
 * a      Result of the first backend. Valid during the call.
 * b      Result of the second backend, of the same layout. Valid during the
 *        call.
 *
 * Returns true to stop with GGUF_E_CANCELLED. */
typedef bool gguf_compare_fn(void *user, size_t i,
                             const struct gguf_tensor *node,
                             const struct gguf_tensor *a,
                             const struct gguf_tensor *b);

/* Consumer of pairs of results. Later versions add no members to this struct.
 */
struct gguf_compare_callback {
    gguf_compare_fn *fn; /* NULL: look at nothing */
    void *user;          /* passed to fn */
};

struct gguf_compare_params {
    size_t struct_size;

    /* Source of host memory. NULL: malloc. It must outlive the call. */
    const struct gguf_allocator *allocator;

    /* Let each backend continue with its own results, so that differences add
     * up. If false, the second backend continues with the results of the first:
     * each difference then comes from the node itself. */
    bool chained;

    /* Receives the results of each node that both backends compute. */
    struct gguf_compare_callback node;
};
#define GGUF_COMPARE_PARAMS_INIT GGUF_INIT(struct gguf_compare_params)

struct gguf_compare_counts {
    size_t struct_size; /* bytes that the caller has room for */
    size_t n_both;      /* nodes that both backends computed */
    size_t n_only_a;    /* nodes that the first had to compute for both */
    size_t n_only_b;    /* nodes that the second had to compute for both */
};
#define GGUF_COMPARE_COUNTS_INIT GGUF_INIT(struct gguf_compare_counts)

/* Compute a graph on two backends and compare the results of each node.
 *
 * a, b     The backends.
 * graph    Graph whose inputs are set. It and its data stay as they are: the
 *          backends compute clones.
 * params   Callback and options. NULL: the defaults.
 * counts   Receives the numbers of nodes. Set counts->struct_size before, by
 *          GGUF_COMPARE_COUNTS_INIT. NULL: not needed.
 *
 * A node that only one backend supports is computed by that one, and its result
 * is copied to the other.
 *
 * GGUF_OK            Every node was computed.
 * GGUF_E_OP          Neither backend can compute a node.
 * GGUF_E_CANCELLED   The callback stopped the comparison.
 *
 * Also the failures of gguf_clone_create() and gguf_backend_compute().
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_compare_backends(struct gguf_backend *a, struct gguf_backend *b,
                      const struct gguf_graph *graph,
                      const struct gguf_compare_params *params,
                      struct gguf_compare_counts *counts,
                      struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
