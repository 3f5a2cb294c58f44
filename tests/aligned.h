/* SPDX-License-Identifier: MIT */
/* aligned.h - memory at a multiple of 64 bytes, for panels of products
 *
 * Windows has no aligned_alloc(), whose memory free() could take.
 */
#ifndef TESTS_ALIGNED_H
#define TESTS_ALIGNED_H

#include <stddef.h>
#include <stdlib.h>
#if defined(_WIN32)
#include <malloc.h>
#endif

/* Allocate size bytes, rounded up to a multiple of 64. Free them with
 * aligned_free(). NULL: out of memory. */
static inline void *aligned_new(size_t size)
{
    const size_t whole = (size + 63) / 64 * 64;
#if defined(_WIN32)
    return _aligned_malloc(whole, 64);
#else
    return aligned_alloc(64, whole);
#endif
}

static inline void aligned_free(void *p)
{
#if defined(_WIN32)
    _aligned_free(p);
#else
    free(p);
#endif
}

#endif
