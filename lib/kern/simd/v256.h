/* SPDX-License-Identifier: MIT */
/* v256.h - shared intrinsics of AVX2 kernels, static inline only */
#ifndef GG_KERN_SIMD_V256_H
#define GG_KERN_SIMD_V256_H

#include "base/compiler.h"

#include <float.h>
#include "kern/simd/m256.h"
#include <stddef.h>
#include <stdint.h>

static inline __m256i gg_v256_load256(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline __m128i gg_v256_load128(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

/* The f16 at p, exact (VCVTPH2PS). */
static inline float gg_v256_half_ps(const void *p)
{
    const uint8_t *b = p;
    return _cvtsh_ss((unsigned short)(b[0] | b[1] << 8));
}

/* gg_kern_put_half of block_io.h. */
static inline void gg_v256_put_half_ps(void *p, float v)
{
    unsigned h = v == v ? _cvtss_sh(v, _MM_FROUND_TO_NEAREST_INT) : 0xfe00;
    uint8_t *b = p;
    b[0] = (uint8_t)h;
    b[1] = (uint8_t)(h >> 8);
}

/* Eight signed or unsigned bytes, from the low half, as floats. */
static inline __m256 gg_v256_i8_ps(__m128i v)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v));
}

static inline __m256 gg_v256_u8_ps(__m128i v)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v));
}

/* 32 floats: signed bytes, 16 by each scale. */
static inline void gg_v256_put_i8(float *dst, __m256i q, float s0, float s1)
{
    __m128i half[2] = { _mm256_castsi256_si128(q),
                        _mm256_extracti128_si256(q, 1) };
    for (int k = 0; k < 4; k++) {
        __m128i b = k & 1 ? _mm_srli_si128(half[k / 2], 8) : half[k / 2];
        __m256 s = _mm256_set1_ps(k < 2 ? s0 : s1);
        _mm256_storeu_ps(dst + 8 * k, _mm256_mul_ps(s, gg_v256_i8_ps(b)));
    }
}

/* 32 floats: unsigned bytes times scale, less min; 16 by each pair. */
static inline void gg_v256_put_u8(float *dst, __m256i q, float s0, float m0,
                                  float s1, float m1)
{
    __m128i half[2] = { _mm256_castsi256_si128(q),
                        _mm256_extracti128_si256(q, 1) };
    for (int k = 0; k < 4; k++) {
        __m128i b = k & 1 ? _mm_srli_si128(half[k / 2], 8) : half[k / 2];
        __m256 v =
            _mm256_mul_ps(_mm256_set1_ps(k < 2 ? s0 : s1), gg_v256_u8_ps(b));
        v = _mm256_sub_ps(v, _mm256_set1_ps(k < 2 ? m0 : m1));
        _mm256_storeu_ps(dst + 8 * k, v);
    }
}

/* 16 bytes of nibbles: the low ones, then the high ones. */
static inline __m256i gg_v256_nibbles(const void *p)
{
    return m256_nibbles(gg_v256_load128(p));
}

/* Two halves of 16 codes to nibbles: byte j has codes j and j + 16. */
static inline void gg_v256_put_nibbles(uint8_t qs[16], __m256i q)
{
    __m128i lo = _mm256_castsi256_si128(q);
    __m128i hi = _mm256_extracti128_si256(q, 1);
    lo = _mm_and_si128(lo, _mm_set1_epi8(15));
    hi = _mm_and_si128(hi, _mm_set1_epi8(15));
    _mm_storeu_si128((__m128i *)qs, _mm_or_si128(lo, _mm_slli_epi16(hi, 4)));
}

/* Sum of 32 signed bytes: of them plus 128, less 32 * 128. */
static inline int gg_v256_sum_i8(__m256i q)
{
    __m256i v =
        _mm256_sad_epu8(_mm256_xor_si256(q, _mm256_set1_epi8((char)0x80)),
                        _mm256_setzero_si256());
    __m128i s = _mm_add_epi64(_mm256_castsi256_si128(v),
                              _mm256_extracti128_si256(v, 1));
    return _mm_cvtsi128_si32(_mm_add_epi64(s, _mm_srli_si128(s, 8))) - 4096;
}

/* Pairs of bits of elements 32 * s and up: gg_kern_pair_of of block_io.h. */
static inline __m256i gg_v256_pairs_of(const uint8_t *qs, unsigned s)
{
    __m256i q = gg_v256_load256(qs + s / 4 * 32);
    q = _mm256_srl_epi16(q, _mm_cvtsi32_si128((int)(2 * (s % 4))));
    return _mm256_and_si256(q, _mm256_set1_epi8(3));
}

/* 0xff in byte j where bit j is set. */
static inline __m256i gg_v256_spread_bits(uint32_t bits)
{
    const __m256i which = _mm256_setr_epi64x(
        0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i v = m256_lookup(_mm256_set1_epi32((int)bits), which);
    return m256_has_bit(v, bit);
}

/* 32 floats: d where a bit is set, else -d. */
static inline void gg_v256_signs_ps(__m256 v[4], uint32_t bits, float d)
{
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256 plus = _mm256_set1_ps(d);
    const __m256 minus = _mm256_xor_ps(plus, _mm256_set1_ps(-0.0f));
    GG_UNROLL
    for (int k = 0; k < 4; k++) {
        __m256i b = _mm256_set1_epi32((int)(bits >> 8 * k & 255));
        b = _mm256_cmpeq_epi32(_mm256_and_si256(b, bit), bit);
        v[k] = m256_select_ps(minus, plus, _mm256_castsi256_ps(b));
    }
}

/* Bits of eight floats without the sign. */
static inline __m256i gg_v256_abs_bits(__m256 v)
{
    return _mm256_and_si256(_mm256_castps_si256(v),
                            _mm256_set1_epi32(0x7fffffff));
}

static inline __m256 gg_v256_abs_ps(__m256 v)
{
    return _mm256_castsi256_ps(gg_v256_abs_bits(v));
}

/* Importances of n floats (a multiple of 8): weight * sqrt(sigma2 + x^2), or
 * x^2 if weight is NULL. */
static inline void gg_v256_importances(const float *x, const float *weight,
                                       float sigma2, int n, float *w)
{
    const __m256 s = _mm256_set1_ps(sigma2);
    for (int i = 0; i < n; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);
        v = _mm256_mul_ps(v, v);
        if (weight)
            v = _mm256_mul_ps(_mm256_loadu_ps(weight + i),
                              _mm256_sqrt_ps(_mm256_add_ps(s, v)));
        _mm256_storeu_ps(w + i, v);
    }
}

/* Largest of eight signed integers. */
static inline int gg_v256_hmax_epi32(__m256i v)
{
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v),
                              _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return _mm_cvtsi128_si32(m);
}

/* Sum of eight floats: adds the upper half to the lower, then again, until one
 * is left. */
static inline float gg_v256_hsum_ps(__m256 v)
{
    __m128 s =
        _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* Largest of eight floats, none of them NaN. */
static inline float gg_v256_hmax_ps(__m256 v)
{
    __m128 m =
        _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/* Least of eight floats, none of them NaN. */
static inline float gg_v256_hmin_ps(__m256 v)
{
    __m128 m =
        _mm_min_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_min_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_min_ss(m, _mm_movehdup_ps(m)));
}

/* Are n floats (a multiple of 8) all finite? */
static inline int gg_v256_all_finite(const float *x, size_t n)
{
    __m256i m = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 8)
        m = _mm256_max_epi32(m, gg_v256_abs_bits(_mm256_loadu_ps(x + i)));
    return gg_v256_hmax_epi32(m) < 0x7f800000;
}

/* gg_kern_nearest of round.h, for every input. */
static inline __m256i gg_v256_nearest_epi32(__m256 v)
{
    v = _mm256_add_ps(v, _mm256_set1_ps(12582912.0f));
    return _mm256_sub_epi32(
        _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7fffff)),
        _mm256_set1_epi32(0x400000));
}

static inline __m256i gg_v256_clamp_epi32(__m256i v, int lo, int hi)
{
    return _mm256_min_epi32(_mm256_max_epi32(v, _mm256_set1_epi32(lo)),
                            _mm256_set1_epi32(hi));
}

/* Nearest float integer for |v| <= 2^22: there the same as gg_kern_nearest. */
static inline __m256 gg_v256_nearest_ps(__m256 v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* The low bytes of four vectors of eight integers, each in -128 .. 255, in
 * order; is_signed says whether they are -128 .. 127. */
static inline __m256i gg_v256_pack_bytes(__m256i a, __m256i b, __m256i c,
                                         __m256i d, int is_signed)
{
    return is_signed ? m256_pack_signed(a, b, c, d)
                     : m256_pack_unsigned(a, b, c, d);
}

/* gg_round_away of round.h for |v| < 2^22; INT32_MIN for numbers out of range.
 * Adding the float below one half and truncating is exact: only a fraction of
 * at least one half reaches the next integer. */
static inline __m256i gg_round_away_epi32(__m256 v)
{
    __m256 sign = _mm256_and_ps(v, _mm256_set1_ps(-0.0f));
    __m256 h = _mm256_or_ps(sign, _mm256_set1_ps(0x1.fffffep-2f));
    return _mm256_cvttps_epi32(_mm256_add_ps(v, h));
}

/* The low bytes of four vectors, whatever the rest of each lane is. */
static inline __m256i gg_v256_low_bytes(const __m256i v[4])
{
    const __m256i byte = _mm256_set1_epi32(255);
    return gg_v256_pack_bytes(
        _mm256_and_si256(v[0], byte), _mm256_and_si256(v[1], byte),
        _mm256_and_si256(v[2], byte), _mm256_and_si256(v[3], byte), 0);
}

/* Sums of 16 columns, row after row. */
static inline void gg_v256_sum_lanes(const float w[][16], int n, float sum[16])
{
    for (int g = 0; g < 16; g += 8) {
        __m256 s = _mm256_setzero_ps();
        for (int i = 0; i < n; i++)
            s = _mm256_add_ps(s, _mm256_loadu_ps(&w[i][g]));
        _mm256_storeu_ps(sum + g, s);
    }
}

/* Lowest pairs of bits of 256 codes: four codes a byte, 32 apart. */
static inline void gg_v256_put_pairs(uint8_t qs[64], const uint8_t q[256])
{
    const __m256i two = _mm256_set1_epi8(3);
    for (int h = 0; h < 2; h++) {
        __m256i v = _mm256_setzero_si256();
        for (int r = 3; r >= 0; r--) {
            __m256i c = gg_v256_load256(q + 128 * h + 32 * r);
            v = _mm256_or_si256(_mm256_slli_epi16(v, 2),
                                _mm256_and_si256(c, two));
        }
        _mm256_storeu_si256((__m256i *)(qs + 32 * h), v);
    }
}

/* v[r] lane c becomes v[c] lane r. Unrolled, or v would be in memory. */
static GG_ALWAYS_INLINE void gg_v256_transpose8(__m256 v[8])
{
    __m256 a[8], b[8];
    GG_UNROLL
    for (int i = 0; i < 4; i++) {
        a[2 * i] = _mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]);
    }
    GG_UNROLL
    for (int i = 0; i < 4; i++) {
        int j = i / 2 * 4 + i % 2; /* 0 1 4 5 */
        int k = i / 2 * 4 + i % 2 * 2;
        b[k] = _mm256_shuffle_ps(a[j], a[j + 2], 0x44);
        b[k + 1] = _mm256_shuffle_ps(a[j], a[j + 2], 0xee);
    }
    GG_UNROLL
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}

/* Columns i .. i + 7 of eight rows: row k of the result, at out + k * step,
 * is element i + k of each row. */
static inline void gg_v256_load_columns(const float *const row[8], int i,
                                        float *out, size_t step)
{
    __m256 v[8];
    GG_UNROLL
    for (int k = 0; k < 8; k++)
        v[k] = _mm256_loadu_ps(row[k] + i);
    gg_v256_transpose8(v);
    GG_UNROLL
    for (int k = 0; k < 8; k++)
        _mm256_storeu_ps(out + step * (size_t)k, v[k]);
}

/* The least of n floats that come eight at a time, below FLT_MAX, and the
 * first place that has it. */
struct gg_v256_least {
    __m256 value;
    __m256i at;
};

static inline struct gg_v256_least gg_v256_least_none(void)
{
    return (struct gg_v256_least){ _mm256_set1_ps(FLT_MAX),
                                   _mm256_setzero_si256() };
}

/* Floats j .. j + 7; those from n on do not count. */
static inline void gg_v256_least_add(struct gg_v256_least *l, __m256 v, int j,
                                     int n)
{
    const __m256i step = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i at = _mm256_add_epi32(_mm256_set1_epi32(j), step);
    __m256i in = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), at);
    __m256 m = _mm256_and_ps(_mm256_cmp_ps(v, l->value, _CMP_LT_OQ),
                             _mm256_castsi256_ps(in));
    l->value = m256_select_ps(l->value, v, m);
    l->at = m256_select(l->at, at, _mm256_castps_si256(m));
}

/* Where the least is; 0 if none counted. */
static inline int gg_v256_least_place(const struct gg_v256_least *l)
{
    __m128 m = _mm_min_ps(_mm256_castps256_ps128(l->value),
                          _mm256_extractf128_ps(l->value, 1));
    m = _mm_min_ps(m, _mm_movehl_ps(m, m));
    m = _mm_min_ss(m, _mm_shuffle_ps(m, m, 1));
    __m256 eq = _mm256_cmp_ps(l->value, _mm256_broadcastss_ps(m), _CMP_EQ_OQ);
    __m256i p = m256_select(_mm256_set1_epi32(INT32_MAX), l->at,
                            _mm256_castps_si256(eq));
    /* the least of p is the largest of its complement */
    return ~gg_v256_hmax_epi32(_mm256_xor_si256(p, _mm256_set1_epi32(-1)));
}

#endif
