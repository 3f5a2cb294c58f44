/* SPDX-License-Identifier: MIT */
/* avx2_ops.h - operations that take other instructions on each processor
 *
 * Beside the intrinsics of m256.h, for kernels of 256 bits. A mask is all ones
 * or 0 in each lane. kern/arm/neon_ops.h has them for AArch64.
 */
#ifndef GG_KERN_X86_AVX2_OPS_H
#define GG_KERN_X86_AVX2_OPS_H

#include <immintrin.h>

/* Bytes of a table of 16, repeated in both halves, by indices below 16; 0 for
 * indices of 128 and more. */
#define m256_lookup _mm256_shuffle_epi8

/* Bytes of a table of 32 by indices below 32; low, high: its halves, each
 * repeated. */
#define m256_lookup_32(low, high, i)                                          \
    _mm256_blendv_epi8(_mm256_shuffle_epi8(low, i),                           \
                       _mm256_shuffle_epi8(high, i), _mm256_slli_epi16(i, 3))

/* Lanes of b where the mask is set, else of a. */
#define m256_select    _mm256_blendv_epi8
#define m256_select_ps _mm256_blendv_ps

/* Mask of bytes: v has the bit that is set in a byte of bit. */
#define m256_has_bit(v, bit) _mm256_cmpeq_epi8(_mm256_and_si256(v, bit), bit)

/* Low nibbles of 16 bytes, then the high ones. */
static inline __m256i m256_nibbles(__m128i b)
{
    __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(b),
                                        _mm_srli_epi16(b, 4), 1);
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}

/* Bytes shifted right by n. */
#define m256_srl8(v, n)                                                       \
    _mm256_and_si256(_mm256_srli_epi16(v, n), _mm256_set1_epi8(255 >> (n)))

/* q with the bits of mask from b; there q has 0. */
#define m256_put_bits(q, b, mask) _mm256_or_si256(q, _mm256_and_si256(b, mask))

/* Floats of magnitude below 2^31 to the nearest integers, ties to even. */
#define m256_to_ints _mm256_cvtps_epi32

/* The low half of each lane, an f16, as a float. */
static inline __m256 m256_halves_ps(__m256i v)
{
    v = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    v = _mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0xd8);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(v));
}

/* Four vectors of eight integers as bytes in order, saturating: signed ones or
 * unsigned ones. */
#define m256_pack_signed(a, b, c, d)                                          \
    m256_order_bytes(_mm256_packs_epi16(_mm256_packs_epi32(a, b),             \
                                        _mm256_packs_epi32(c, d)))
#define m256_pack_unsigned(a, b, c, d)                                        \
    m256_order_bytes(_mm256_packus_epi16(_mm256_packs_epi32(a, b),            \
                                         _mm256_packs_epi32(c, d)))

static inline __m256i m256_order_bytes(__m256i v)
{
    return _mm256_permutevar8x32_epi32(
        v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

#endif
