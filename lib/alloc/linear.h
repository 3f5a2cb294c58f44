/* SPDX-License-Identifier: MIT */
/* linear.h - a linear allocator of offsets */
#ifndef GG_ALLOC_LINEAR_H
#define GG_ALLOC_LINEAR_H

#include "base/ckd.h"

struct gg_linear {
    uint64_t align; /* alignment of offsets in bytes, a power of two */
    uint64_t used;  /* bytes in use, a multiple of align */
};

/* Allocate size bytes at *off. Returns false, and changes nothing, if the sum
 * overflows. */
static inline bool gg_linear_alloc(struct gg_linear *l, uint64_t size,
                                   uint64_t *off)
{
    uint64_t end;
    if (gg_ckd_add(&end, l->used, size) || gg_ckd_align(&end, end, l->align) ||
        gg_ckd_exceeds_cap(end))
        return false;
    *off = l->used;
    l->used = end;
    return true;
}

#endif
