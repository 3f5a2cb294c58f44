/* SPDX-License-Identifier: MIT */
/* block_rows.h - rows of blocks, one per lane (rows_256.h, rows_512.h) */
#ifndef GG_KERN_SIMD_BLOCK_ROWS_H
#define GG_KERN_SIMD_BLOCK_ROWS_H

#include "base/compiler.h"
#include "dtype/block.h"

#include "kern/simd/m256.h"
#include <stddef.h>
#include <stdint.h>

/* Position of the blocks. */
struct rows {
    const uint8_t *at;
    size_t stride;
    /* Next address to prefetch, which take() advances; NULL: no prefetch. */
    uintptr_t *ahead;
};

/* Memory is fastest if lines are prefetched one after the other, whatever order
 * their bytes are needed in. */
static GG_ALWAYS_INLINE void prefetch_lines(const struct rows *r, size_t size)
{
    if (!r->ahead)
        return;
    GG_UNROLL
    for (size_t off = 0; off < size; off += 64)
        GG_PREFETCH((const void *)(*r->ahead + off));
    *r->ahead += size;
}

static GG_ALWAYS_INLINE __m128i load_16(const struct rows *r, size_t off,
                                        size_t row)
{
    return _mm_loadu_si128((const void *)(r->at + row * r->stride + off));
}

#endif
