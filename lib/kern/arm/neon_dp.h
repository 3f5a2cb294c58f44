/* SPDX-License-Identifier: MIT */
/* neon_dp.h - the operations of kern/x86/dp.h by NEON
 *
 * c is a variable. Bytes of a are unsigned there; these want them below 128.
 */
#ifndef GG_KERN_ARM_NEON_DP_H
#define GG_KERN_ARM_NEON_DP_H

#include "kern/simd/m256.h"

/* c += sums of the two products of signed 16 bits in each lane of a and b. */
#define GG_DP_MADDWD_256(c, a, b)                                             \
    ((c) = _mm256_add_epi32(c, _mm256_madd_epi16(a, b)))

/* GG_DP_MADDWD_256 for a b whose 32-bit lanes are equal: the integers of even
 * number of a and those of odd number are multiplied by one each, which takes
 * half of the instructions. Products with the same a share their separation.
 * Inline assembly, since gcc 12 copies sums between registers around the
 * intrinsics; constraint x: registers 0 to 15, as lanes of 16 bits need. */
M256_INLINE __m256i m256_madd_all(__m256i c, __m256i a, __m256i b)
{
    const int16x8_t even = vuzp1q_s16(m128_s16(a.lo), m128_s16(a.hi));
    const int16x8_t odd = vuzp2q_s16(m128_s16(a.lo), m128_s16(a.hi));
    __asm__("smlal %0.4s, %2.4h, %4.h[0]\n\t"
            "smlal2 %1.4s, %2.8h, %4.h[0]\n\t"
            "smlal %0.4s, %3.4h, %4.h[1]\n\t"
            "smlal2 %1.4s, %3.8h, %4.h[1]"
            : "+w"(c.lo), "+w"(c.hi)
            : "w"(even), "w"(odd), "x"(b.lo));
    return c;
}

#define GG_DP_MADDWD_ALL_256(c, a, b) ((c) = m256_madd_all(c, a, b))

/* Sums of the two products of bytes in each 16 bits. */
M256_INLINE __m128i m128_mul_bytes(__m128i a, __m128i b)
{
    return m128_of_s16(
        vpaddq_s16(vmull_s8(vget_low_s8(m128_s8(a)), vget_low_s8(m128_s8(b))),
                   vmull_high_s8(m128_s8(a), m128_s8(b))));
}

M256_INLINE __m256i m256_mul_bytes(__m256i a, __m256i b)
{
    return (__m256i){ m128_mul_bytes(a.lo, b.lo), m128_mul_bytes(a.hi, b.hi) };
}

/* c + sums of the two integers of 16 bits in each lane of a. */
M256_INLINE __m256i m256_add_pairs(__m256i c, __m256i a)
{
    return (
        __m256i){ m128_of_s32(vpadalq_s16(m128_s32(c.lo), m128_s16(a.lo))),
                  m128_of_s32(vpadalq_s16(m128_s32(c.hi), m128_s16(a.hi))) };
}

#define GG_DP_PAIRS_256(c, a)        ((c) = m256_add_pairs(c, a))
#define GG_DP_MUL_BYTES_256(c, a, b) ((c) = m256_mul_bytes(a, b))
#define GG_DP_ADD_BYTES_256(c, a, b)                                          \
    ((c) = _mm256_add_epi16(c, m256_mul_bytes(a, b)))

#endif
