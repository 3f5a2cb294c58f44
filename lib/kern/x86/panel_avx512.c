/* SPDX-License-Identifier: MIT */
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
#include "kern/x86/rows_512.h"

#include <stddef.h>
#include <string.h>

/* Rows, and where their steps go, width floats apart. */
struct place {
    struct rows rows;
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

/* The bits of mask of the bytes of v, less bias, are steps at, at + 1, ... */
static GG_ALWAYS_INLINE void put(const struct place *p, size_t at, __m512i v,
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
        _mm512_storeu_ps(p->to + (at + b) * p->width, w);
    }
}

static GG_ALWAYS_INLINE void end_block(struct place *p, size_t size, size_t n)
{
    p->rows.at += size;
    p->to += n * p->width;
}

#define BEGIN struct place to = { { src, stride, NULL }, dst, width };

/* ---- plain numbers ---- */

enum { RUN = 16 }; /* bytes of a row that are taken together */

/* Steps that are 32 bits, or the low or high half of 32 bits, of each row. */
static GG_ALWAYS_INLINE __m512 low_f16(__m512i v)
{
    return halves(v);
}

static GG_ALWAYS_INLINE __m512 high_f16(__m512i v)
{
    return halves(_mm512_srli_epi32(v, 16));
}

static GG_ALWAYS_INLINE __m512 low_bf16(__m512i v)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}

static GG_ALWAYS_INLINE __m512 high_bf16(__m512i v)
{
    return _mm512_castsi512_ps(
        _mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000)));
}

/* n steps of size bytes, of all rows; fewer than a run at the end by way of a
 * copy, since the last row may end with its memory. */
#define PLAIN(NAME, SIZE, PUT)                                                \
    void gg_kern_panel_##NAME##_avx512(const void *src, size_t stride,        \
                                       float *dst, size_t width, size_t n)    \
    {                                                                         \
        BEGIN                                                                 \
        __m512i v[4];                                                         \
        for (; n >= RUN / (SIZE); n -= RUN / (SIZE)) {                        \
            take(&to.rows, 0, v);                                             \
            GG_UNROLL                                                         \
            for (size_t i = 0; i < RUN / (SIZE); i++)                         \
                _mm512_storeu_ps(to.to + i * width, PUT);                     \
            end_block(&to, RUN, RUN / (SIZE));                                \
        }                                                                     \
        unsigned char last[ROWS][RUN] = { { 0 } };                            \
        for (size_t r = 0; n && r < ROWS; r++)                                \
            memcpy(last[r], to.rows.at + r * stride, n * (SIZE));             \
        take(&(struct rows){ last[0], RUN, NULL }, 0, v);                     \
        for (size_t i = 0; i < n; i++)                                        \
            _mm512_storeu_ps(to.to + i * width, PUT);                         \
    }
PLAIN(f32, 4, _mm512_castsi512_ps(v[i]))
PLAIN(f16, 2, i % 2 ? high_f16(v[i / 2]) : low_f16(v[i / 2]))
PLAIN(bf16, 2, i % 2 ? high_bf16(v[i / 2]) : low_bf16(v[i / 2]))

/* ---- blocks ---- */

void gg_kern_panel_q4_0_avx512(const void *src, size_t stride, float *dst,
                               size_t width, size_t n)
{
    BEGIN
    __m512i v[4];
    for (; n; n -= 32) {
        const struct factors f =
            factors(take_half(&to.rows, 0), _mm512_setzero_ps());
        take(&to.rows, offsetof(struct gg_block_q4_0, qs), v);
        GG_UNROLL
        for (size_t i = 0; i < 4; i++) {
            put(&to, 4 * i, v[i], &f, 15, 8, 0);
            put(&to, 16 + 4 * i, _mm512_srli_epi32(v[i], 4), &f, 15, 8, 0);
        }
        end_block(&to, sizeof(struct gg_block_q4_0), 32);
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
            factors(take_half(&to.rows, 0), _mm512_setzero_ps());
        for (size_t h = 0; h < 32; h += 16) {
            take(&to.rows, offsetof(struct gg_block_q8_0, qs) + h, v);
            GG_UNROLL
            for (size_t i = 0; i < 4; i++)
                put(&to, h + 4 * i, _mm512_xor_si512(v[i], bias), &f, 255, 128,
                    0);
        }
        end_block(&to, sizeof(struct gg_block_q8_0), 32);
    }
}

void gg_kern_panel_q4_k_avx512(const void *src, size_t stride, float *dst,
                               size_t width, size_t n)
{
    BEGIN
    __m512i v[4];
    for (; n; n -= 256) {
        __m512 scale[8], min[8];
        take_k4(&to.rows, scale, min);
        for (size_t s = 0; s < 8; s += 2) {
            const struct factors low = factors(scale[s], min[s]),
                                 high = factors(scale[s + 1], min[s + 1]);
            for (size_t h = 0; h < 32; h += 16) {
                take(&to.rows, offsetof(struct gg_block_q4_k, qs) + 16 * s + h,
                     v);
                GG_UNROLL
                for (size_t i = 0; i < 4; i++) {
                    const size_t at = 32 * s + h + 4 * i;
                    put(&to, at, v[i], &low, 15, 0, 1);
                    put(&to, at + 32, _mm512_srli_epi32(v[i], 4), &high, 15, 0,
                        1);
                }
            }
        }
        end_block(&to, sizeof(struct gg_block_q4_k), 256);
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
        take_k4(&to.rows, scale, min);
        take(&to.rows, offsetof(struct gg_block_q5_k, qh), high);
        take(&to.rows, offsetof(struct gg_block_q5_k, qh) + 16, high + 4);
        for (unsigned s = 0; s < 8; s++) {
            const struct factors f = factors(scale[s], min[s]);
            for (unsigned i = 0; i < 8; i++) {
                if (i % 4 == 0)
                    take(&to.rows,
                         offsetof(struct gg_block_q5_k, qs) + s / 2 * 32 +
                             4 * i,
                         v);
                __m512i q = v[i % 4], bit = _mm512_srli_epi32(high[i], s);
                q = _mm512_and_si512(s % 2 ? _mm512_srli_epi32(q, 4) : q,
                                     four);
                bit = _mm512_and_si512(_mm512_slli_epi32(bit, 4), fifth);
                put(&to, 32 * s + 4 * i, _mm512_or_si512(q, bit), &f, 31, 0,
                    1);
            }
        }
        end_block(&to, sizeof(struct gg_block_q5_k), 256);
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
        const __m512 d =
            take_half(&to.rows, offsetof(struct gg_block_q6_k, d));
        take(&to.rows, offsetof(struct gg_block_q6_k, scales), scale);
        for (size_t p = 0; p < 4; p++) { /* 16 of 32 steps, four times */
            const size_t h = p / 2, at = 128 * h + 16 * (p % 2);
            __m512i low[2][4], up[4];
            take(&to.rows, 64 * h + 16 * (p % 2), low[0]);
            take(&to.rows, 64 * h + 16 * (p % 2) + 32, low[1]);
            take(&to.rows, offsetof(struct gg_block_q6_k, qh) + 16 * p, up);
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
                    put(&to, at + 32 * k + 4 * i, q, &f, 63, 32, 0);
                }
            }
        }
        end_block(&to, sizeof(struct gg_block_q6_k), 256);
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
        const __m512 d = take_half(&to.rows,
                                   offsetof(struct gg_block_q2_k, d)),
                     dmin = take_half(&to.rows,
                                      offsetof(struct gg_block_q2_k, dmin));
        take(&to.rows, offsetof(struct gg_block_q2_k, scales), scale);
        for (size_t p = 0; p < 4; p++) {
            const size_t h = p / 2, at = 128 * h + 16 * (p % 2);
            take(&to.rows, offsetof(struct gg_block_q2_k, qs) + 16 * p, v);
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
                    put(&to, at + 32 * k + 4 * i,
                        _mm512_srli_epi32(v[i], (unsigned)(2 * k)), &f, 3, 0,
                        1);
            }
        }
        end_block(&to, sizeof(struct gg_block_q2_k), 256);
    }
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
        const __m512 d = take_k3(&to.rows, scale);
        take(&to.rows, 0, high[0]);
        take(&to.rows, 16, high[1]);
        for (size_t p = 0; p < 4; p++) {
            const size_t h = p / 2, at = 128 * h + 16 * (p % 2);
            take(&to.rows, offsetof(struct gg_block_q3_k, qs) + 16 * p, v);
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
                    put(&to, at + 32 * k + 4 * i,
                        _mm512_or_si512(_mm512_and_si512(q, three), bit), &f,
                        7, 4, 0);
                }
            }
        }
        end_block(&to, sizeof(struct gg_block_q3_k), 256);
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
        __m512 scale[8];
        take_iq4_xs(&to.rows, scale);
        for (size_t s = 0; s < 8; s++) {
            const struct factors f = factors(scale[s], _mm512_setzero_ps());
            take(&to.rows, offsetof(struct gg_block_iq4_xs, qs) + 16 * s, v);
            GG_UNROLL
            for (size_t i = 0; i < 4; i++) {
                __m512i q = _mm512_and_si512(v[i], four);
                put(&to, 32 * s + 4 * i, _mm512_shuffle_epi8(table, q), &f,
                    255, 128, 0);
                q = _mm512_and_si512(_mm512_srli_epi32(v[i], 4), four);
                put(&to, 32 * s + 16 + 4 * i, _mm512_shuffle_epi8(table, q),
                    &f, 255, 128, 0);
            }
        }
        end_block(&to, sizeof(struct gg_block_iq4_xs), 256);
    }
}
