/* SPDX-License-Identifier: MIT */
/* dots_256.c - rows of blocks by columns of activations, for 256 bits */
#include "config.h"
#include "kern/codec.h"
#include "kern/simd/vf_256.h"

#define FN(name) name##_256

/* 32 numbers are four vectors; codes of 16 share a scale. */
enum { VECS = 4 };

static inline VF vf_of_i8(__m256i q, int k)
{
    const __m128i half =
        k < 2 ? _mm256_castsi256_si128(q) : _mm256_extracti128_si256(q, 1);
    return gg_v256_i8_ps(k & 1 ? _mm_srli_si128(half, 8) : half);
}

static inline VF vf_of_u8(__m256i q, int k)
{
    const __m128i half =
        k < 2 ? _mm256_castsi256_si128(q) : _mm256_extracti128_si256(q, 1);
    return gg_v256_u8_ps(k & 1 ? _mm_srli_si128(half, 8) : half);
}

static inline VF vf_of_ps(const __m256 v[4], int k)
{
    return v[k];
}

#define VC             __m256i
#define vf_shift(c, n) _mm256_srli_epi32(c, n)
#define vf_pick        _mm256_permutevar_ps

static inline VC vf_codes(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
}

static inline VF vf_four(const float *p)
{
    return _mm256_broadcast_ps((const __m128 *)(const void *)p);
}

#include "kern/simd/dots_impl.h"
