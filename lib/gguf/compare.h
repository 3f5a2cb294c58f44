/* SPDX-License-Identifier: MIT */
/* compare.h - a graph on another backend, and two backends node by node
 *
 * Which operation makes a backend's results differ? Copy the graph to both,
 * compute one node after the other on each, and look at each pair of results.
 *
 *     struct gguf_compare_params p = GGUF_COMPARE_PARAMS_INIT;
 *     p.fn = look;
 *     st = gguf_compare_backends(cpu, other, graph, &p, &counts, &err);
 *
 * One thread at a time.
 */
#ifndef GGUF_COMPARE_H
#define GGUF_COMPARE_H

#include <gguf/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- a graph with its data on another backend ----------------------------- */

struct gguf_clone;

struct gguf_clone_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    bool share; /* leave weights (GGUF_USAGE_WEIGHTS) where they lie if the
                   backend can reach them; they must outlive the clone */
    bool reuse; /* nodes share memory as when they run in order: it is reused
                   when their readers are done, and has no data yet. Else each
                   node has memory of its own, with the data that it has in
                   graph */
};
#define GGUF_CLONE_PARAMS_INIT                                                \
    {                                                                         \
        sizeof(struct gguf_clone_params), NULL, true, false                   \
    }

/* The same nodes and leaves, in memory of backend, with the data of those that
 * have memory: leaves keep their strides, views their roots. params NULL: the
 * defaults. GGUF_E_NOMEM, GGUF_E_LIMIT, GGUF_E_INVALID (graph is a view of
 * another). Since: 0.1 */
GGUF_API enum gguf_status
gguf_clone_create(struct gguf_clone **out, struct gguf_backend *backend,
                  const struct gguf_graph *graph,
                  const struct gguf_clone_params *params,
                  struct gguf_error *err) GGUF_MUST_CHECK;
/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_clone_destroy(struct gguf_clone *clone);

/* Node and leaf i of it stand for node and leaf i of the original. Owned by
 * the clone. Since: 0.1 */
GGUF_API struct gguf_graph *gguf_clone_graph(const struct gguf_clone *clone);

/* --- two results ---------------------------------------------------------- */

struct gguf_difference {
    size_t struct_size; /* the caller's: as much is filled in */
    uint64_t n;         /* elements */
    uint64_t n_differ;  /* that are not equal; NaN equals NaN */
    double max_abs;     /* of a - b; infinite where only one is finite */
    double error;       /* sqrt(sum (a - b)^2 / sum a^2); 0 if all are equal,
                          infinite if max_abs is or a is 0 */
};

#define GGUF_DIFFERENCE_INIT GGUF_INIT(struct gguf_difference)

/* Of two tensors of one shape and of types that decode, wherever they lie;
 * integers are compared as integers. GGUF_E_INVALID (out), GGUF_E_SHAPE,
 * GGUF_E_UNSUPPORTED (type), GGUF_E_NOMEM. allocator NULL: malloc.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_tensor_compare(const struct gguf_tensor *a, const struct gguf_tensor *b,
                    const struct gguf_allocator *allocator,
                    struct gguf_difference *out,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* --- two backends --------------------------------------------------------- */

/* Node i of graph, computed by both: the results, of one layout. Valid during
 * the call. Not 0 stops with GGUF_E_CANCELLED. */
typedef int gguf_compare_fn(void *user, size_t i,
                            const struct gguf_tensor *node,
                            const struct gguf_tensor *a,
                            const struct gguf_tensor *b);

struct gguf_compare_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    bool chained;        /* each backend goes on with its own results, so that
                     differences add up; else b goes on with a's, and a
                     difference comes from the node itself */
    gguf_compare_fn *fn; /* or NULL */
    void *user;
};
#define GGUF_COMPARE_PARAMS_INIT GGUF_INIT(struct gguf_compare_params)

struct gguf_compare_counts {
    size_t struct_size;        /* the caller's: as much is filled in */
    size_t n_both;             /* nodes that both backends computed */
    size_t n_only_a, n_only_b; /* nodes that one had to compute for both */
};

#define GGUF_COMPARE_COUNTS_INIT GGUF_INIT(struct gguf_compare_counts)

/* Compute graph, whose inputs are set, on clones of it; graph and its data
 * stay as they are. A node that only one backend supports is computed by that
 * one, for both. counts may be NULL. GGUF_E_OP (a node that neither computes),
 * failures of cloning and computing. Since: 0.1 */
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
