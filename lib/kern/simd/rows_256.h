/* SPDX-License-Identifier: MIT */
/* rows_256.h - 8 rows of blocks at a time, each a lane of 256 bits */
#ifndef GG_KERN_SIMD_ROWS_256_H
#define GG_KERN_SIMD_ROWS_256_H

#include "kern/simd/block_rows.h"
#include "kern/simd/vi_256.h"

#define ROWS_LEVEL 256 /* suffix of functions that are compiled once */
enum { ROWS = 8 };

/* 16 bytes of each row, from off on: v[i] is 32 bits of each. */
static GG_ALWAYS_INLINE void load_lanes(const struct rows *r, size_t off,
                                        VI v[4])
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

/* Two vectors of four rows each. */
static GG_ALWAYS_INLINE VI join_rows(const __m128i v[2])
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(v[0]), v[1], 1);
}

/* The low half of each lane, an f16, as a float. */
static GG_ALWAYS_INLINE VF halves_to_floats(VI v)
{
    return m256_halves_ps(v);
}

#ifdef __aarch64__
/* The f16 of each row at off: loads of single lanes, where load_lanes() would
 * transpose 16 bytes of each row. */
#define OWN_TAKE_HALF
static GG_ALWAYS_INLINE VF take_half(const struct rows *r, size_t off)
{
    const uint8_t *p = r->at + off;
    /* An operand of memory needs a length in clang 14; this one is a bound. */
    typedef const uint8_t any_rows[1 << 30];
    float16x4_t lo, hi;
    __asm__("ld1 {%0.h}[0], [%2], %3\n\t"
            "ld1 {%0.h}[1], [%2], %3\n\t"
            "ld1 {%0.h}[2], [%2], %3\n\t"
            "ld1 {%0.h}[3], [%2], %3\n\t"
            "ld1 {%1.h}[0], [%2], %3\n\t"
            "ld1 {%1.h}[1], [%2], %3\n\t"
            "ld1 {%1.h}[2], [%2], %3\n\t"
            "ld1 {%1.h}[3], [%2], %3"
            : "=&w"(lo), "=&w"(hi), "+&r"(p)
            : "r"(r->stride), "m"(*(any_rows *)r->at));
    return (VF){ vcvt_f32_f16(lo), vcvt_f32_f16(hi) };
}
#endif

#include "kern/simd/rows_impl.h"

#endif
