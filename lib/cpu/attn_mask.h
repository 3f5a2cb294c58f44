/* SPDX-License-Identifier: MIT */
/* attn_mask.h - summary of an attention mask, block by block
 *
 * A mask has a number for each token and key, mostly 0 or -infinity, and is the
 * same for many heads. A first pass summarises it for each token and block of
 * keys: the range of open keys (not -infinity), and whether all numbers are 0.
 * Attention then skips closed keys, and reads the mask only where it adds
 * something.
 */
#ifndef GG_CPU_ATTN_MASK_H
#define GG_CPU_ATTN_MASK_H

#include "cpu/attn.h"

#include <stdbool.h>

enum {
    GG_ATTN_KEYS = 128, /* keys in a block */
    GG_ATTN_UNIT = 16   /* keys in a unit, which is skipped or computed as a
                         * whole: a multiple of all vector lengths, so that a
                         * key's lane does not depend on skipped units */
};

/* Summary of one token's mask over a block of keys. */
struct gg_attn_span {
    uint8_t begin, end; /* units with open keys; equal: all keys are closed */
    bool plain;         /* every number of the block is 0 */
};

/* Summary of a mask. */
struct gg_attn_mask {
    const struct gg_attn_args *a;
    size_t n_key_blocks;    /* blocks of keys */
    size_t n_heads, n_seqs; /* heads and sequences with masks of their own */
    struct gg_attn_span *span; /* [n_seqs][n_heads][n_tok][n_key_blocks] */
};

/* Set up m. span has room for gg_attn_mask_n_spans() elements; NULL: m only
 * serves to compute that number. */
void gg_attn_mask_init(struct gg_attn_mask *m, const struct gg_attn_args *a,
                       struct gg_attn_span *span);
/* Number of elements of span. */
size_t gg_attn_mask_n_spans(const struct gg_attn_mask *m);

/* Fill in the share of thread ith of nth. buf has room for GG_ATTN_KEYS
 * floats. */
void gg_attn_mask_scan(const struct gg_attn_mask *m, unsigned ith,
                       unsigned nth, float *buf);

/* Union of spans over n_tok tokens from tok on, and over the heads from head0
 * on that share key head head_kv. The whole block without a mask. */
struct gg_attn_span gg_attn_mask_span(const struct gg_attn_mask *m, size_t seq,
                                      size_t head_kv, size_t head0, size_t tok,
                                      size_t n_tok, size_t key_block);

/* Mask of a token and head, n keys from first on, as floats: in the mask
 * itself, or decoded into buf. */
const float *gg_attn_mask_row(const struct gg_attn_args *a, size_t seq,
                              size_t head_kv, size_t head, size_t tok,
                              size_t first, size_t n, float *buf);

#endif
