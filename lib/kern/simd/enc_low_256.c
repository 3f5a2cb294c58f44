/* SPDX-License-Identifier: MIT */
/* enc_low_256.c - encoders without a search: MXFP4, NVFP4, TQ1_0, TQ2_0,
 * Q1_0, Q2_0, Q8_K
 *
 * The reference's roundings are kept where they can show; where the nearest
 * level can be told by exact comparisons alone, it is (c/enc_fp4.c).
 */
#include "config.h"
#include "kern/codec.h"
#include "base/compiler.h"
#include "kern/c/block_io.h"
#include "kern/c/fp4.h"
#include "kern/c/round.h"
#include "kern/simd/v256.h"

/* Bits of the largest magnitude of n floats, a multiple of 8:
 * gg_kern_max_abs. */
static inline int max_bits(const float *x, size_t n)
{
    __m256i m = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 8)
        m = _mm256_max_epi32(m, gg_v256_abs_bits(_mm256_loadu_ps(x + i)));
    return gg_v256_hmax_epi32(m);
}

static inline float max_abs(const float *x, size_t n)
{
    return gg_bytes_f32_from_bits((uint32_t)max_bits(x, n));
}

/* ----------------------------------------------------------- four bits --- */

/* Midpoints between levels; a midpoint itself rounds to the lower level. Code k
 * is for magnitudes above midpoint k - 1. */
struct middles {
    __m256 v[7];
};

static inline struct middles middles_of(float d)
{
    __m256 m = _mm256_set1_ps(d);
    return (struct middles){ { _mm256_mul_ps(m, _mm256_set1_ps(0.5f)),
                               _mm256_mul_ps(m, _mm256_set1_ps(1.5f)),
                               _mm256_mul_ps(m, _mm256_set1_ps(2.5f)),
                               _mm256_mul_ps(m, _mm256_set1_ps(3.5f)),
                               _mm256_mul_ps(m, _mm256_set1_ps(5)),
                               _mm256_mul_ps(m, _mm256_set1_ps(7)),
                               _mm256_mul_ps(m, _mm256_set1_ps(10)) } };
}

/* May codes be found by comparing with the midpoints? The reference compares
 * rounded distances to the levels, level[i] * d. Between two levels distances
 * are exact, or as different as the true ones; above the last level they are so
 * while a is a multiple of less than the levels' last bit, d / 8. If the upper
 * level overflows, none is exact. */
static inline int by_middles(float amax, float d)
{
    return amax <= 65536 * d && d <= FLT_MAX / 12;
}

/* One less where a is above. */
static inline __m256i count_below(__m256i k, __m256 a, __m256 middle)
{
    __m256 above = _mm256_cmp_ps(a, middle, _CMP_GT_OQ);
    return _mm256_add_epi32(k, _mm256_castps_si256(above));
}

/* Eight codes; bit 3 is the sign, also of a zero. Written out: gcc -O2 would
 * keep the middles of a loop in memory. */
static inline __m256i fp4_codes(const float *src, const struct middles *m)
{
    __m256 x = _mm256_loadu_ps(src), a = gg_v256_abs_ps(x);
    __m256i k = count_below(_mm256_setzero_si256(), a, m->v[0]);
    __m256i n = count_below(_mm256_setzero_si256(), a, m->v[1]);
    k = count_below(k, a, m->v[2]);
    n = count_below(n, a, m->v[3]);
    k = count_below(k, a, m->v[4]);
    n = count_below(n, a, m->v[5]);
    k = count_below(k, a, m->v[6]);
    x = _mm256_and_ps(x, _mm256_set1_ps(-0.0f));
    x = _mm256_castsi256_ps(_mm256_srli_epi32(_mm256_castps_si256(x), 28));
    return _mm256_sub_epi32(_mm256_castps_si256(x), _mm256_add_epi32(k, n));
}

/* 32 codes in a byte each, from four vectors; a zero has no sign. */
static inline __m256i fp4_bytes(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i plain = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11, 12, 13, 14, 15));
    return m256_lookup(plain, gg_v256_pack_bytes(a, b, c, d, 1));
}

void gg_kern_encode_mxfp4_256(const float *src, void *dst, size_t n_rows,
                              size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    for (size_t i = 0; i < n_rows * row_len / 32; i++, src += 32) {
        float amax = max_abs(src, 32);
        p[0] = gg_kern_mxfp4_exponent(amax);
        float d = gg_kern_e8m0_half(p[0]);
        if (by_middles(amax, d)) {
            struct middles m = middles_of(d);
            gg_v256_put_nibbles(
                p + offsetof(struct gg_block_mxfp4, qs),
                fp4_bytes(fp4_codes(src, &m), fp4_codes(src + 8, &m),
                          fp4_codes(src + 16, &m), fp4_codes(src + 24, &m)));
        } else {
            gg_kern_encode_mxfp4_c(src, p, 1, 32, weight);
        }
        p += sizeof(struct gg_block_mxfp4);
    }
}

/* Middles for 16 elements, and the scale's code; 0: they take the reference.
 * Where the scale is 0 no level is nearer than the first. */
static inline int nvfp4_middles(const float *src, uint8_t *code,
                                struct middles *m)
{
    float amax = max_abs(src, 16);
    *code = gg_kern_ue4m3_of(amax / 6);
    float d = gg_kern_ue4m3_half(*code);
    *m = middles_of(d != 0 ? d : INFINITY);
    return d == 0 || by_middles(amax, d);
}

/* Two sub-blocks of 16; 0: they take the reference. */
static inline int nvfp4_two(const float *src, uint8_t d[2], uint8_t *qs)
{
    struct middles m, n;
    if (!nvfp4_middles(src, d, &m) || !nvfp4_middles(src + 16, d + 1, &n))
        return 0;
    /* eight bytes: element j and, in the high nibble, element j + 8 */
    __m256i q = fp4_bytes(fp4_codes(src, &m), fp4_codes(src + 8, &m),
                          fp4_codes(src + 16, &n), fp4_codes(src + 24, &n));
    q = _mm256_or_si256(q, _mm256_slli_epi16(_mm256_srli_si256(q, 8), 4));
    q = _mm256_permute4x64_epi64(q, 0x08);
    _mm_storeu_si128((void *)qs, _mm256_castsi256_si128(q));
    return 1;
}

void gg_kern_encode_nvfp4_256(const float *src, void *dst, size_t n_rows,
                              size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    for (size_t i = 0; i < n_rows * row_len / 64; i++, src += 64) {
        uint8_t *qs = p + offsetof(struct gg_block_nvfp4, qs);
        if (!nvfp4_two(src, p, qs) || !nvfp4_two(src + 32, p + 2, qs + 16))
            gg_kern_encode_nvfp4_c(src, p, 1, 64, weight);
        p += sizeof(struct gg_block_nvfp4);
    }
}

/* ---------------------------------------------------------- few levels --- */

/* 32 times gg_round_away(x * inv), in bytes. */
static inline __m256i rounded32(const float *x, float inv)
{
    __m256 scale = _mm256_set1_ps(inv);
    __m256i v[4];
    for (int k = 0; k < 4; k++)
        v[k] = gg_round_away_epi32(
            _mm256_mul_ps(_mm256_loadu_ps(x + 8 * k), scale));
    return gg_v256_low_bytes(v);
}

/* Digits 0, 1, 2 of 256 elements; returns the scale. */
static inline float ternary_digits(const float *x, __m256i digit[8])
{
    float d = max_abs(x, 256), inv = d != 0 ? 1 / d : 0;
    for (int k = 0; k < 8; k++)
        digit[k] =
            _mm256_add_epi8(rounded32(x + 32 * k, inv), _mm256_set1_epi8(1));
    return d;
}

/* 3 * q + digit, of bytes. */
static inline __m256i next_digit(__m256i q, __m256i digit)
{
    return _mm256_add_epi8(_mm256_add_epi8(q, q), _mm256_add_epi8(q, digit));
}

/* ceil(256 * q / 243) of bytes up to 242: q + ceil(13 * q / 243), whose
 * quotient is exact: 34522 is 2^23 / 243 and less than 1 more, and the product
 * of that with 13 * 242 + 242 is below 2^23 / 243. */
static inline __m256i ternary_bytes(__m256i q)
{
    const __m256i byte = _mm256_set1_epi16(255);
    __m256i part[2] = { _mm256_and_si256(q, byte), _mm256_srli_epi16(q, 8) };
    for (int k = 0; k < 2; k++) {
        __m256i v = _mm256_mullo_epi16(part[k], _mm256_set1_epi16(13));
        v = _mm256_add_epi16(v, _mm256_set1_epi16(242));
        v = _mm256_mulhi_epu16(v, _mm256_set1_epi16((short)34522));
        part[k] = _mm256_srli_epi16(v, 7);
    }
    part[1] = _mm256_slli_epi16(part[1], 8);
    return _mm256_add_epi8(q, _mm256_or_si256(part[0], part[1]));
}

void gg_kern_encode_tq1_0_256(const float *src, void *dst, size_t n_rows,
                              size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 256; i++, src += 256) {
        __m256i t[8], q;
        gg_v256_put_half_ps(p + offsetof(struct gg_block_tq1_0, d),
                            ternary_digits(src, t));
        q = t[0];
        for (int k = 1; k < 5; k++)
            q = next_digit(q, t[k]);
        _mm256_storeu_si256((void *)p, ternary_bytes(q));
        /* 16 bytes of five digits each, then four bytes of four: the upper
         * lanes of q go on with the latter, whose digits are 4 bytes apart */
        __m256i h[5] = { t[5], _mm256_srli_si256(t[7], 4),
                         _mm256_srli_si256(t[7], 8),
                         _mm256_srli_si256(t[7], 12), _mm256_setzero_si256() };
        q = _mm256_blend_epi32(t[5], t[7], 0xf0);
        h[1] = _mm256_blend_epi32(_mm256_permute2x128_si256(t[5], t[5], 0x11),
                                  h[1], 0xf0);
        h[2] = _mm256_blend_epi32(t[6], h[2], 0xf0);
        h[3] = _mm256_blend_epi32(_mm256_permute2x128_si256(t[6], t[6], 0x11),
                                  h[3], 0xf0);
        h[4] = _mm256_blend_epi32(t[7], h[4], 0xf0);
        for (int k = 1; k < 5; k++)
            q = next_digit(q, h[k]);
        q = ternary_bytes(q);
        _mm_storeu_si128((void *)(p + 32), _mm256_castsi256_si128(q));
        gg_bytes_store32le(p + offsetof(struct gg_block_tq1_0, qh),
                           (uint32_t)_mm256_extract_epi32(q, 4));
        p += sizeof(struct gg_block_tq1_0);
    }
}

void gg_kern_encode_tq2_0_256(const float *src, void *dst, size_t n_rows,
                              size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 256; i++, src += 256) {
        __m256i t[8];
        gg_v256_put_half_ps(p + offsetof(struct gg_block_tq2_0, d),
                            ternary_digits(src, t));
        for (int h = 0; h < 2; h++) {
            const __m256i *d = t + 4 * h;
            __m256i lo = _mm256_or_si256(d[0], _mm256_slli_epi16(d[1], 2));
            __m256i hi = _mm256_or_si256(d[2], _mm256_slli_epi16(d[3], 2));
            lo = _mm256_or_si256(lo, _mm256_slli_epi16(hi, 4));
            _mm256_storeu_si256((void *)(p + 32 * h), lo);
        }
        p += sizeof(struct gg_block_tq2_0);
    }
}

/* 32 codes of two bits, four a byte, next to each other. */
static inline void put_codes2(uint8_t *out, __m256i q)
{
    const __m256i first = _mm256_setr_epi8(
        0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8,
        12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    q = _mm256_maddubs_epi16(q, _mm256_set1_epi16(0x0401));
    q = _mm256_madd_epi16(q, _mm256_set1_epi32(0x00100001));
    q = m256_lookup(q, first);
    gg_bytes_store32le(out, (uint32_t)_mm256_extract_epi32(q, 0));
    gg_bytes_store32le(out + 4, (uint32_t)_mm256_extract_epi32(q, 4));
}

void gg_kern_encode_q2_0_256(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    (void)weight;
    for (size_t i = 0; i < n_rows * row_len / 64; i++) {
        float d = max_abs(src, 64);
        __m256 inv = _mm256_set1_ps(d > 0 ? 1 / d : 0);
        gg_v256_put_half_ps(p, d);
        for (int h = 0; h < 2; h++, src += 32) {
            __m256i v[4];
            for (int k = 0; k < 4; k++) {
                __m256 t = _mm256_mul_ps(_mm256_loadu_ps(src + 8 * k), inv);
                v[k] = _mm256_add_epi32(gg_round_away_epi32(t),
                                        _mm256_set1_epi32(1));
                v[k] = gg_v256_clamp_epi32(v[k], 0, 3);
            }
            put_codes2(p + offsetof(struct gg_block_q2_0, qs) + 8 * h,
                       gg_v256_pack_bytes(v[0], v[1], v[2], v[3], 1));
        }
        p += sizeof(struct gg_block_q2_0);
    }
}

/* Sums of magnitudes of eight blocks of 128, one lane each, in order. */
static inline void sums_of_eight(const float *x, float sum[8])
{
    __m256 s = _mm256_setzero_ps();
    for (int j = 0; j < 128; j += 8) {
        __m256 v[8];
        for (int b = 0; b < 8; b++)
            v[b] = gg_v256_abs_ps(_mm256_loadu_ps(x + 128 * b + j));
        gg_v256_transpose8(v);
        for (int k = 0; k < 8; k++)
            s = _mm256_add_ps(s, v[k]);
    }
    _mm256_storeu_ps(sum, s);
}

void gg_kern_encode_q1_0_256(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    size_t n = n_rows * row_len / 128, i = 0;
    for (; i + 8 <= n; i += 8) {
        float sum[8];
        sums_of_eight(src, sum);
        for (int b = 0; b < 8; b++, src += 128) {
            gg_v256_put_half_ps(p, sum[b] / 128);
            for (int j = 0; j < 16; j++) {
                __m256 v = _mm256_cmp_ps(_mm256_loadu_ps(src + 8 * j),
                                         _mm256_setzero_ps(), _CMP_GE_OQ);
                p[2 + j] = (uint8_t)_mm256_movemask_ps(v);
            }
            p += sizeof(struct gg_block_q1_0);
        }
    }
    if (i < n)
        gg_kern_encode_q1_0_c(src, p, 1, 128 * (n - i), weight);
}

/* ----------------------------------------------------- for activations --- */

/* The first of 256 finite floats with the largest magnitude, of these bits. */
static inline float extreme_element(const float *x, int bits)
{
    const __m256i m = _mm256_set1_epi32(bits);
    int found = 0;
    size_t i = 0;
    for (; !found; i += 8)
        found = _mm256_movemask_ps(_mm256_castsi256_ps(
            _mm256_cmpeq_epi32(gg_v256_abs_bits(_mm256_loadu_ps(x + i)), m)));
    return x[i - 8 + GG_CTZ32((uint32_t)found)];
}

/* Sums of four signed bytes. */
static inline __m256i sums_of_four(__m256i q)
{
    __m256i v = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
    return _mm256_madd_epi16(v, _mm256_set1_epi16(1));
}

/* Sums of 16 codes each. */
static inline void put_sums(uint8_t *out, const __m256i q[8])
{
    __m256i h[2];
    for (int k = 0; k < 2; k++) {
        __m256i a = _mm256_hadd_epi32(sums_of_four(q[4 * k]),
                                      sums_of_four(q[4 * k + 1]));
        __m256i b = _mm256_hadd_epi32(sums_of_four(q[4 * k + 2]),
                                      sums_of_four(q[4 * k + 3]));
        h[k] = _mm256_hadd_epi32(a, b);
    }
    /* sums 0 2 4 6, 8 10 12 14 in the low half, the odd ones in the high */
    __m256i v = _mm256_packs_epi32(h[0], h[1]);
    __m128i even = _mm256_castsi256_si128(v);
    __m128i odd = _mm256_extracti128_si256(v, 1);
    _mm_storeu_si128((void *)out, _mm_unpacklo_epi16(even, odd));
    _mm_storeu_si128((void *)(out + 16), _mm_unpackhi_epi16(even, odd));
}

void gg_kern_encode_q8_k_256(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    uint8_t *p = dst;
    for (size_t i = 0; i < n_rows * row_len / 256; i++, src += 256) {
        int bits = max_bits(src, 256);
        if (bits == 0 || bits >= 0x7f800000) {
            gg_kern_encode_q8_k_c(src, p, 1, 256, weight);
            p += sizeof(struct gg_block_q8_k);
            continue;
        }
        float inv = -127.0f / extreme_element(src, bits);
        __m256 scale = _mm256_set1_ps(inv);
        __m256i q[8];
        for (int k = 0; k < 8; k++) {
            __m256i v[4];
            for (int j = 0; j < 4; j++) {
                __m256 x = _mm256_loadu_ps(src + 32 * k + 8 * j);
                v[j] = gg_v256_nearest_epi32(_mm256_mul_ps(scale, x));
                v[j] = _mm256_min_epi32(v[j], _mm256_set1_epi32(127));
            }
            q[k] = gg_v256_low_bytes(v);
            _mm256_storeu_si256(
                (void *)(p + offsetof(struct gg_block_q8_k, qs) + 32 * k),
                q[k]);
        }
        gg_bytes_store32le(p, gg_bytes_f32_bits(1 / inv));
        put_sums(p + offsetof(struct gg_block_q8_k, bsums), q);
        p += sizeof(struct gg_block_q8_k);
    }
}
