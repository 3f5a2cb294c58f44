/* SPDX-License-Identifier: MIT */
/* blocks_low.h - TQ1_0 and NVFP4, handed on as in floats.h */
#ifndef GG_KERN_SIMD_BLOCKS_LOW_H
#define GG_KERN_SIMD_BLOCKS_LOW_H

#include "base/bytes.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"
#include "kern/simd/v256.h"
#include "kern/c/fp4.h"

/* Digit k of 32 bytes of five ternary digits, less one: the low byte of
 * v * 3^k, times three, shifted down by eight. */
static inline __m256i ternary_digits(__m256i v, int k)
{
    static const short pow3[5] = { 1, 3, 9, 27, 81 };
    const __m256i byte = _mm256_set1_epi16(255),
                  p = _mm256_set1_epi16(pow3[k]);
    __m256i lo = _mm256_and_si256(v, byte), hi = _mm256_srli_epi16(v, 8);
    lo = _mm256_and_si256(_mm256_mullo_epi16(lo, p), byte);
    hi = _mm256_and_si256(_mm256_mullo_epi16(hi, p), byte);
    lo = _mm256_srli_epi16(_mm256_add_epi16(_mm256_add_epi16(lo, lo), lo), 8);
    hi = _mm256_add_epi16(_mm256_add_epi16(hi, hi), hi);
    v = _mm256_or_si256(lo, _mm256_andnot_si256(byte, hi));
    return _mm256_sub_epi8(v, _mm256_set1_epi8(1));
}

static GG_ALWAYS_INLINE void gg_kern_each_tq1_0(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        float d = gg_v256_half_ps(p + offsetof(struct gg_block_tq1_0, d));
        for (int k = 0; k < 5; k++)
            to_i8(to, ternary_digits(gg_v256_load256(p), k), d, d);
        /* 16 bytes of five digits: two digits at a time */
        __m256i v = _mm256_broadcastsi128_si256(gg_v256_load128(p + 32)), t[5];
        for (int k = 0; k < 5; k++)
            t[k] = ternary_digits(v, k);
        for (int k = 0; k < 4; k += 2)
            to_i8(to, _mm256_blend_epi32(t[k], t[k + 1], 0xf0), d, d);
        /* the fifth digit, then four bytes of four digits */
        uint32_t h =
            gg_bytes_load32le(p + offsetof(struct gg_block_tq1_0, qh));
        __m256i q = _mm256_set1_epi32((int)h);
        __m256i u[4] = { ternary_digits(q, 0), ternary_digits(q, 1),
                         ternary_digits(q, 2), ternary_digits(q, 3) };
        __m256i four =
            _mm256_blend_epi32(_mm256_blend_epi32(u[0], u[1], 0x22),
                               _mm256_blend_epi32(u[2], u[3], 0x88), 0xcc);
        to_i8(to, _mm256_blend_epi32(t[4], four, 0xf0), d, d);
        p += sizeof(struct gg_block_tq1_0);
    }
}

static inline __m256i fp4_table(void)
{
    static const int8_t level[16] = GG_FP4_LEVELS;
    return _mm256_broadcastsi128_si256(gg_v256_load128(level));
}

/* Sixteen elements are the low, then the high nibbles of eight bytes. */
static GG_ALWAYS_INLINE void gg_kern_each_nvfp4(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    const __m256i table = fp4_table();
    for (size_t i = 0; i < n / 64; i++) {
        for (int s = 0; s < 4; s += 2) {
            __m256i q = gg_v256_nibbles(
                p + offsetof(struct gg_block_nvfp4, qs) + 8 * s);
            q = _mm256_permute4x64_epi64(q, 0xd8);
            to_i8(to, m256_lookup(table, q), gg_kern_ue4m3_half(p[s]),
                  gg_kern_ue4m3_half(p[s + 1]));
        }
        p += sizeof(struct gg_block_nvfp4);
    }
}

#endif
