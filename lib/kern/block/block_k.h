/* SPDX-License-Identifier: MIT */
/* block_k.h - layouts of 256-element blocks with sub-blocks (block_view.h) */
#ifndef GG_KERN_BLOCK_BLOCK_K_H
#define GG_KERN_BLOCK_BLOCK_K_H

#include "kern/block/block_view.h"

/* Q4_K and Q5_K begin with d, dmin and 12 bytes of 6-bit scales and minima of
 * eight sub-blocks. Scales 0-3 are the low bits of bytes 0-3, minima 0-3 those
 * of bytes 4-7. Scales and minima 4-7 are the low and high nibbles of bytes
 * 8-11, with the upper two bits of bytes 0-3 and 4-7 on top. */
static GG_ALWAYS_INLINE FLOAT take_k4(TO *to, const struct rows *r,
                                      struct subs *scale, struct subs *min)
{
    const WORD six = w_all(0x3f3f3f3f), four = w_all(0x0f0f0f0f),
               two = w_all(0x30303030);
    struct bytes h;
    take_bytes(r, 0, &h);
    const WORD a = word_at(&h, AT(q4_k, scales)),
               b = word_at(&h, AT(q4_k, scales) + 4),
               c = word_at(&h, AT(q4_k, scales) + 8);
    const WORD s[2] = { w_and(a, six),
                        w_or(w_and(c, four), w_and(w_srl(a, 2), two)) };
    const WORD m[2] = { w_and(b, six), w_or(w_and(w_srl(c, 4), four),
                                            w_and(w_srl(b, 2), two)) };
    const FLOAT dmin = half_at(&h, AT(q4_k, dmin));
    subs_u8(scale, emit_d(to, half_at(&h, AT(q4_k, d))), s);
    subs_u8(min, dmin, m);
    GG_UNROLL
    for (size_t j = 0; j < 8; j++)
        emit_min(to, j, dmin, sub_u8(min, j / 4, j % 4));
    return dmin;
}

/* Each 32 bytes hold two sub-blocks: low nibbles, then high nibbles. */
BLOCK_256(q4_k)
{
    struct subs s, m;
    const FLOAT dmin = take_k4(to, r, &s, &m);
    for (size_t j = 0; j < 2; j++) {
        GG_UNROLL
        for (size_t b = 0; b < 4; b += 2) {
            const size_t at = 4 * j + b;
            VI v[PARTS], q[PARTS];
            take_32(r, AT(q4_k, qs) + 16 * at, v);
            low_nibbles(q, v);
            emit_sub_min(to, q, at, sub_u8(&s, j, b), dmin, sub_u8(&m, j, b));
            high_nibbles(q, v);
            emit_sub_min(to, q, at + 1, sub_u8(&s, j, b + 1), dmin,
                         sub_u8(&m, j, b + 1));
        }
    }
}

/* As Q4_K; qh: bit j of byte k is the fifth bit of element k of sub-block j. */
BLOCK_256(q5_k)
{
    struct subs s, m;
    VI h[PARTS];
    const FLOAT dmin = take_k4(to, r, &s, &m);
    take_32(r, AT(q5_k, qh), h);
    for (size_t j = 0; j < 2; j++) {
        GG_UNROLL
        for (size_t b = 0; b < 4; b += 2) {
            const size_t at = 4 * j + b;
            VI v[PARTS], q[PARTS];
            take_32(r, AT(q5_k, qs) + 16 * at, v);
            low_nibbles(q, v);
            or_bits(q, h, b, 4, 1);
            emit_sub_min(to, q, at, sub_u8(&s, j, b), dmin, sub_u8(&m, j, b));
            high_nibbles(q, v);
            or_bits(q, h, b + 1, 4, 1);
            emit_sub_min(to, q, at + 1, sub_u8(&s, j, b + 1), dmin,
                         sub_u8(&m, j, b + 1));
        }
        shift_down(h, 4);
    }
}

/* Each half of 128 elements has 64 bytes ql and 32 bytes qh. Its quarter k of
 * 32 elements is nibble k / 2 of the 32 bytes k % 2, pair k of qh on top. */
BLOCK_256(q6_k)
{
    struct bytes e;
    struct subs s;
    VI v[2][PARTS], h[PARTS], q[PARTS];
    const FLOAT d = emit_d(to, take_half(r, AT(q6_k, d)));
    take_bytes(r, AT(q6_k, scales), &e);
    const WORD w[4] = { word_at(&e, 0), word_at(&e, 4), word_at(&e, 8),
                        word_at(&e, 12) };
    subs_i8(&s, d, w, 0);
    for (size_t half = 0; half < 2; half++) {
        take_32(r, AT(q6_k, ql) + 64 * half, v[0]);
        take_32(r, AT(q6_k, ql) + 64 * half + 32, v[1]);
        take_32(r, AT(q6_k, qh) + 32 * half, h);
        GG_UNROLL
        for (size_t k = 0; k < 4; k++) {
            const size_t j = 2 * half + k / 2, b = 2 * (k % 2);
            if (k < 2)
                low_nibbles(q, v[k]);
            else
                high_nibbles(q, v[k - 2]);
            or_bits(q, h, 2 * k, 4, 3);
            emit_halves(to, q, 4 * half + k, 32, sub_i8(&s, j, b),
                        sub_i8(&s, j, b + 1));
        }
    }
}

/* Q2_K: scales are low nibbles, minima high nibbles. The block ends with d and
 * dmin, which are loaded with the 12 bytes before them. */
static GG_ALWAYS_INLINE FLOAT take_k2(TO *to, const struct rows *r,
                                      struct subs *scale, struct subs *min)
{
    struct bytes b, e;
    take_bytes(r, AT(q2_k, d) - 12, &e);
    take_bytes(r, AT(q2_k, scales), &b);
    const WORD w[4] = { word_at(&b, 0), word_at(&b, 4), word_at(&b, 8),
                        word_at(&b, 12) };
    const FLOAT dmin = half_at(&e, 14);
    subs_low(scale, emit_d(to, half_at(&e, 12)), w);
    subs_high(min, dmin, w);
    return dmin;
}

/* Each half of 128 elements has 32 bytes; quarter k is pair k of each byte. */
BLOCK_256(q2_k)
{
    struct subs s, m;
    VI v[PARTS], q[PARTS];
    const FLOAT dmin = take_k2(to, r, &s, &m);
    for (size_t half = 0; half < 2; half++) {
        take_32(r, AT(q2_k, qs) + 32 * half, v);
        GG_UNROLL
        for (size_t k = 0; k < 4; k++) {
            const size_t j = 2 * half + k / 2, b = 2 * (k % 2);
            take_pairs(to, q, v, 2 * k);
            emit_halves_min(to, q, 4 * half + k, sub_low(&s, j, b),
                            sub_low(&s, j, b + 1), dmin, sub_high(&m, j, b),
                            sub_high(&m, j, b + 1));
        }
    }
    GG_UNROLL
    for (size_t j = 0; j < 16; j++)
        emit_min(to, j, dmin, sub_high(&m, j / 4, j % 4));
}

/* Codes are pairs as in Q2_K; the third bit of elements 32 j + k is bit j of
 * hmask[k]. Sixteen 6-bit scales with zero point 32 are in 12 bytes: the low,
 * then the high nibbles of the first eight, with pairs of the last four above.
 * The block ends with them and d; all 14 bytes are loaded with two before. */
BLOCK_256(q3_k)
{
    const WORD four = w_all(0x0f0f0f0f), two = w_all(0x30303030);
    struct bytes e;
    struct subs s;
    VI h[PARTS], v[PARTS], q[PARTS];
    take_bytes(r, AT(q3_k, scales) - 2, &e);
    const WORD a = word_at(&e, 2), b = word_at(&e, 6), c = word_at(&e, 10);
    const WORD w[4] = {
        w_or(w_and(a, four), w_and(w_sll(c, 4), two)),
        w_or(w_and(b, four), w_and(w_sll(c, 2), two)),
        w_or(w_and(w_srl(a, 4), four), w_and(c, two)),
        w_or(w_and(w_srl(b, 4), four), w_and(w_srl(c, 2), two)),
    };
    subs_i8(&s, emit_d(to, half_at(&e, 14)), w, 32);
    take_32(r, AT(q3_k, hmask), h);
    for (size_t half = 0; half < 2; half++) {
        take_32(r, AT(q3_k, qs) + 32 * half, v);
        GG_UNROLL
        for (size_t k = 0; k < 4; k++) {
            const size_t j = 2 * half + k / 2, n = 2 * (k % 2);
            pairs_of(q, v, 2 * k);
            or_bits(q, h, k, 2, 1);
            emit_halves(to, q, 4 * half + k, 4, sub_i8(&s, j, n),
                        sub_i8(&s, j, n + 1));
        }
        shift_down(h, 4);
    }
}

/* Eight 6-bit scales with zero point 32: nibbles of scales_l, with pairs of
 * scales_h above. */
BLOCK_256(iq4_xs)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    const VI levels = levels_of(level, bias_of(to));
    struct bytes b;
    struct subs s;
    take_bytes(r, 0, &b);
    subs_6(&s, emit_d(to, half_at(&b, AT(iq4_xs, d))),
           word_at(&b, AT(iq4_xs, scales_l)),
           w_srl(word_at(&b, 0), 8 * AT(iq4_xs, scales_h)));
    for (size_t j = 0; j < 8; j++) {
        VI q[PARTS];
        take_nibbles(r, AT(iq4_xs, qs) + 16 * j, q);
        look_up(q, levels);
        emit_sub(to, q, j, bias_of(to), sub_6(&s, j));
    }
}

BLOCK_256(q8_k)
{
    struct bytes b;
    take_bytes(r, 0, &b);
    const FLOAT d = emit_d(to, w_float(word_at(&b, AT(q8_k, d))));
    for (size_t j = 0; j < 8; j++) {
        VI q[PARTS];
        take_32(r, AT(q8_k, qs) + 32 * j, q);
        emit_run(to, q, j, 0, d);
    }
}

#endif
