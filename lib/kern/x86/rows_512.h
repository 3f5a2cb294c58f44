/* rows_512.h - 16 rows of blocks at a time, each a lane of 512 bits */
#ifndef GG_KERN_X86_ROWS_512_H
#define GG_KERN_X86_ROWS_512_H

#include "base/compiler.h"
#include "dtype/block.h"
#include "kern/gemm.h"

#include <immintrin.h>
#include <stddef.h>
#include <string.h>

enum { ROWS = GG_GEMM_PANEL_ROWS };

/* Where their blocks are. */
struct rows {
    const uint8_t *at;
    size_t stride;
};

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

/* The scales of a block of IQ4_XS. */
static GG_ALWAYS_INLINE void take_iq4_xs(const struct rows *r, __m512 scale[8])
{
    __m512i v[4];
    take(r, 0, v);
    const __m512 d = halves(v[0]);
    const __m512i high = _mm512_srli_epi32(v[0], 16), low = v[1];
    for (unsigned s = 0; s < 8; s++) {
        __m512i l = _mm512_srli_epi32(low, 4 * s),
                h = _mm512_slli_epi32(_mm512_srli_epi32(high, 2 * s), 4);
        l = _mm512_and_si512(l, _mm512_set1_epi32(15));
        h = _mm512_and_si512(h, _mm512_set1_epi32(0x30));
        l = _mm512_sub_epi32(_mm512_or_si512(l, h), _mm512_set1_epi32(32));
        scale[s] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(l));
    }
}

#endif
