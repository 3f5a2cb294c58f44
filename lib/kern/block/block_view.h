/* SPDX-License-Identifier: MIT */
/* block_view.h - interface between block layouts and vectors of any width
 *
 * block_q32.h, block_k.h and block_low.h describe the block of each tensor type
 * once: where its codes, scales and minima lie, and how a vector of codes is
 * made of its bytes. Decoders, panels, dot products and few-column products
 * all compile these descriptions. They differ in two things, which the
 * including file chooses before it includes a description:
 *
 *     view    the vectors that blocks are loaded into
 *                 x86/row_256.h    one row; a vector holds 32 codes
 *                 x86/rows_256.h   8 rows; a lane holds 4 codes of its row
 *                 x86/rows_512.h   16 rows likewise
 *     sink    what happens to codes and scales: the functions emit_...()
 *
 * To port the kernels to another processor, write a view; one_row.h is the
 * scalar half of one. tests/kern/check-view.c has a whole one of 128 bits.
 *
 * A view defines these, each for one row or for all rows that it loads:
 *
 *     VI, vi_...()        vector of bytes and its operations (x86/vi_256.h)
 *     PARTS               number of vectors that hold 32 codes of each row, a
 *                         byte each, in the order of elements
 *     WORD, w_...()       32 bits of each row; w_all(bits), w_and, w_or, w_srl,
 *                         w_sll, w_add, w_sub, and w_max, which is signed
 *     FLOAT               float of each row
 *     struct rows         position of the blocks
 *     struct bytes        16 bytes of each row
 *     struct subs, SUB    scales or minima of all sub-blocks of a block; of one
 *
 *     take_bytes(r, off, &b)     load the 16 bytes at off of the block
 *     take_32(r, off, v)         load 32 bytes
 *     take_nibbles(r, off, q)    load 16 bytes: the low nibbles, then the high
 *     take_byte(r, off)          load a byte as a WORD
 *     take_half(r, off)          load an f16 as a FLOAT
 *     word_at(&b, off)           WORD of 16 bytes; off is even
 *     half_at(&b, off)           FLOAT of the f16 there
 *     w_float(w)                 FLOAT whose bits are w
 *     or_where(q, w, value)      q |= value in code i if bit i of w is set
 *     each_4(q, &b, off)         repeat each of 8 bytes four times
 *     each_8(q, &b, off)         repeat 8 bytes four times, shifted right by 0,
 *                                4, 2 and 6 bits; upper bits are arbitrary
 *
 *     subs_u8(&s, d, w)          8 unsigned bytes of 2 WORDs
 *     subs_i8(&s, d, w, zero)    16 signed bytes of 4 WORDs, minus zero
 *     subs_low(&s, d, w)         16 low nibbles of 4 WORDs
 *     subs_high(&s, d, w)        16 high nibbles
 *     subs_6(&s, d, low, high)   8 nibbles with pairs of bits above, minus 32
 *     sub_u8(&s, j, b), sub_i8(), sub_low(), sub_high()
 *                                byte b of WORD j
 *     sub_6(&s, j)               number j
 *
 * d is the FLOAT that multiplies them; a view may multiply at once or leave it
 * to the sink.
 *
 * A sink has a type TO, a pointer to which is passed along, and defines these.
 * i counts runs of 32 codes from the first block that is read; q may be
 * written to. A weight is its code minus zero, the zero point, times a scale.
 *
 *     bias_of(to)                          added to each code minus zero, so
 *                                          that a table can include it
 *     take_pairs(to, q, v, at)             bits at and at + 1 of each byte
 *     d = emit_d(to, d)                    scale of the block, before SUBs
 *     emit_own(to, q, i, zero, d)          32 codes with a scale of their own
 *     emit_own_min(to, q, i, d, m)         the same plus m
 *     emit_signs(to, i, w, d)              d if the bit of w is set, else -d
 *     emit_run(to, q, i, zero, d)          32 codes with the scale of the block
 *     emit_sub(to, q, i, zero, s)          32 codes with sub-scale s
 *     emit_halves(to, q, i, zero, s, t)    s for the first 16, t for the rest
 *     emit_sub_min(to, q, i, s, dmin, m)   minus dmin times m
 *     emit_halves_min(to, q, i, s, t, dmin, m, n)
 *     emit_min(to, j, dmin, m)             minimum of sub-block j, once more,
 *                                          for sinks that collect them
 */
#ifndef GG_KERN_BLOCK_BLOCK_VIEW_H
#define GG_KERN_BLOCK_BLOCK_VIEW_H

#include "base/compiler.h"
#include "dtype/block.h"
#include "dtype/iq_code.h"

#include <stddef.h>

/* Define the description of a type, a function that reads one block: run i and
 * those after it, or all 256 codes. */
#define BLOCK(NAME)                                                           \
    static GG_ALWAYS_INLINE void block_##NAME(TO *to, const struct rows *r,   \
                                              size_t i)
#define BLOCK_256(NAME)                                                       \
    static GG_ALWAYS_INLINE void block_##NAME(TO *to, const struct rows *r)

/* Offset of a member of a block. */
#define AT(NAME, MEMBER) offsetof(struct gg_block_##NAME, MEMBER)

static GG_ALWAYS_INLINE void low_nibbles(VI q[PARTS], const VI v[PARTS])
{
    GG_UNROLL
    for (size_t k = 0; k < PARTS; k++)
        q[k] = vi_and(v[k], vi_bytes(15));
}

static GG_ALWAYS_INLINE void high_nibbles(VI q[PARTS], const VI v[PARTS])
{
    GG_UNROLL
    for (size_t k = 0; k < PARTS; k++)
        q[k] = vi_srl8(v[k], 4);
}

/* Extract bits at and at + 1 of each byte. */
static GG_ALWAYS_INLINE void pairs_of(VI q[PARTS], const VI v[PARTS],
                                      size_t at)
{
    GG_UNROLL
    for (size_t k = 0; k < PARTS; k++)
        q[k] = at < 6 ? vi_and(at ? vi_srl(v[k], at) : v[k], vi_bytes(3))
                      : vi_srl8(v[k], 6);
}

/* In each byte, copy the bits of mask from position `from' of h to position
 * `at' of q, where they are 0. */
static GG_ALWAYS_INLINE void or_bits(VI q[PARTS], const VI h[PARTS],
                                     size_t from, size_t at, int mask)
{
    GG_UNROLL
    for (size_t k = 0; k < PARTS; k++) {
        VI b = h[k];
        if (from < at)
            b = vi_sll(b, at - from);
        else if (from > at)
            b = vi_srl(b, from - at);
        q[k] = vi_put_bits(q[k], b, vi_bytes(mask << at));
    }
}

static GG_ALWAYS_INLINE void shift_down(VI h[PARTS], size_t n)
{
    GG_UNROLL
    for (size_t k = 0; k < PARTS; k++)
        h[k] = vi_srl(h[k], n);
}

/* Table of 16 levels, each plus bias. */
static GG_ALWAYS_INLINE VI levels_of(const int8_t level[16], int bias)
{
    return vi_add8(vi_sixteen(level), vi_bytes(bias));
}

static GG_ALWAYS_INLINE void look_up(VI q[PARTS], VI levels)
{
    GG_UNROLL
    for (size_t k = 0; k < PARTS; k++)
        q[k] = vi_lookup(levels, q[k]);
}

#endif
