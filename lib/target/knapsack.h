/* SPDX-License-Identifier: MIT */
/* knapsack.h - one option of each group: least cost within a size
 *
 * The multiple-choice knapsack problem. Each group has options with a size and
 * a cost; exactly one of each group is chosen, the sizes together stay within
 * a limit, and the sum of the costs is to be small.
 *
 * 1. Options that another one of their group beats in both are dropped.
 * 2. The linear relaxation is solved: from the smallest options along each
 *    group's lower convex hull, always the step that saves most per byte
 *    (Sinha and Zoltners, Operations Research 27(3), 1979). The first step
 *    that does not fit gives the price of a byte, lambda, and by it a lower
 *    bound of every solution's cost.
 * 3. That solution is filled up: steps after the first one, then single
 *    options, as long as one fits and saves.
 * 4. Exact repair: with lambda each option has a reduced cost, what it is
 *    above the best of its group when bytes are paid for. A solution better
 *    than what was found has reduced costs that sum to less than the gap, so
 *    options above it are dropped, which mostly settles all but a few groups,
 *    and the rest is searched by dynamic programming over partial solutions of
 *    which none beats another (Pisinger, European Journal of Operational
 *    Research 83(2), 1995, has the idea). Where these become too many, the
 *    best are kept: then the result need not be optimal, and the bound says
 *    how far from the optimum it can be.
 *
 * The result depends on the numbers and their order only.
 */
#ifndef GG_TARGET_KNAPSACK_H
#define GG_TARGET_KNAPSACK_H

#include "base/mem.h"

#include <stdbool.h>

struct gg_knapsack_option {
    uint64_t size;
    double cost;  /* finite, not negative */
    uint32_t tag; /* the caller's */
};

struct gg_knapsack_group {
    struct gg_knapsack_option *options; /* sorted, and fewer, afterwards */
    size_t n;
    size_t chosen; /* set: of those that are left, by growing size */
};

struct gg_knapsack {
    uint64_t size; /* of what was chosen */
    double cost;
    double bound; /* no solution costs less; cost itself if exact */
    bool exact;
};

/* Choose. max_states bounds the partial solutions that are kept, all steps
 * together; 0: 4 million (32 MiB); of one step there are never more than 65536
 * (2.5 MiB for each option of a group). Sizes sum to less than 2^63.
 * GGUF_E_LIMIT: the smallest options do not fit (the message has both sizes).
 * GGUF_E_NOMEM.
 */
enum gguf_status gg_knapsack_solve(struct gg_knapsack_group *groups, size_t n,
                                   uint64_t limit, size_t max_states,
                                   const struct gguf_allocator *a,
                                   struct gg_knapsack *out,
                                   struct gguf_error *err);

#endif
