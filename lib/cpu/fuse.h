/* SPDX-License-Identifier: MIT */
/* fuse.h - computing operations on the same rows together
 *
 * Norms, gates, biases and residuals: each operation on rows reads the result
 * of the one before, which has left the near caches by then, since it was a
 * whole batch. Nodes that follow each other and read or write the same rows are
 * fused to one step of a plan: each thread takes some rows at a time through
 * all of them, and the threads meet at one barrier.
 *
 * Results keep their bits: the same functions compute each row in the same
 * order. Every node is written to its own memory, so it can be read during and
 * after the graph.
 *
 * Operations can be fused if their rows of the tables say so: by_rows
 * (compute_table.h), and INPLACE (graph/op_list.h) for each source of the
 * result's shape. A row of such a result needs only the same row of that
 * source.
 */
#ifndef GG_CPU_FUSE_H
#define GG_CPU_FUSE_H

#include "cpu/graph_run.h"

/* Bytes of the rows that a thread takes through all nodes at a time: they stay
 * in the second-level cache, beside the weights of norms and the biases. */
enum { GG_CPU_FUSE_BYTES = 128 << 10 };

/* Fuse the first of n steps with all that can follow it: set n, n_rows and some
 * of steps[0].
 *
 * steps   n steps of one node each, whose nodes have memory.
 * bytes   Bytes of rows to compute at a time. */
void gg_cpu_fuse(struct gg_cpu_step *steps, size_t n, size_t bytes);

#endif
