/* SPDX-License-Identifier: MIT */
/* vf_avx512.h - vectors of f32 and of double, for AVX-512 */
#ifndef GG_KERN_X86_VF_AVX512_H
#define GG_KERN_X86_VF_AVX512_H

#include "kern/simd/v256.h"

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef __m512 VF;
enum { LANES = 16 };

static inline __mmask16 first_n(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}

static inline VF vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline VF vf_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(first_n(n), p);
}

static inline void vf_store(float *p, VF x)
{
    _mm512_storeu_ps(p, x);
}

static inline void vf_store_n(float *p, VF x, size_t n)
{
    _mm512_mask_storeu_ps(p, first_n(n), x);
}

static inline VF vf_set1(float x)
{
    return _mm512_set1_ps(x);
}

#define vf_add    _mm512_add_ps
#define vf_sub    _mm512_sub_ps
#define vf_mul    _mm512_mul_ps
#define vf_div    _mm512_div_ps
#define vf_fma    _mm512_fmadd_ps
#define vf_fnma   _mm512_fnmadd_ps
#define vf_min    _mm512_min_ps
#define vf_max    _mm512_max_ps
#define vf_scale2 _mm512_scalef_ps

static inline VF vf_round(VF x)
{
    return _mm512_roundscale_ps(x,
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline float vf_hsum(VF x)
{
    return gg_v256_hsum_ps(_mm256_add_ps(_mm512_castps512_ps256(x),
                                         _mm512_extractf32x8_ps(x, 1)));
}

/* Lanes 4 i + r of one vector: a part of x[r]'s sum. */
static inline void vf_hsum4(float sum[4], const VF x[4])
{
    const VF a =
        vf_add(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
    const VF b =
        vf_add(_mm512_unpacklo_ps(x[2], x[3]), _mm512_unpackhi_ps(x[2], x[3]));
    const VF s =
        vf_add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    const __m256 h =
        _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
    _mm_storeu_ps(sum, _mm_add_ps(_mm256_castps256_ps128(h),
                                  _mm256_extractf128_ps(h, 1)));
}

static inline float vf_hmax(VF x)
{
    return _mm512_reduce_max_ps(x);
}

#define D       __m512d
#define d_zero  _mm512_setzero_pd
#define d_add   _mm512_add_pd
#define d_fma   _mm512_fmadd_pd
#define d_sum   _mm512_reduce_add_pd
#define d_lo(x) _mm512_cvtps_pd(_mm512_castps512_ps256(x))
#define d_hi(x) _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))
#include "kern/simd/vd_impl.h"

static inline VF vf_rotate(VF x, const float *cosine, const float *sine)
{
    const __m512i twice =
        _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const VF c = _mm512_permutexvar_ps(
        twice, _mm512_castps256_ps512(_mm256_loadu_ps(cosine)));
    const VF s = _mm512_permutexvar_ps(
        twice, _mm512_castps256_ps512(_mm256_loadu_ps(sine)));
    const VF t = vf_mul(_mm512_permute_ps(x, 0xb1), s);
    /* even lanes subtract */
    return _mm512_mask_sub_ps(vf_add(vf_mul(x, c), t), 0x5555, vf_mul(x, c),
                              t);
}

static inline VF get_f16(const unsigned char *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}

static inline VF get_bf16(const unsigned char *p)
{
    const __m256i h = _mm256_loadu_si256((const void *)p);
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

#endif
