/* SPDX-License-Identifier: MIT */
/* double_eval.h - graphs evaluated in double precision, by definitions
 *
 * The evaluator uses none of the library's kernels: each operation is a loop
 * over elements, written from the comment of its builder. Every tensor except
 * views gets an array of doubles, which its views share.
 * Leaves take their values from the tensors' data.
 */
#ifndef TESTS_GRAPH_DOUBLE_EVAL_H
#define TESTS_GRAPH_DOUBLE_EVAL_H

#include "gguf/graph.h"

#include <stdbool.h>

/* Give all tensors of a graph arrays, and the leaves their values. All tensors
 * must have data, or be results. The arrays are kept in gguf_tensor.extra.
 * false: out of memory, or a type without floats. */
bool deval_begin(struct gguf_graph *g);
void deval_end(struct gguf_graph *g);

/* Compute all nodes. Prints the name of an operation that is unknown and
 * returns false. */
bool deval_run(struct gguf_graph *g);

/* Move of a node: h times `by` is added to its elements, in order, once it is
 * computed. */
struct deval_move {
    const struct gguf_tensor *node;
    const double *by;
};

/* Compute all nodes with n moves. */
bool deval_run_moved(struct gguf_graph *g, const struct deval_move *moves,
                     size_t n, double h);

/* Element i of t, in the order of its elements. */
double *deval_at(const struct gguf_tensor *t, int64_t i);

#endif
