/* SPDX-License-Identifier: MIT */
/* lanes_blocks.h - sink of the views whose lanes are rows
 *
 * Connects the descriptions of kern/block with what multiplies or stores bytes
 * of several rows. The includer first includes rows_256.h or rows_512.h and
 * defines the type TO and the functions put_...() below. block_NAME(to, r) then
 * reads a block of each row.
 *
 * q[k] has the steps 4 k to 4 k + 3 of 32, or of 16. A byte is the integer of
 * its weight plus to->bias, which makes it unsigned. TO has the members
 *
 *     n                        steps to read
 *     bias                     a constant, as those that follow
 *     apart                    leave the pairs of bits of Q2_K where they are:
 *                              bytes are 1, 4, 16 and 64 times as large in the
 *                              quarters of each 128 steps
 *     min_first                put a minimum right before its steps
 *
 *     put_own(to, q, i, d)     the i-th 32 steps, with a scale of their own
 *     put_d(to, d)             the scale of the block, before its steps or, of
 *                              TQ1_0, after them
 *     put_sub(to, q, i, sub)   32 steps whose scale is sub times d
 *     put_half(to, q, i, sub)  the i-th 16 steps likewise
 *     put_run(to, q, i)        32 steps whose scale is d
 *     put_min(to, i, m)        minimum i, with the sign that it is added with
 */

#include "kern/block/block_view.h"

#define bias_of(to) ((to)->bias)

/* Codes less their zero point, plus the bias. */
static GG_ALWAYS_INLINE void add_bias(const TO *to, VI q[PARTS], int zero)
{
    if (to->bias == zero)
        return;
    GG_UNROLL
    for (size_t k = 0; k < PARTS; k++)
        q[k] = vi_add8(q[k], vi_bytes(to->bias - zero));
}

static GG_ALWAYS_INLINE VF emit_d(TO *to, VF d)
{
    put_d(to, d);
    return d;
}

static GG_ALWAYS_INLINE void emit_own(TO *to, VI q[PARTS], size_t i, int zero,
                                      VF d)
{
    add_bias(to, q, zero);
    put_own(to, q, i, d);
}

static GG_ALWAYS_INLINE void emit_own_min(TO *to, VI q[PARTS], size_t i, VF d,
                                          VF m)
{
    put_min(to, i, m);
    put_own(to, q, i, d);
}

static GG_ALWAYS_INLINE void emit_signs(TO *to, size_t i, VI bits, VF d)
{
    VI q[PARTS];
    GG_UNROLL
    for (size_t k = 0; k < PARTS; k++)
        q[k] = vi_zero();
    or_where(q, bits, vi_bytes(2));
    emit_own(to, q, i, 1, d);
}

static GG_ALWAYS_INLINE void emit_run(TO *to, VI q[PARTS], size_t i, int zero,
                                      VF d)
{
    (void)d;
    add_bias(to, q, zero);
    put_run(to, q, i);
}

static GG_ALWAYS_INLINE void emit_sub(TO *to, VI q[PARTS], size_t i, int zero,
                                      VI s)
{
    add_bias(to, q, zero);
    put_sub(to, q, i, s);
}

static GG_ALWAYS_INLINE void emit_halves(TO *to, VI q[PARTS], size_t i,
                                         int zero, VI s, VI t)
{
    add_bias(to, q, zero);
    put_half(to, q, 2 * i, s);
    put_half(to, q + PARTS / 2, 2 * i + 1, t);
}

static GG_ALWAYS_INLINE VF minimum_of(VF dmin, VI m)
{
    return vf_mul(vf_neg(dmin), vf_of(m));
}

static GG_ALWAYS_INLINE void emit_min(TO *to, size_t i, VF dmin, VI m)
{
    if (!to->min_first)
        put_min(to, i, minimum_of(dmin, m));
}

static GG_ALWAYS_INLINE void emit_sub_min(TO *to, VI q[PARTS], size_t i, VI s,
                                          VF dmin, VI m)
{
    if (to->min_first)
        put_min(to, i, minimum_of(dmin, m));
    put_sub(to, q, i, s);
}

static GG_ALWAYS_INLINE void emit_halves_min(TO *to, VI q[PARTS], size_t i,
                                             VI s, VI t, VF dmin, VI m, VI n)
{
    if (to->min_first)
        put_min(to, 2 * i, minimum_of(dmin, m));
    put_half(to, q, 2 * i, s);
    if (to->min_first)
        put_min(to, 2 * i + 1, minimum_of(dmin, n));
    put_half(to, q + PARTS / 2, 2 * i + 1, t);
}

/* Bits at and at + 1 of each byte, moved down unless to->apart. */
static GG_ALWAYS_INLINE void take_pairs(const TO *to, VI q[PARTS],
                                        const VI v[PARTS], size_t at)
{
    if (!to->apart) {
        pairs_of(q, v, at);
        return;
    }
    GG_UNROLL
    for (size_t k = 0; k < PARTS; k++)
        q[k] = vi_and(v[k], vi_bytes(3 << at));
}

#include "kern/block/block_k.h"
#include "kern/block/block_low.h"
#include "kern/block/block_q32.h"

/* ---- TQ1_0, which one row is faster to read otherwise (blocks_low.h) ---- */

/* The next ternary digit of four bytes, less one: what three times a byte, as a
 * part of 256, has above the point; it goes on with the rest. */
static GG_ALWAYS_INLINE VI next_digit(VI *v, int bias)
{
    const VI byte = vi_words(0x00ff00ff);
    VI even = vi_and(*v, byte), odd = vi_srl16(*v, 8);
    even = vi_add(even, vi_add(even, even)); /* below 2^10 in 16 bits */
    odd = vi_add(odd, vi_add(odd, odd));
    *v = vi_or(vi_and(even, byte), vi_sll(vi_and(odd, byte), 8));
    return vi_add8(vi_or(vi_srl16(even, 8), vi_andnot(byte, odd)),
                   vi_bytes(bias - 1));
}

/* Five digits of 32 bytes, then of 16, then four of four. */
BLOCK_256(tq1_0)
{
    VI v[PARTS], last[4], q[PARTS];
    take_32(r, 0, v);
    for (size_t i = 0; i < 5; i++) {
        GG_UNROLL
        for (size_t k = 0; k < PARTS; k++)
            q[k] = next_digit(&v[k], to->bias);
        put_run(to, q, i);
    }
    take_16(r, 32, v);
    take_16(r, AT(tq1_0, qh) - 10, last);
    last[2] = vi_or(vi_srl(last[2], 16), vi_sll(last[3], 16));
    for (size_t i = 5; i < 8; i++) {
        GG_UNROLL
        for (size_t k = 0; k < 4; k++)
            q[k] = next_digit(&v[k], to->bias);
        GG_UNROLL
        for (size_t k = 0; k < 4; k++)
            q[4 + k] = next_digit(i < 7 ? &v[k] : &last[2], to->bias);
        put_run(to, q, i);
    }
    put_d(to, halves_to_floats(vi_srl(last[3], 16)));
}

/* BLOCKS_N: to->n steps of a type that has N blocks in 256 steps. */
#define EACH_BLOCK(NAME, STEP, to, r)                                         \
    do {                                                                      \
        struct rows at = *(r);                                                \
        for (size_t i = 0; i < (to)->n / 32; i += (STEP)) {                   \
            block_##NAME(to, &at, i);                                         \
            at.at += sizeof(struct gg_block_##NAME);                          \
        }                                                                     \
    } while (0)
#define BLOCKS_8(NAME, to, r) EACH_BLOCK(NAME, 1, to, r)
#define BLOCKS_4(NAME, to, r) EACH_BLOCK(NAME, 2, to, r)
#define BLOCKS_2(NAME, to, r) EACH_BLOCK(NAME, 4, to, r)
#define BLOCKS_1(NAME, to, r) block_##NAME(to, r)
