/* SPDX-License-Identifier: MIT */
/* rows_512.h - 16 rows of blocks at a time, each a lane of 512 bits */
#ifndef GG_KERN_X86_ROWS_512_H
#define GG_KERN_X86_ROWS_512_H

#include "kern/simd/block_rows.h"
#include "kern/x86/vi_512.h"

#define ROWS_LEVEL avx512 /* suffix of functions that are compiled once */
enum { ROWS = 16 };

/* 16 bytes of each row, from off on: v[i] is 32 bits of each. */
static GG_ALWAYS_INLINE void load_lanes(const struct rows *r, size_t off,
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

/* Four vectors of four rows each. */
static GG_ALWAYS_INLINE VI join_rows(const __m128i v[4])
{
    VI all = _mm512_castsi128_si512(v[0]);
    all = _mm512_inserti32x4(all, v[1], 1);
    all = _mm512_inserti32x4(all, v[2], 2);
    return _mm512_inserti32x4(all, v[3], 3);
}

/* The low half of each lane, an f16, as a float. */
static GG_ALWAYS_INLINE __m512 halves_to_floats(__m512i v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

#include "kern/simd/rows_impl.h"

#endif
