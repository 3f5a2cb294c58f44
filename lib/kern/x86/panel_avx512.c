/* panel_avx512.c - rows of blocks straight into exact panels, for AVX-512
 *
 * Lanes are rows: four bytes of each of 16 rows lie in a vector before
 * anything is decoded, so that what is transposed is a quarter to an eighth of
 * what the floats would be, and each row's scale is a lane.
 *
 * A byte of a lane is not moved down: masked where it is, byte b is its number
 * times 2^8b, as an integer and as a float exact, and the scale that it is
 * multiplied by is divided by 2^8b before. That is exact, too: scales are
 * f16 or products of those with integers below 2^8, at least 2^-24, and so far
 * above what is subnormal. So each product is rounded as the decoder rounds it.
 */
#include "config.h"
#include "base/compiler.h"
#include "dtype/block.h"
#include "dtype/iq_code.h"
#include "kern/gemm.h"

#include <immintrin.h>
#include <stddef.h>
#include <string.h>

enum { ROWS = GG_GEMM_PANEL_ROWS };

/* Where rows are, and where their steps go, width floats apart. */
struct rows {
    const uint8_t *at;
    size_t stride;
    float *to;
    size_t width;
};

/* Scales of 16 rows divided by 1, 2^8, 2^16, 2^24, and minima. */
struct factors {
    __m512 s[4], m;
};

static GG_ALWAYS_INLINE struct factors factors(__m512 scale, __m512 min)
{
    return (struct factors){
        { scale, _mm512_mul_ps(scale, _mm512_set1_ps(0x1p-8f)),
          _mm512_mul_ps(scale, _mm512_set1_ps(0x1p-16f)),
          _mm512_mul_ps(scale, _mm512_set1_ps(0x1p-24f)) },
        min
    };
}

static GG_ALWAYS_INLINE __m128i load_16(const struct rows *r, size_t off,
                                        size_t row)
{
    return _mm_loadu_si128((const void *)(r->at + row * r->stride + off));
}

/* 16 bytes of each row, from off on: v[i] is 32 bits of each. */
static GG_ALWAYS_INLINE void take(const struct rows *r, size_t off,
                                  __m512i v[4])
{
    __m512i q[4], t[4];
    GG_UNROLL
    for (size_t i = 0; i < 4; i++) { /* quarters: rows i, i + 4, ... */
        q[i] = _mm512_castsi128_si512(load_16(r, off, i));
        q[i] = _mm512_inserti32x4(q[i], load_16(r, off, i + 4), 1);
        q[i] = _mm512_inserti32x4(q[i], load_16(r, off, i + 8), 2);
        q[i] = _mm512_inserti32x4(q[i], load_16(r, off, i + 12), 3);
    }
    GG_UNROLL
    for (int i = 0; i < 4; i += 2) {
        t[i] = _mm512_unpacklo_epi32(q[i], q[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(q[i], q[i + 1]);
    }
    v[0] = _mm512_unpacklo_epi64(t[0], t[2]);
    v[1] = _mm512_unpackhi_epi64(t[0], t[2]);
    v[2] = _mm512_unpacklo_epi64(t[1], t[3]);
    v[3] = _mm512_unpackhi_epi64(t[1], t[3]);
}

/* The low half of each lane, an f16, as a float. */
static GG_ALWAYS_INLINE __m512 halves(__m512i v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

/* The f16 of each row, from off on. */
static GG_ALWAYS_INLINE __m512 take_half(const struct rows *r, size_t off)
{
    _Alignas(32) uint16_t h[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        memcpy(&h[i], r->at + i * r->stride + off, sizeof h[i]);
    return _mm512_cvtph_ps(_mm256_load_si256((const void *)h));
}

/* Byte b of each lane as a float. */
static GG_ALWAYS_INLINE __m512 byte_ps(__m512i v, int b, int is_signed)
{
    v = _mm512_slli_epi32(v, (unsigned)(24 - 8 * b));
    v = is_signed ? _mm512_srai_epi32(v, 24) : _mm512_srli_epi32(v, 24);
    return _mm512_cvtepi32_ps(v);
}

/* The bits of mask of the bytes of v, less bias, are steps at, at + 1, ... */
static GG_ALWAYS_INLINE void put(const struct rows *r, size_t at, __m512i v,
                                 const struct factors *f, unsigned mask,
                                 unsigned bias, int has_min)
{
    GG_UNROLL
    for (unsigned b = 0; b < 4; b++) {
        const __m512i q =
            _mm512_and_si512(v, _mm512_set1_epi32((int)(mask << 8 * b)));
        __m512 w = bias ? _mm512_cvtepi32_ps(_mm512_sub_epi32(
                              q, _mm512_set1_epi32((int)(bias << 8 * b))))
                        : _mm512_cvtepu32_ps(q);
        w = _mm512_mul_ps(f->s[b], w);
        if (has_min)
            w = _mm512_sub_ps(w, f->m);
        _mm512_storeu_ps(r->to + (at + b) * r->width, w);
    }
}

/* The types with blocks of 32, of which bytes are one or two pieces. */
static GG_ALWAYS_INLINE void end_block(struct rows *r, size_t size, size_t n)
{
    r->at += size;
    r->to += n * r->width;
}

#define BEGIN struct rows r = { src, stride, dst, width };

void gg_kern_panel_q4_0_avx512(const void *src, size_t stride, float *dst,
                               size_t width, size_t n)
{
    BEGIN
    __m512i v[4];
    for (; n; n -= 32) {
        const struct factors f =
            factors(take_half(&r, 0), _mm512_setzero_ps());
        take(&r, offsetof(struct gg_block_q4_0, qs), v);
        GG_UNROLL
        for (size_t i = 0; i < 4; i++) {
            put(&r, 4 * i, v[i], &f, 15, 8, 0);
            put(&r, 16 + 4 * i, _mm512_srli_epi32(v[i], 4), &f, 15, 8, 0);
        }
        end_block(&r, sizeof(struct gg_block_q4_0), 32);
    }
}

void gg_kern_panel_q8_0_avx512(const void *src, size_t stride, float *dst,
                               size_t width, size_t n)
{
    BEGIN
    __m512i v[4];
    const __m512i bias = _mm512_set1_epi8((char)128);
    for (; n; n -= 32) {
        const struct factors f =
            factors(take_half(&r, 0), _mm512_setzero_ps());
        for (size_t h = 0; h < 32; h += 16) {
            take(&r, offsetof(struct gg_block_q8_0, qs) + h, v);
            GG_UNROLL
            for (size_t i = 0; i < 4; i++)
                put(&r, h + 4 * i, _mm512_xor_si512(v[i], bias), &f, 255, 128,
                    0);
        }
        end_block(&r, sizeof(struct gg_block_q8_0), 32);
    }
}

/* The first 16 bytes of a block of Q4_K or Q5_K: d, dmin, and eight scales and
 * minima of six bits (gg_kern_k4_scale, gg_kern_k4_min). */
static GG_ALWAYS_INLINE void take_k4(const struct rows *r, __m512 scale[8],
                                     __m512 min[8])
{
    const __m512i six = _mm512_set1_epi32(0x3f3f3f3f),
                  four = _mm512_set1_epi32(0x0f0f0f0f),
                  two = _mm512_set1_epi32(0x30303030);
    __m512i v[4], s[2], m[2];
    take(r, 0, v);
    const __m512 d = halves(v[0]), dmin = halves(_mm512_srli_epi32(v[0], 16));
    s[0] = _mm512_and_si512(v[1], six);
    m[0] = _mm512_and_si512(v[2], six);
    s[1] = _mm512_or_si512(_mm512_and_si512(v[3], four),
                           _mm512_and_si512(_mm512_srli_epi32(v[1], 2), two));
    m[1] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(v[3], 4), four),
                           _mm512_and_si512(_mm512_srli_epi32(v[2], 2), two));
    GG_UNROLL
    for (int j = 0; j < 8; j++) {
        scale[j] = _mm512_mul_ps(d, byte_ps(s[j / 4], j % 4, 0));
        min[j] = _mm512_mul_ps(dmin, byte_ps(m[j / 4], j % 4, 0));
    }
}

void gg_kern_panel_q4_k_avx512(const void *src, size_t stride, float *dst,
                               size_t width, size_t n)
{
    BEGIN
    __m512i v[4];
    for (; n; n -= 256) {
        __m512 scale[8], min[8];
        take_k4(&r, scale, min);
        for (size_t s = 0; s < 8; s += 2) {
            const struct factors low = factors(scale[s], min[s]),
                                 high = factors(scale[s + 1], min[s + 1]);
            for (size_t h = 0; h < 32; h += 16) {
                take(&r, offsetof(struct gg_block_q4_k, qs) + 16 * s + h, v);
                GG_UNROLL
                for (size_t i = 0; i < 4; i++) {
                    const size_t at = 32 * s + h + 4 * i;
                    put(&r, at, v[i], &low, 15, 0, 1);
                    put(&r, at + 32, _mm512_srli_epi32(v[i], 4), &high, 15, 0,
                        1);
                }
            }
        }
        end_block(&r, sizeof(struct gg_block_q4_k), 256);
    }
}

void gg_kern_panel_q5_k_avx512(const void *src, size_t stride, float *dst,
                               size_t width, size_t n)
{
    BEGIN
    __m512i v[4];
    const __m512i four = _mm512_set1_epi32(0x0f0f0f0f),
                  fifth = _mm512_set1_epi32(0x10101010);
    for (; n; n -= 256) {
        __m512 scale[8], min[8];
        __m512i high[8];
        take_k4(&r, scale, min);
        take(&r, offsetof(struct gg_block_q5_k, qh), high);
        take(&r, offsetof(struct gg_block_q5_k, qh) + 16, high + 4);
        for (unsigned s = 0; s < 8; s++) {
            const struct factors f = factors(scale[s], min[s]);
            for (unsigned i = 0; i < 8; i++) {
                if (i % 4 == 0)
                    take(&r,
                         offsetof(struct gg_block_q5_k, qs) + s / 2 * 32 +
                             4 * i,
                         v);
                __m512i q = v[i % 4], bit = _mm512_srli_epi32(high[i], s);
                q = _mm512_and_si512(s % 2 ? _mm512_srli_epi32(q, 4) : q,
                                     four);
                bit = _mm512_and_si512(_mm512_slli_epi32(bit, 4), fifth);
                put(&r, 32 * s + 4 * i, _mm512_or_si512(q, bit), &f, 31, 0, 1);
            }
        }
        end_block(&r, sizeof(struct gg_block_q5_k), 256);
    }
}

void gg_kern_panel_q6_k_avx512(const void *src, size_t stride, float *dst,
                               size_t width, size_t n)
{
    BEGIN
    const __m512i four = _mm512_set1_epi32(0x0f0f0f0f),
                  two = _mm512_set1_epi32(0x30303030);
    for (; n; n -= 256) {
        __m512i scale[4];
        const __m512 d = take_half(&r, offsetof(struct gg_block_q6_k, d));
        take(&r, offsetof(struct gg_block_q6_k, scales), scale);
        for (size_t p = 0; p < 4; p++) { /* 16 of 32 steps, four times */
            const size_t h = p / 2, at = 128 * h + 16 * (p % 2);
            __m512i low[2][4], up[4];
            take(&r, 64 * h + 16 * (p % 2), low[0]);
            take(&r, 64 * h + 16 * (p % 2) + 32, low[1]);
            take(&r, offsetof(struct gg_block_q6_k, qh) + 16 * p, up);
            GG_UNROLL
            for (size_t k = 0; k < 4; k++) {
                /* of sub-block 8 h + 2 k + p % 2 */
                const __m512i sub = scale[2 * h + k / 2];
                const __m512 s = p % 2 ? byte_ps(sub, 2 * (k % 2) + 1, 1)
                                       : byte_ps(sub, 2 * (k % 2), 1);
                const struct factors f =
                    factors(_mm512_mul_ps(d, s), _mm512_setzero_ps());
                GG_UNROLL
                for (size_t i = 0; i < 4; i++) {
                    __m512i q = low[k % 2][i], u = up[i];
                    q = k < 2 ? q : _mm512_srli_epi32(q, 4);
                    u = k < 2 ? _mm512_slli_epi32(u, (unsigned)(4 - 2 * k))
                              : _mm512_srli_epi32(u, (unsigned)(2 * k - 4));
                    q = _mm512_or_si512(_mm512_and_si512(q, four),
                                        _mm512_and_si512(u, two));
                    put(&r, at + 32 * k + 4 * i, q, &f, 63, 32, 0);
                }
            }
        }
        end_block(&r, sizeof(struct gg_block_q6_k), 256);
    }
}

void gg_kern_panel_q2_k_avx512(const void *src, size_t stride, float *dst,
                               size_t width, size_t n)
{
    BEGIN
    __m512i v[4];
    const __m512i four = _mm512_set1_epi32(0x0f0f0f0f);
    for (; n; n -= 256) {
        __m512i scale[4];
        const __m512 d = take_half(&r, offsetof(struct gg_block_q2_k, d)),
                     dmin =
                         take_half(&r, offsetof(struct gg_block_q2_k, dmin));
        take(&r, offsetof(struct gg_block_q2_k, scales), scale);
        for (size_t p = 0; p < 4; p++) {
            const size_t h = p / 2, at = 128 * h + 16 * (p % 2);
            take(&r, offsetof(struct gg_block_q2_k, qs) + 16 * p, v);
            GG_UNROLL
            for (size_t k = 0; k < 4; k++) {
                __m512i both = scale[2 * h + k / 2];
                if (p % 2)
                    both = _mm512_srli_epi32(both, 8);
                const __m512i min =
                    _mm512_and_si512(_mm512_srli_epi32(both, 4), four);
                const int b = 2 * (k % 2);
                const struct factors f = factors(
                    _mm512_mul_ps(d,
                                  byte_ps(_mm512_and_si512(both, four), b, 0)),
                    _mm512_mul_ps(dmin, byte_ps(min, b, 0)));
                GG_UNROLL
                for (size_t i = 0; i < 4; i++)
                    put(&r, at + 32 * k + 4 * i,
                        _mm512_srli_epi32(v[i], (unsigned)(2 * k)), &f, 3, 0,
                        1);
            }
        }
        end_block(&r, sizeof(struct gg_block_q2_k), 256);
    }
}

/* The last 14 bytes of a block of Q3_K, and two before them: 16 scales
 * (gg_kern_k3_scale) plus 32, and d. */
static GG_ALWAYS_INLINE __m512 take_k3(const struct rows *r, __m512i scale[4])
{
    const __m512i four = _mm512_set1_epi32(0x0f0f0f0f),
                  two = _mm512_set1_epi32(0x30303030);
    const size_t off = offsetof(struct gg_block_q3_k, scales);
    __m512i v[4];
    take(r, off - 2, v);
    /* 16 bits further on */
    GG_UNROLL
    for (int i = 0; i < 3; i++)
        v[i] = _mm512_or_si512(_mm512_srli_epi32(v[i], 16),
                               _mm512_slli_epi32(v[i + 1], 16));
    scale[0] =
        _mm512_or_si512(_mm512_and_si512(v[0], four),
                        _mm512_and_si512(_mm512_slli_epi32(v[2], 4), two));
    scale[1] =
        _mm512_or_si512(_mm512_and_si512(v[1], four),
                        _mm512_and_si512(_mm512_slli_epi32(v[2], 2), two));
    scale[2] =
        _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(v[0], 4), four),
                        _mm512_and_si512(v[2], two));
    scale[3] =
        _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(v[1], 4), four),
                        _mm512_and_si512(_mm512_srli_epi32(v[2], 2), two));
    GG_UNROLL
    for (int i = 0; i < 4; i++)
        scale[i] = _mm512_sub_epi8(scale[i], _mm512_set1_epi8(32));
    return halves(_mm512_srli_epi32(v[3], 16));
}

void gg_kern_panel_q3_k_avx512(const void *src, size_t stride, float *dst,
                               size_t width, size_t n)
{
    BEGIN
    __m512i v[4];
    const __m512i three = _mm512_set1_epi32(0x03030303),
                  third = _mm512_set1_epi32(0x04040404);
    for (; n; n -= 256) {
        __m512i scale[4], high[2][4];
        const __m512 d = take_k3(&r, scale);
        take(&r, 0, high[0]);
        take(&r, 16, high[1]);
        for (size_t p = 0; p < 4; p++) {
            const size_t h = p / 2, at = 128 * h + 16 * (p % 2);
            take(&r, offsetof(struct gg_block_q3_k, qs) + 16 * p, v);
            GG_UNROLL
            for (size_t k = 0; k < 4; k++) {
                const __m512i sub = scale[2 * h + k / 2];
                const __m512 s = p % 2 ? byte_ps(sub, 2 * (k % 2) + 1, 1)
                                       : byte_ps(sub, 2 * (k % 2), 1);
                const struct factors f =
                    factors(_mm512_mul_ps(d, s), _mm512_setzero_ps());
                GG_UNROLL
                for (size_t i = 0; i < 4; i++) {
                    const __m512i q =
                        _mm512_srli_epi32(v[i], (unsigned)(2 * k));
                    __m512i bit = _mm512_srli_epi32(high[p % 2][i],
                                                    (unsigned)(4 * h + k));
                    bit = _mm512_and_si512(_mm512_slli_epi32(bit, 2), third);
                    put(&r, at + 32 * k + 4 * i,
                        _mm512_or_si512(_mm512_and_si512(q, three), bit), &f,
                        7, 4, 0);
                }
            }
        }
        end_block(&r, sizeof(struct gg_block_q3_k), 256);
    }
}

void gg_kern_panel_iq4_xs_avx512(const void *src, size_t stride, float *dst,
                                 size_t width, size_t n)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    BEGIN
    __m512i v[4];
    const __m512i four = _mm512_set1_epi32(0x0f0f0f0f);
    const __m512i table = _mm512_xor_si512(
        _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)level)),
        _mm512_set1_epi8((char)128));
    for (; n; n -= 256) {
        take(&r, 0, v);
        const __m512 d = halves(v[0]);
        const __m512i high = _mm512_srli_epi32(v[0], 16), low = v[1];
        for (unsigned s = 0; s < 8; s++) {
            __m512i l = _mm512_srli_epi32(low, 4 * s),
                    h = _mm512_slli_epi32(_mm512_srli_epi32(high, 2 * s), 4);
            l = _mm512_and_si512(l, _mm512_set1_epi32(15));
            h = _mm512_and_si512(h, _mm512_set1_epi32(0x30));
            l = _mm512_sub_epi32(_mm512_or_si512(l, h), _mm512_set1_epi32(32));
            const struct factors f = factors(
                _mm512_mul_ps(d, _mm512_cvtepi32_ps(l)), _mm512_setzero_ps());
            take(&r, offsetof(struct gg_block_iq4_xs, qs) + 16 * s, v);
            GG_UNROLL
            for (size_t i = 0; i < 4; i++) {
                __m512i q = _mm512_and_si512(v[i], four);
                put(&r, 32 * s + 4 * i, _mm512_shuffle_epi8(table, q), &f, 255,
                    128, 0);
                q = _mm512_and_si512(_mm512_srli_epi32(v[i], 4), four);
                put(&r, 32 * s + 16 + 4 * i, _mm512_shuffle_epi8(table, q), &f,
                    255, 128, 0);
            }
        }
        end_block(&r, sizeof(struct gg_block_iq4_xs), 256);
    }
}
