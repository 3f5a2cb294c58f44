/* SPDX-License-Identifier: MIT */
/* sort.h - sort items by their indices
 *
 * A bottom-up merge sort: stable, without a bad case, and with the same result
 * on every system. Unlike qsort() it passes a pointer to the comparison. It is
 * inline so that the comparison is inline, too.
 */
#ifndef GG_BASE_SORT_H
#define GG_BASE_SORT_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Does item i of user belong after item k? */
typedef bool gg_sort_after_fn(const void *user, int32_t i, int32_t k);

/* Sort n items. order becomes the indices 0 to n - 1 in sorted order; items
 * that are equal keep their order. tmp is room for n more. */
static GG_ALWAYS_INLINE void gg_sort(int32_t *order, int32_t *tmp, size_t n,
                                     gg_sort_after_fn *after, const void *user)
{
    for (size_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    for (size_t w = 1; w < n; w *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * w) {
            size_t mid = GG_MIN(lo + w, n), hi = GG_MIN(lo + 2 * w, n);
            size_t i = lo, j = mid, k = lo;
            while (i < mid || j < hi)
                tmp[k++] =
                    j == hi || (i < mid && !after(user, order[i], order[j]))
                        ? order[i++]
                        : order[j++];
        }
        memcpy(order, tmp, n * sizeof *order);
    }
}

/* Sort n numbers. No jump depends on them: several times as fast for numbers in
 * random order. tmp is room for n more. */
static inline void gg_sort_u64(uint64_t *x, uint64_t *tmp, size_t n)
{
    for (size_t w = 1; w < n; w *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * w) {
            const size_t mid = GG_MIN(lo + w, n), hi = GG_MIN(lo + 2 * w, n);
            size_t i = lo, j = mid, k = lo;
            for (; i < mid && j < hi; k++) {
                const size_t second = x[j] < x[i];
                tmp[k] = second ? x[j] : x[i];
                j += second;
                i += 1 - second;
            }
            memcpy(tmp + k, x + i, (mid - i) * sizeof *x);
            memcpy(tmp + k + (mid - i), x + j, (hi - j) * sizeof *x);
        }
        memcpy(x, tmp, n * sizeof *x);
    }
}

#endif
