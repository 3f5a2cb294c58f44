/* SPDX-License-Identifier: MIT */
/* gemm_i8_column.h - a column of activations to bytes, scales and sums */
#ifndef GG_KERN_SIMD_GEMM_I8_COLUMN_H
#define GG_KERN_SIMD_GEMM_I8_COLUMN_H

#include "base/bytes.h"
#include "base/compiler.h"
#include "kern/gemm_i8.h"
#include "kern/simd/gemm_int_cols.h"
#include "kern/simd/v256.h"

#include <math.h>
#include <string.h>

/* 32 floats to 8 quads; returns their scale. */
static inline float gg_gemm_i8_round_run(const float *x, int32_t *quad)
{
    __m256i m = _mm256_setzero_si256(), v[4];
    for (int i = 0; i < 32; i += 8)
        m = _mm256_max_epi32(m, gg_v256_abs_bits(_mm256_loadu_ps(x + i)));
    const uint32_t bits = (uint32_t)gg_v256_hmax_epi32(m);
    const float max = gg_bytes_f32_from_bits(bits);
    if (bits >= 0x7f800000 || max < GG_GEMM_INT_LEAST) {
        memset(quad, 0, 32);
        return bits >= 0x7f800000 ? NAN : 0;
    }
    const __m256 inverse = _mm256_set1_ps(GG_GEMM_I8_MOST / max);
    GG_UNROLL
    for (int i = 0; i < 4; i++)
        v[i] =
            m256_to_ints(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inverse));
    _mm256_storeu_si256((__m256i *)(void *)quad,
                        gg_v256_pack_bytes(v[0], v[1], v[2], v[3], 1));
    return max / GG_GEMM_I8_MOST;
}

/* Sums of 16 steps: the even ones, and the odd ones. */
static inline void gg_gemm_i8_sums_16(const int32_t *quad, __m256i *even,
                                      __m256i *odd)
{
    const __m256i one = _mm256_set1_epi8(1), ones = _mm256_set1_epi16(1);
    __m256i s[2];
    GG_UNROLL
    for (int i = 0; i < 2; i++) {
        __m256i v[4];
        GG_UNROLL
        for (int k = 0; k < 4; k++, quad += 8)
            v[k] = _mm256_madd_epi16(
                _mm256_maddubs_epi16(one, gg_v256_load256(quad)), ones);
        s[i] = gg_v256_sums_4(v);
    }
    *even = _mm256_permute2x128_si256(s[0], s[1], 0x20);
    *odd = _mm256_permute2x128_si256(s[0], s[1], 0x31);
}

/* Sums of n groups, 8 or 16, to to[n]. */
static GG_ALWAYS_INLINE void gg_gemm_i8_put_groups(__m256i even, __m256i odd,
                                                   unsigned n, __m256i to[2])
{
    const __m256i lo = _mm256_unpacklo_epi32(even, odd);
    const __m256i hi = _mm256_unpackhi_epi32(even, odd);
    to[0] = n == 16 ? _mm256_permute2x128_si256(lo, hi, 0x20)
                    : _mm256_add_epi32(even, odd);
    to[1] = _mm256_permute2x128_si256(lo, hi, 0x31);
}

static inline void gg_gemm_i8_store_8(int32_t *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)to, v);
}

/* A block of a column: quads, what runs begin with, scales, sums. */
static inline void gg_gemm_i8_put_column(const struct gg_kern_gemm_ints *ints,
                                         const float *x, int32_t *to)
{
    const unsigned n_runs = GG_GEMM_I8_RUNS(ints->n_scales);
    const __m256i bias = _mm256_set1_epi32(-ints->bias);
    __m256i even, odd, sum[2];
    float s[GG_GEMM_I8_SCALES];
    for (size_t r = 0; r < GG_GEMM_I8_SCALES; r++)
        s[r] = gg_gemm_i8_round_run(x + 32 * r, to + 8 * r);
    gg_gemm_i8_sums_16(to, &even, &odd);
    to += GG_GEMM_I8_QUADS;
    gg_gemm_i8_put_groups(even, odd, n_runs, sum);
    for (unsigned i = 0; i < n_runs / 8; i++, to += 8)
        gg_gemm_i8_store_8(to, _mm256_mullo_epi32(sum[i], bias));
    memcpy(to, s, sizeof s);
    to += GG_GEMM_I8_SCALES;
    gg_gemm_i8_put_groups(even, odd, ints->n_mins, sum);
    for (unsigned i = 0; i < ints->n_mins / 8; i++, to += 8) {
        const __m256i half = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
        const __m256 scale =
            ints->n_mins == 8
                ? _mm256_loadu_ps(s)
                : _mm256_permutevar8x32_ps(
                      _mm256_castps128_ps256(_mm_loadu_ps(s + 4 * i)), half);
        gg_gemm_i8_store_8(to, _mm256_castps_si256(_mm256_mul_ps(
                                   _mm256_cvtepi32_ps(sum[i]), scale)));
    }
}

#endif
