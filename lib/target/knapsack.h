/* SPDX-License-Identifier: MIT */
/* knapsack.h - choose one option of each group: least cost within a size
 *
 * The multiple-choice knapsack problem: each group has options with a size and
 * a cost. Exactly one option of each group is chosen; the sizes together stay
 * within a limit, and the sum of the costs is minimized.
 *
 *  1. Options that are beaten in size and cost by another of their group are
 *     dropped.
 *  2. The linear relaxation is solved: from the smallest options along each
 *     group's lower convex hull, always by the step that saves most per byte
 *     (Sinha and Zoltners, Operations Research 27(3), 1979). The first step
 *     that does not fit gives the price of a byte, lambda, and with it a lower
 *     bound for the cost of every solution.
 *  3. The remaining space is filled: by later steps, then by single options, as
 *     long as one fits and saves.
 *  4. The result is repaired exactly. With lambda, each option has a reduced
 *     cost: its distance from the best of its group when bytes are paid for. A
 *     better solution has reduced costs that sum to less than the gap. Options
 *     above the gap are dropped, which usually fixes all but a few groups. The
 *     rest is searched by dynamic programming over undominated partial
 *     solutions (after Pisinger, European Journal of Operational Research
 *     83(2), 1995). If these become too many, the best are kept: then the
 *     result may not be optimal, and the bound limits its distance from the
 *     optimum.
 *
 * The result depends on the numbers and their order alone.
 */
#ifndef GG_TARGET_KNAPSACK_H
#define GG_TARGET_KNAPSACK_H

#include "base/mem.h"

#include <stdbool.h>

struct gg_knapsack_option {
    uint64_t size;
    double cost;  /* finite, not negative */
    uint32_t tag; /* caller's value */
};

struct gg_knapsack_group {
    struct gg_knapsack_option *options; /* sorted, and reduced to the
                                         * undominated ones, by the solver */
    size_t n;
    size_t chosen; /* result: index of the chosen option among the remaining
                    * ones */
};

struct gg_knapsack {
    uint64_t size; /* size of the choice */
    double cost;
    double bound; /* lower bound of all costs; equals cost if exact */
    bool exact;
};

/* Solve the problem. max_states bounds the partial solutions kept in all steps
 * together (0: 4 million, 32 MiB). One step never keeps more than 65536 (2.5
 * MiB for each option of a group). Sizes must sum to less than 2^63.
 * GGUF_E_LIMIT: the smallest options do not fit; the message has both sizes.
 * GGUF_E_NOMEM. */
enum gguf_status gg_knapsack_solve(struct gg_knapsack_group *groups, size_t n,
                                   uint64_t limit, size_t max_states,
                                   const struct gguf_allocator *a,
                                   struct gg_knapsack *out,
                                   struct gguf_error *err);

#endif
