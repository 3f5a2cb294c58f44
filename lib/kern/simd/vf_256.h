/* SPDX-License-Identifier: MIT */
/* vf_256.h - vectors of f32 and of double, for 256 bits */
#ifndef GG_KERN_SIMD_VF_256_H
#define GG_KERN_SIMD_VF_256_H

#include "kern/simd/v256.h"

#include <float.h>
#include "kern/simd/m256.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef __m256 VF;
enum { LANES = 8 };

static inline __m256i first_n(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline VF vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline VF vf_load_n(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, first_n(n));
}

static inline void vf_store(float *p, VF x)
{
    _mm256_storeu_ps(p, x);
}

static inline void vf_store_n(float *p, VF x, size_t n)
{
    _mm256_maskstore_ps(p, first_n(n), x);
}

static inline VF vf_set1(float x)
{
    return _mm256_set1_ps(x);
}

#define vf_add  _mm256_add_ps
#define vf_sub  _mm256_sub_ps
#define vf_mul  _mm256_mul_ps
#define vf_div  _mm256_div_ps
#define vf_fma  _mm256_fmadd_ps
#define vf_fnma _mm256_fnmadd_ps
#define vf_min  _mm256_min_ps
#define vf_max  _mm256_max_ps

static inline VF vf_round(VF x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Two steps; the first is exact. */
static inline VF vf_scale2(VF x, VF n)
{
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i i = _mm256_cvtps_epi32(n);
    const __m256i a = _mm256_srai_epi32(i, 1), b = _mm256_sub_epi32(i, a);
    x = vf_mul(x, _mm256_castsi256_ps(
                      _mm256_slli_epi32(_mm256_add_epi32(a, bias), 23)));
    return vf_mul(x, _mm256_castsi256_ps(
                         _mm256_slli_epi32(_mm256_add_epi32(b, bias), 23)));
}

static inline float vf_hsum(VF x)
{
    return gg_v256_hsum_ps(x);
}

static inline void vf_hsum4(float sum[4], const VF x[4])
{
    const VF s =
        _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
    _mm_storeu_ps(sum, _mm_add_ps(_mm256_castps256_ps128(s),
                                  _mm256_extractf128_ps(s, 1)));
}

static inline float vf_hmax(VF x)
{
    return gg_v256_hmax_ps(x);
}

static inline double d_sum(__m256d s)
{
    const __m128d u =
        _mm_add_pd(_mm256_castpd256_pd128(s), _mm256_extractf128_pd(s, 1));
    return _mm_cvtsd_f64(_mm_add_sd(u, _mm_unpackhi_pd(u, u)));
}

#define D       __m256d
#define d_zero  _mm256_setzero_pd
#define d_add   _mm256_add_pd
#define d_fma   _mm256_fmadd_pd
#define d_lo(x) _mm256_cvtps_pd(_mm256_castps256_ps128(x))
#define d_hi(x) _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))
#include "kern/simd/vd_impl.h"

static inline VF vf_rotate(VF x, const float *cosine, const float *sine)
{
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    const VF c = _mm256_permutevar8x32_ps(
        _mm256_castps128_ps256(_mm_loadu_ps(cosine)), twice);
    const VF s = _mm256_permutevar8x32_ps(
        _mm256_castps128_ps256(_mm_loadu_ps(sine)), twice);
    return _mm256_addsub_ps(vf_mul(x, c),
                            vf_mul(_mm256_permute_ps(x, 0xb1), s));
}

static inline VF get_f16(const unsigned char *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}

static inline VF get_bf16(const unsigned char *p)
{
    const __m128i h = _mm_loadu_si128((const void *)p);
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

#endif
