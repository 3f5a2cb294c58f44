/* SPDX-License-Identifier: MIT */
/* claim.h - dividing items among threads that need not be equally fast */
#ifndef GG_CPU_CLAIM_H
#define GG_CPU_CLAIM_H

#include "base/compiler.h"

#include <stdatomic.h>
#include <stddef.h>

/* Claim the next items of a team's work. Claims get smaller towards the end, so
 * that slow threads finish with the others.
 *
 * next     counter of claimed items, 0 before the first claim
 * total    number of all items
 * parts    a claim takes 1 / parts of the items that are left, rounded up
 * least    smallest number of items of a claim, except the last
 * most     largest number of items of a claim
 * period   no claim reaches beyond a multiple of it
 * at       receives the first item
 *
 * Returns the number of items; 0: none are left. Orders no other access. */
static inline size_t gg_cpu_claim(_Atomic size_t *next, size_t total,
                                  size_t parts, size_t least, size_t most,
                                  size_t period, size_t *at)
{
    size_t n;
    *at = atomic_load_explicit(next, memory_order_relaxed);
    do {
        if (*at >= total)
            return 0;
        const size_t left = total - *at;
        n = GG_MAX(left / parts + (left % parts != 0), least);
        n = GG_MIN(GG_MIN(n, most), GG_MIN(left, period - *at % period));
    } while (!atomic_compare_exchange_weak_explicit(
        next, at, *at + n, memory_order_relaxed, memory_order_relaxed));
    return n;
}

#endif
