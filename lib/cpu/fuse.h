/* SPDX-License-Identifier: MIT */
/* fuse.h - nodes that go over memory together
 *
 * Norms, gates, sums with biases and residuals: an operation on rows reads what
 * the one before it wrote, which by then has left the caches near to the
 * processor, for it was a whole batch. Where nodes that follow each other read
 * or write the same rows they become one step of a plan: each thread takes some
 * rows at a time through all of them, and waits for the others once.
 *
 * Nothing else changes. The functions that compute are the same, in the same
 * order for each row, so results are, bit for bit; every node is written where
 * it lies, so whoever looks at one, after the graph or after a part of it,
 * finds it.
 *
 * Which operations can be in a step is said by their rows: those of which the
 * CPU backend shares out whole rows (by_rows, compute_table.h), and of sources
 * of the same shape those that may be overwritten in place (INPLACE,
 * graph/op_list.h): of these a row of the result needs the same row alone.
 */
#ifndef GG_CPU_FUSE_H
#define GG_CPU_FUSE_H

#include "cpu/graph_run.h"

/* What rows of all nodes take: they stay in a cache of the second level, with
 * what norms and biases have. */
enum { GG_CPU_FUSE_BYTES = 128 << 10 };

/* Set n of steps[0] to how many of the n steps, each of one node so far, go
 * with it; and n_rows and some, for so many bytes at a time. Nodes have memory,
 * which stays where it is. */
void gg_cpu_fuse(struct gg_cpu_step *steps, size_t n, size_t bytes);

#endif
