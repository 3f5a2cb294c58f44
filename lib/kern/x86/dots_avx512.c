/* SPDX-License-Identifier: MIT */
/* dots_avx512.c - rows of blocks by columns of activations, for AVX-512 */
#include "config.h"
#include "kern/codec.h"
#include "kern/x86/vf_avx512.h"

#define FN(name) name##_avx512

/* 32 numbers are two vectors, each of codes that share a scale. */
enum { VECS = 2 };

static inline VF vf_of_i8(__m256i q, int k)
{
    const __m128i half =
        k ? _mm256_extracti128_si256(q, 1) : _mm256_castsi256_si128(q);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(half));
}

static inline VF vf_of_u8(__m256i q, int k)
{
    const __m128i half =
        k ? _mm256_extracti128_si256(q, 1) : _mm256_castsi256_si128(q);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(half));
}

static inline VF vf_of_ps(const __m256 v[4], int k)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(v[2 * k]), v[2 * k + 1],
                              1);
}

#define WITH_SIGNS(q, signs)                                                  \
    _mm256_mask_sub_epi8(q, signs, _mm256_setzero_si256(), q)

#define VC             __m512i
#define vf_shift(c, n) _mm512_srli_epi32(c, n)
#define vf_pick        _mm512_permutevar_ps

static inline VC vf_codes(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
}

static inline VF vf_four(const float *p)
{
    return _mm512_broadcast_f32x4(_mm_loadu_ps(p));
}

#define EACH_OF_LEVEL "kern/x86/dots_512.h"
#include "kern/simd/dots_impl.h"
