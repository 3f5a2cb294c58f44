/* rows_512.h - 16 rows of blocks at a time, each a lane of 512 bits */
#ifndef GG_KERN_X86_ROWS_512_H
#define GG_KERN_X86_ROWS_512_H

#include "base/compiler.h"
#include "dtype/block.h"
#include "kern/gemm.h"

#include <immintrin.h>
#include <stddef.h>
#include <string.h>

#define VI          __m512i
#define VF          __m512
#define vi_bytes(b) _mm512_set1_epi8((char)(b))
#define vi_words    _mm512_set1_epi32
#define vi_and      _mm512_and_si512
#define vi_or       _mm512_or_si512
#define vi_xor      _mm512_xor_si512
#define vi_sub8     _mm512_sub_epi8
#define vi_sub32    _mm512_sub_epi32
#define vi_sll      _mm512_slli_epi32
#define vi_srl      _mm512_srli_epi32
#define vi_sra      _mm512_srai_epi32
#define vi_lookup   _mm512_shuffle_epi8
#define vf_of       _mm512_cvtepi32_ps
#define vf_mul      _mm512_mul_ps
#define vf_neg(v)   _mm512_xor_ps(v, _mm512_set1_ps(-0.0f))

/* A table of 16 bytes. */
#define vi_sixteen(p)                                                         \
    _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(p)))

enum { ROWS = 16 };

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

#include "kern/x86/rows_impl.h"

#endif
