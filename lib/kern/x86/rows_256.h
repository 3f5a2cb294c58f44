/* rows_256.h - 8 rows of blocks at a time, each a lane of 256 bits */
#ifndef GG_KERN_X86_ROWS_256_H
#define GG_KERN_X86_ROWS_256_H

#include "base/compiler.h"
#include "dtype/block.h"

#include <immintrin.h>
#include <stddef.h>
#include <string.h>

#define VI           __m256i
#define VF           __m256
#define vi_bytes(b)  _mm256_set1_epi8((char)(b))
#define vi_words     _mm256_set1_epi32
#define vi_and       _mm256_and_si256
#define vi_or        _mm256_or_si256
#define vi_xor       _mm256_xor_si256
#define vi_sub8      _mm256_sub_epi8
#define vi_sub32     _mm256_sub_epi32
#define vi_sll(v, n) _mm256_slli_epi32(v, (int)(n))
#define vi_srl(v, n) _mm256_srli_epi32(v, (int)(n))
#define vi_sra       _mm256_srai_epi32
#define vi_lookup    _mm256_shuffle_epi8
#define vf_of        _mm256_cvtepi32_ps
#define vf_mul       _mm256_mul_ps
#define vf_neg(v)    _mm256_xor_ps(v, _mm256_set1_ps(-0.0f))

/* A table of 16 bytes. */
#define vi_sixteen(p)                                                         \
    _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(p)))

enum { ROWS = 8 };

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
static GG_ALWAYS_INLINE void take(const struct rows *r, size_t off, VI v[4])
{
    __m256i q[4], t[4];
    GG_UNROLL
    for (size_t i = 0; i < 4; i++) { /* halves: rows i and i + 4 */
        q[i] = _mm256_castsi128_si256(load_16(r, off, i));
        q[i] = _mm256_inserti128_si256(q[i], load_16(r, off, i + 4), 1);
    }
    GG_UNROLL
    for (int i = 0; i < 4; i += 2) {
        t[i] = _mm256_unpacklo_epi32(q[i], q[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(q[i], q[i + 1]);
    }
    v[0] = _mm256_unpacklo_epi64(t[0], t[2]);
    v[1] = _mm256_unpackhi_epi64(t[0], t[2]);
    v[2] = _mm256_unpacklo_epi64(t[1], t[3]);
    v[3] = _mm256_unpackhi_epi64(t[1], t[3]);
}

/* The low half of each lane, an f16, as a float. */
static GG_ALWAYS_INLINE VF halves(VI v)
{
    v = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    v = _mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0xd8);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(v));
}

/* The f16 of each row, from off on. */
static GG_ALWAYS_INLINE VF take_half(const struct rows *r, size_t off)
{
    _Alignas(16) uint16_t h[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        memcpy(&h[i], r->at + i * r->stride + off, sizeof h[i]);
    return _mm256_cvtph_ps(_mm_load_si128((const void *)h));
}

#include "kern/x86/rows_impl.h"

#endif
