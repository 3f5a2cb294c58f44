/* SPDX-License-Identifier: MIT */
/* linear.h - offsets one after the other */
#ifndef GG_ALLOC_LINEAR_H
#define GG_ALLOC_LINEAR_H

#include "base/ckd.h"

struct gg_linear {
    uint64_t align; /* power of two */
    uint64_t used;  /* bytes, a multiple of align */
};

/* size bytes at *off; false if the sum overflows, then nothing changes. */
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
