/* SPDX-License-Identifier: MIT */
/* attn_i16_avx512.c - attention in integers for AVX-512 without VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/x86/dp.h"
#include "kern/simd/gemm_int_cols.h"

#define TILE           gg_kern_attn_i16_tile_avx512
#define VI_DP(c, a, b) GG_DP_MADDWD_512(c, a, b)
#include "kern/x86/attn_i16_512.h"

#define U      __m512
#define u_all  _mm512_set1_ps
#define u_load _mm512_loadu_ps
#define u_mul  _mm512_mul_ps
#define u_add  _mm512_add_ps

static GG_ALWAYS_INLINE U u_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

#define UI      __m512i
#define ui_zero _mm512_setzero_si512

/* The larger bits of magnitudes. */
static GG_ALWAYS_INLINE UI u_most(UI most, U x)
{
    const UI bits = _mm512_and_si512(_mm512_castps_si512(x),
                                     _mm512_set1_epi32(0x7fffffff));
    return _mm512_max_epi32(most, bits);
}

static GG_ALWAYS_INLINE uint32_t ui_largest(UI v)
{
    return (uint32_t)_mm512_reduce_max_epi32(v);
}

static GG_ALWAYS_INLINE float u_sum(U x)
{
    return gg_v256_hsum_ps(_mm256_add_ps(_mm512_castps512_ps256(x),
                                         _mm512_extractf32x8_ps(x, 1)));
}

/* 16 integers of 16 bits, rounded. */
static GG_ALWAYS_INLINE void u_round(int16_t *to, U x)
{
    _mm256_storeu_si256((__m256i *)(void *)to,
                        _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(x)));
}

/* 16 pairs of a and b. */
static GG_ALWAYS_INLINE void u_pairs(int16_t *to, U a, U b)
{
    const UI hi = _mm512_slli_epi32(_mm512_cvtps_epi32(b), 16);
    _mm512_storeu_si512(
        to, _mm512_mask_mov_epi16(hi, 0x55555555, _mm512_cvtps_epi32(a)));
}

#define FN(name) name##_avx512
#include "kern/simd/attn_i16_impl.h"
