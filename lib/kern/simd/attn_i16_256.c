/* SPDX-License-Identifier: MIT */
/* attn_i16_256.c - attention in integers for 256 bits */
#include "config.h"
#include "base/compiler.h"
#include "kern/simd/dp_256.h"
#include "kern/simd/gemm_int_cols.h"

#define TILE           gg_kern_attn_i16_tile_256
#define VI_DP(c, a, b) GG_DP_MADDWD_ALL_256(c, a, b)
#include "kern/simd/attn_i16_256.h"

/* Two vectors; the lanes are those of a longer one. */
typedef struct {
    __m256 lo, hi;
} U;

static GG_ALWAYS_INLINE U u_all(float x)
{
    return (U){ _mm256_set1_ps(x), _mm256_set1_ps(x) };
}

static GG_ALWAYS_INLINE U u_load(const float *p)
{
    return (U){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}

static GG_ALWAYS_INLINE U u_load_n(const float *p, size_t n)
{
    float x[16] = { 0 };
    memcpy(x, p, n * sizeof *x);
    return u_load(x);
}

static GG_ALWAYS_INLINE U u_mul(U a, U b)
{
    return (U){ _mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi) };
}

static GG_ALWAYS_INLINE U u_add(U a, U b)
{
    return (U){ _mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi) };
}

/* The larger bits of magnitudes. */
static GG_ALWAYS_INLINE __m256i u_most(__m256i most, U x)
{
    most = _mm256_max_epi32(most, gg_v256_abs_bits(x.lo));
    return _mm256_max_epi32(most, gg_v256_abs_bits(x.hi));
}

#define UI            __m256i
#define ui_zero       _mm256_setzero_si256
#define ui_largest(v) ((uint32_t)gg_v256_hmax_epi32(v))

static GG_ALWAYS_INLINE float u_sum(U x)
{
    return gg_v256_hsum_ps(_mm256_add_ps(x.lo, x.hi));
}

/* 16 integers of 16 bits, rounded. */
static GG_ALWAYS_INLINE void u_round(int16_t *to, U x)
{
    const __m256i v =
        _mm256_packs_epi32(_mm256_cvtps_epi32(x.lo), _mm256_cvtps_epi32(x.hi));
    _mm256_storeu_si256((__m256i *)(void *)to,
                        _mm256_permute4x64_epi64(v, 0xd8));
}

static GG_ALWAYS_INLINE __m256i pair_of(__m256 a, __m256 b)
{
    return _mm256_blend_epi16(_mm256_cvtps_epi32(a),
                              _mm256_slli_epi32(_mm256_cvtps_epi32(b), 16),
                              0xaa);
}

/* 16 pairs of a and b. */
static GG_ALWAYS_INLINE void u_pairs(int16_t *to, U a, U b)
{
    _mm256_storeu_si256((__m256i *)(void *)to, pair_of(a.lo, b.lo));
    _mm256_storeu_si256((__m256i *)(void *)(to + 16), pair_of(a.hi, b.hi));
}

#define FN(name) name##_256
#include "kern/simd/attn_i16_impl.h"
