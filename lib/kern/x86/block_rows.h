/* SPDX-License-Identifier: MIT */
/* block_rows.h - rows of blocks, which rows_256.h and rows_512.h make lanes of
 * */
#ifndef GG_KERN_X86_BLOCK_ROWS_H
#define GG_KERN_X86_BLOCK_ROWS_H

#include "base/compiler.h"
#include "dtype/block.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* Where their blocks are. */
struct rows {
    const uint8_t *at;
    size_t stride;
    uintptr_t *ahead; /* where take() asks for lines, and moves on; or NULL */
};

/* Memory is read as fast as it can be where lines are asked for one after the
 * other, whatever order their bytes are needed in. */
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
