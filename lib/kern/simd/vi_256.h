/* SPDX-License-Identifier: MIT */
/* vi_256.h - vectors of 256 bits, as rows_256.h and gemm_int_256.h name them
 *
 * vi_: integers, of 32 bits where a name does not say otherwise; vf_: floats,
 * unless VI_ALONE is defined before.
 */
#ifndef GG_KERN_SIMD_VI_256_H
#define GG_KERN_SIMD_VI_256_H

#include "kern/simd/m256.h"

#define VI             __m256i
#define vi_zero        _mm256_setzero_si256
#define vi_load(p)     _mm256_load_si256((const __m256i *)(p))
#define vi_all(p)      _mm256_castps_si256(_mm256_broadcast_ss(p))
#define vi_bytes(b)    _mm256_set1_epi8((char)(b))
#define vi_words       _mm256_set1_epi32
#define vi_and         _mm256_and_si256
#define vi_andnot      _mm256_andnot_si256
#define vi_or          _mm256_or_si256
#define vi_xor         _mm256_xor_si256
#define vi_add         _mm256_add_epi32
#define vi_add8        _mm256_add_epi8
#define vi_sub         _mm256_sub_epi32
#define vi_sub8        _mm256_sub_epi8
#define vi_mul         _mm256_mullo_epi32
#define vi_max         _mm256_max_epi32
#define vi_sll(v, n)   _mm256_slli_epi32(v, (int)(n))
#define vi_srl(v, n)   _mm256_srli_epi32(v, (int)(n))
#define vi_srl16(v, n) _mm256_srli_epi16(v, (int)(n))
#define vi_srl8(v, n)  m256_srl8(v, (int)(n))
#define vi_put_bits    m256_put_bits
#define vi_sra         _mm256_srai_epi32
#define vi_lookup      m256_lookup
#define vi_float       _mm256_castsi256_ps
/* vi_sixteen: table of 16 bytes. vi_where: bytes of bits where v has the bit
 * some, else 0. vi_minus_where: bytes of v, negated where bits has the bit
 * some. */
#define vi_sixteen(p)                                                         \
    _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(p)))
#define vi_where(v, some, bits)       vi_and(m256_has_bit(v, some), bits)
#define vi_minus_where(v, bits, some) vi_negate(v, m256_has_bit(bits, some))
/* The lower, or the upper, 32 bits of each 64 bits of two vectors: of each 128
 * bits of a, then of b. */
#define vi_evens(a, b) vi_shuffle(a, b, 0x88)
#define vi_odds(a, b)  vi_shuffle(a, b, 0xdd)
#define vi_shuffle(a, b, n)                                                   \
    _mm256_castps_si256(                                                      \
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), n))

/* Bytes of v, minus where mask is all ones. */
static inline VI vi_negate(VI v, VI mask)
{
    return _mm256_sub_epi8(_mm256_xor_si256(v, mask), mask);
}

#ifndef VI_ALONE
#define VF        __m256
#define vf_zero   _mm256_setzero_ps
#define vf_loadu  _mm256_loadu_ps
#define vf_storeu _mm256_storeu_ps
#define vf_all    _mm256_broadcast_ss
#define vf_mul    _mm256_mul_ps
#define vf_fma    _mm256_fmadd_ps
#define vf_add    _mm256_add_ps
#define vf_of     _mm256_cvtepi32_ps
#define vf_neg(v) _mm256_xor_ps(v, _mm256_set1_ps(-0.0f))
#endif

#endif
