/* SPDX-License-Identifier: MIT */
/* block_q32.h - layouts of 32-element blocks (block_view.h) */
#ifndef GG_KERN_BLOCK_BLOCK_Q32_H
#define GG_KERN_BLOCK_BLOCK_Q32_H

#include "kern/block/block_view.h"

BLOCK(q4_0)
{
    VI q[PARTS];
    take_nibbles(r, AT(q4_0, qs), q);
    emit_own(to, q, i, 8, take_half(r, AT(q4_0, d)));
}

BLOCK(q4_1)
{
    VI q[PARTS];
    take_nibbles(r, AT(q4_1, qs), q);
    emit_own_min(to, q, i, take_half(r, AT(q4_1, d)),
                 take_half(r, AT(q4_1, m)));
}

/* qh: bit j is the fifth bit of element j. */
BLOCK(q5_0)
{
    struct bytes b;
    VI q[PARTS];
    take_bytes(r, 0, &b);
    take_nibbles(r, AT(q5_0, qs), q);
    or_where(q, word_at(&b, AT(q5_0, qh)), vi_bytes(16));
    emit_own(to, q, i, 16, half_at(&b, AT(q5_0, d)));
}

BLOCK(q5_1)
{
    struct bytes b;
    VI q[PARTS];
    take_bytes(r, 0, &b);
    take_nibbles(r, AT(q5_1, qs), q);
    or_where(q, word_at(&b, AT(q5_1, qh)), vi_bytes(16));
    emit_own_min(to, q, i, half_at(&b, AT(q5_1, d)), half_at(&b, AT(q5_1, m)));
}

BLOCK(q8_0)
{
    VI q[PARTS];
    take_32(r, AT(q8_0, qs), q);
    emit_own(to, q, i, 0, take_half(r, AT(q8_0, d)));
}

BLOCK(q8_1)
{
    VI q[PARTS];
    take_32(r, AT(q8_1, qs), q);
    emit_own(to, q, i, 0, take_half(r, AT(q8_1, d)));
}

/* qh: the upper two bits of elements k, k + 8, k + 16 and k + 24 are bits 0, 4,
 * 2 and 6 of byte k and the bits after them. */
BLOCK(q6_0)
{
    struct bytes b;
    VI q[PARTS], h[PARTS];
    take_bytes(r, 0, &b);
    take_nibbles(r, AT(q6_0, qs), q);
    each_8(h, &b, AT(q6_0, qh));
    or_bits(q, h, 0, 4, 3);
    emit_own(to, q, i, 32, half_at(&b, AT(q6_0, d)));
}

BLOCK(iq4_nl)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    VI q[PARTS];
    take_nibbles(r, AT(iq4_nl, qs), q);
    look_up(q, levels_of(level, bias_of(to)));
    emit_own(to, q, i, bias_of(to), take_half(r, AT(iq4_nl, d)));
}

/* The scale is half of 2^(e - 127), as in gg_kern_e8m0_half(). The second term
 * is the larger one for e = 0 and 1, whose results are subnormal. */
BLOCK(mxfp4)
{
    static const int8_t level[16] = GG_FP4_LEVELS;
    const WORD e = take_byte(r, AT(mxfp4, e));
    const WORD d =
        w_max(w_sll(w_sub(e, w_all(1)), 23), w_sll(w_add(e, w_all(1)), 21));
    VI q[PARTS];
    take_nibbles(r, AT(mxfp4, qs), q);
    look_up(q, levels_of(level, bias_of(to)));
    emit_own(to, q, i, bias_of(to), w_float(d));
}

#endif
