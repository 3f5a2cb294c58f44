/* SPDX-License-Identifier: MIT */
/* vi_512.h - vectors of 512 bits, as rows_512.h and gemm_int_512.h name them
 *
 * vi_: integers, of 32 bits where a name does not say otherwise; vf_: floats,
 * unless VI_ALONE is defined before.
 */
#ifndef GG_KERN_X86_VI_512_H
#define GG_KERN_X86_VI_512_H

#include <immintrin.h>

#define VI                      __m512i
#define vi_zero                 _mm512_setzero_si512
#define vi_load(p)              _mm512_load_si512(p)
#define vi_all(p)               _mm512_castps_si512(_mm512_set1_ps(*(p)))
#define vi_bytes(b)             _mm512_set1_epi8((char)(b))
#define vi_words                _mm512_set1_epi32
#define vi_and                  _mm512_and_si512
#define vi_andnot               _mm512_andnot_si512
#define vi_or                   _mm512_or_si512
#define vi_xor                  _mm512_xor_si512
#define vi_add                  _mm512_add_epi32
#define vi_add8                 _mm512_add_epi8
#define vi_sub                  _mm512_sub_epi32
#define vi_sub8                 _mm512_sub_epi8
#define vi_mul                  _mm512_mullo_epi32
#define vi_max                  _mm512_max_epi32
#define vi_sll                  _mm512_slli_epi32
#define vi_srl                  _mm512_srli_epi32
#define vi_srl16(v, n)          _mm512_srli_epi16(v, (unsigned)(n))
#define vi_srl8(v, n)           vi_and(vi_srl16(v, n), vi_bytes(255 >> (n)))
#define vi_put_bits(q, b, mask) vi_or(q, vi_and(b, mask))
#define vi_sra                  _mm512_srai_epi32
#define vi_lookup               _mm512_shuffle_epi8
#define vi_float                _mm512_castsi512_ps
/* vi_sixteen: table of 16 bytes. vi_where: bytes of bits where v has the bit
 * some, else 0. vi_minus_where: bytes of v, negated where bits has the bit
 * some. */
#define vi_sixteen(p)                                                         \
    _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(p)))
#define vi_where(v, some, bits)                                               \
    _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(v, some), bits)
#define vi_minus_where(v, bits, some)                                         \
    _mm512_mask_sub_epi8(v, _mm512_test_epi8_mask(bits, some),                \
                         _mm512_setzero_si512(), v)
/* The lower, or the upper, 32 bits of each 64 bits of two vectors: of each 128
 * bits of a, then of b. */
#define vi_evens(a, b) vi_shuffle(a, b, 0x88)
#define vi_odds(a, b)  vi_shuffle(a, b, 0xdd)
#define vi_shuffle(a, b, n)                                                   \
    _mm512_castps_si512(                                                      \
        _mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), n))

#ifndef VI_ALONE
#define VF        __m512
#define vf_zero   _mm512_setzero_ps
#define vf_loadu  _mm512_loadu_ps
#define vf_storeu _mm512_storeu_ps
#define vf_all(p) _mm512_set1_ps(*(p))
#define vf_mul    _mm512_mul_ps
#define vf_fma    _mm512_fmadd_ps
#define vf_add    _mm512_add_ps
#define vf_of     _mm512_cvtepi32_ps
#define vf_neg(v) _mm512_xor_ps(v, _mm512_set1_ps(-0.0f))
#endif

#endif
