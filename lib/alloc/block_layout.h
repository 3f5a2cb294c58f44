/* SPDX-License-Identifier: MIT */
/* block_layout.h - blocks with known lifetimes to offsets
 *
 * The walk over a graph (graph_layout.c) says when each block is needed first
 * and last. No placement can be smaller than the most that lives at one step;
 * ways of placing them are tried until one is as small as that, and the lowest
 * total is kept:
 *
 *   in time's order, best fit (bestfit.h), as if they came one by one; where
 *   blocks lie on others at the begin or at the end of gaps, and nothing else;
 *   in the order of size, the largest first, each into the smallest gap
 *   between those that are placed already and live at the same time
 *   (greedy by size: Pisarchyk and Lee, arXiv 2001.03288, section 4);
 *   the same in other orders, with the block that ended highest first or two
 *   blocks exchanged, as often as the number of blocks leaves time for.
 */
#ifndef GG_ALLOC_BLOCK_LAYOUT_H
#define GG_ALLOC_BLOCK_LAYOUT_H

#include "base/error.h"
#include "base/mem.h"

struct gg_alloc_block {
    uint64_t size;       /* bytes */
    uint64_t off;        /* set by gg_alloc_blocks_place */
    int32_t first, last; /* steps at which it is in use, both included */
    int32_t on;          /* number of a block, not smaller, that ends at the
                            step before first and where this one must lie, or
                            GG_BLOCK_ANY */
    int32_t next;        /* of the one that lies on this; likewise */
};
enum { GG_BLOCK_ANY = -1 };

/* Place n blocks, given in the order of their first step; steps are 0 to
 * n_steps - 1. Offsets are multiples of align, *total is the end of the
 * highest. GGUF_E_NOMEM, GGUF_E_OVERFLOW. */
enum gguf_status gg_alloc_blocks_place(struct gg_alloc_block *blocks, size_t n,
                                       size_t n_steps, uint64_t align,
                                       const struct gguf_allocator *a,
                                       uint64_t *total,
                                       struct gguf_error *err);

#endif
