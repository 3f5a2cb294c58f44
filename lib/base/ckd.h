/* SPDX-License-Identifier: MIT */
/* ckd.h - checked arithmetic on sizes from files
 *
 * The functions return true if the result did not fit, like those of C23
 * <stdckdint.h>. Sizes and offsets are at most INT64_MAX
 * (gg_ckd_exceeds_cap()), so that the sum of two checked sizes fits in 64 bits
 * and off_t can hold each.
 */
#ifndef GG_BASE_CKD_H
#define GG_BASE_CKD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool gg_ckd_mul(uint64_t *r, uint64_t a, uint64_t b)
{
#if defined(__GNUC__)
    return __builtin_mul_overflow(a, b, r);
#else
    *r = a * b;
    return a && *r / a != b;
#endif
}

static inline bool gg_ckd_add(uint64_t *r, uint64_t a, uint64_t b)
{
#if defined(__GNUC__)
    return __builtin_add_overflow(a, b, r);
#else
    *r = a + b;
    return *r < a;
#endif
}

/* Round n up to a multiple of align, a power of two. */
static inline bool gg_ckd_align(uint64_t *r, uint64_t n, uint64_t align)
{
    if (gg_ckd_add(r, n, align - 1))
        return true;
    *r &= ~(align - 1);
    return false;
}

/* Is n above INT64_MAX? */
static inline bool gg_ckd_exceeds_cap(uint64_t n)
{
    return n > (uint64_t)INT64_MAX;
}

/* Bytes of an array of n items of size bytes in memory. */
static inline bool gg_ckd_array(size_t *r, uint64_t n, size_t size)
{
    uint64_t bytes;
    if (gg_ckd_mul(&bytes, n, size) || bytes > PTRDIFF_MAX)
        return true;
    *r = (size_t)bytes;
    return false;
}

#endif
