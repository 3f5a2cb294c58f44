/* SPDX-License-Identifier: MIT */
/* block_layout.h - offsets for blocks with known lifetimes
 *
 * The pass over a graph (graph_layout.c) finds the first and last step of each
 * block. No placement is smaller than the peak: the largest sum of blocks that
 * live at one step. Several ways are tried until one reaches the peak, and the
 * smallest result is used:
 *
 *   1. best fit in the order of time (bestfit.h), at the start or at the end of
 *      gaps. If blocks lie on other blocks, this is the only way;
 *   2. greedy by size (Pisarchyk and Lee, arXiv 2001.03288, section 4): the
 *      largest block first, each in the smallest gap between placed blocks that
 *      live at the same time;
 *   3. greedy in other orders: the block that ended highest comes first, or two
 *      blocks change places, for a number of rounds that depends on the number
 *      of blocks.
 */
#ifndef GG_ALLOC_BLOCK_LAYOUT_H
#define GG_ALLOC_BLOCK_LAYOUT_H

#include "base/error.h"
#include "base/mem.h"

struct gg_alloc_block {
    uint64_t size; /* bytes */
    uint64_t off;  /* result: bytes from the start of the buffer */
    int32_t first; /* first step that uses the block */
    int32_t last;  /* last step that uses the block */
    int32_t on;    /* index of a block of at least this size that ends one step
                      before first: this block must lie at its start.
                      GG_BLOCK_ANY: anywhere */
    int32_t next; /* index of the block that lies on this one; GG_BLOCK_ANY: no
                      block does */
};
enum { GG_BLOCK_ANY = -1 };

/* Place blocks.
 *
 * blocks    n blocks in the order of their first step; off is set here.
 * n_steps   Number of steps; steps count from 0.
 * align     Alignment of offsets in bytes, a power of two.
 * a         Source of scratch memory.
 * total     Receives the end of the highest block in bytes.
 *
 * GGUF_E_NOMEM, GGUF_E_OVERFLOW. */
enum gguf_status gg_alloc_blocks_place(struct gg_alloc_block *blocks, size_t n,
                                       size_t n_steps, uint64_t align,
                                       const struct gguf_allocator *a,
                                       uint64_t *total,
                                       struct gguf_error *err);

#endif
