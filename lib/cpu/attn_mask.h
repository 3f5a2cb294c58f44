/* SPDX-License-Identifier: MIT */
/* attn_mask.h - which keys an attention's mask opens, block by block
 *
 * A mask is a number for each token and key, mostly 0 or -infinity, and the
 * same for many heads. It is read once for all of them: of each token and
 * block of keys it is noted from where to where there is an open key, and
 * whether there is anything to add.
 */
#ifndef GG_CPU_ATTN_MASK_H
#define GG_CPU_ATTN_MASK_H

#include "cpu/attn.h"

#include <stdbool.h>

enum {
    GG_ATTN_KEYS = 128, /* keys in a block */
    GG_ATTN_UNIT = 16   /* keys of which one is open, or none: a multiple of
                         * the vectors' lengths, so that which lane a key is in
                         * does not depend on those left out before it */
};

/* Units begin to end of a block have open keys (equal: it is closed). plain:
 * every number of the block is 0. */
struct gg_attn_span {
    uint8_t begin, end;
    bool plain;
};

struct gg_attn_mask {
    const struct gg_attn_args *a;
    size_t n_key_blocks;
    size_t n_heads, n_seqs;    /* that masks are different for */
    struct gg_attn_span *span; /* [n_seqs][n_heads][n_tok][n_key_blocks] */
};

/* span has room for n_spans elements. */
void gg_attn_mask_init(struct gg_attn_mask *m, const struct gg_attn_args *a,
                       struct gg_attn_span *span);
size_t gg_attn_mask_n_spans(const struct gg_attn_mask *m);

/* Member ith of nth fills in its share; buf has room for GG_ATTN_KEYS
 * floats. */
void gg_attn_mask_scan(const struct gg_attn_mask *m, unsigned ith,
                       unsigned nth, float *buf);

/* Of a block of keys, what n_tok tokens from tok on see together, of the heads
 * from head0 on that share the keys of head_kv. All of it without a mask. */
struct gg_attn_span gg_attn_mask_span(const struct gg_attn_mask *m, size_t seq,
                                      size_t head_kv, size_t head0, size_t tok,
                                      size_t n_tok, size_t key_block);

/* The numbers for a token and head, n keys from first on: where they lie, or
 * in buf. */
const float *gg_attn_mask_row(const struct gg_attn_args *a, size_t seq,
                              size_t head_kv, size_t head, size_t tok,
                              size_t first, size_t n, float *buf);

#endif
