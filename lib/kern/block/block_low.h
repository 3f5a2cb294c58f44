/* SPDX-License-Identifier: MIT */
/* block_low.h - layouts of types with one or two bits a code (block_view.h) */
#ifndef GG_KERN_BLOCK_BLOCK_LOW_H
#define GG_KERN_BLOCK_BLOCK_LOW_H

#include "kern/block/block_view.h"

/* Pairs as in Q2_K (block_k.h), minus one. */
BLOCK_256(tq2_0)
{
    const FLOAT d = emit_d(to, take_half(r, AT(tq2_0, d)));
    VI v[PARTS], q[PARTS];
    for (size_t half = 0; half < 2; half++) {
        take_32(r, AT(tq2_0, qs) + 32 * half, v);
        GG_UNROLL
        for (size_t k = 0; k < 4; k++) {
            pairs_of(q, v, 2 * k);
            emit_run(to, q, 4 * half + k, 1, d);
        }
    }
}

/* A bit is d or -d. */
BLOCK(q1_0)
{
    const FLOAT d = take_half(r, AT(q1_0, d));
    struct bytes b;
    take_bytes(r, AT(q1_0, qs), &b);
    for (size_t j = 0; j < 4; j++)
        emit_signs(to, i + j, word_at(&b, 4 * j), d);
}

/* A byte has four consecutive codes of two bits, minus one. Each of four copies
 * of it keeps two bits, in place in a nibble, and a table gives their level. */
BLOCK(q2_0)
{
    static const int8_t bits[16] = { 0, 1, 2, 3, 1, 0, 0, 0,
                                     2, 0, 0, 0, 3, 0, 0, 0 };
    const VI levels = levels_of(bits, bias_of(to) - 1);
    const FLOAT d = take_half(r, AT(q2_0, d));
    struct bytes b;
    take_bytes(r, AT(q2_0, qs), &b);
    for (size_t j = 0; j < 2; j++) {
        VI q[PARTS];
        each_4(q, &b, 8 * j);
        GG_UNROLL
        for (int k = 0; k < PARTS; k++)
            q[k] = vi_or(vi_and(q[k], vi_words(0x00000c03)),
                         vi_and(vi_srl(q[k], 4), vi_words(0x0c030000)));
        look_up(q, levels);
        emit_own(to, q, i + j, bias_of(to), d);
    }
}

#endif
