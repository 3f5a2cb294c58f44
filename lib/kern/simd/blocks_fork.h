/* SPDX-License-Identifier: MIT */
/* blocks_fork.h - readers of ik_llama.cpp's types (floats.h)
 *
 * Levels are looked up by a shuffle of bytes; a level with its shift still fits
 * a signed byte. For types with d in the row's header, src is the first byte of
 * the row.
 */
#ifndef GG_KERN_SIMD_BLOCKS_FORK_H
#define GG_KERN_SIMD_BLOCKS_FORK_H

#include "base/bytes.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"
#include "kern/simd/v256.h"

static const int8_t level2[16] = GG_IQ2K_LEVELS;
static const int8_t level3[16] = GG_IQ3K_LEVELS;
static const int8_t level4[16] = GG_IQ4_LEVELS;
static const int8_t level5[32] = GG_IQ5K_LEVELS;

static inline __m256i table_of(const int8_t *level)
{
    return _mm256_broadcastsi128_si256(gg_v256_load128(level));
}

/* Levels of codes of five bits, from two tables. */
static inline __m256i levels5(__m256i q)
{
    return m256_lookup_32(table_of(level5), table_of(level5 + 16), q);
}

/* Codes of elements 32 * s and up: nibbles of 64 elements in 32 bytes, and
 * bit s of each of 32 bytes, put at bit `at'. */
static inline __m256i nibbles_of(const uint8_t *qs, unsigned s)
{
    __m256i q = gg_v256_load256(qs + s / 2 * 32);
    q = s & 1 ? _mm256_srli_epi16(q, 4) : q;
    return _mm256_and_si256(q, _mm256_set1_epi8(15));
}

static inline __m256i with_bits(__m256i q, __m256i h, unsigned s, int at)
{
    __m256i bit = _mm256_srl_epi16(h, _mm_cvtsi32_si128((int)s));
    bit = _mm256_and_si256(bit, _mm256_set1_epi8(1));
    return _mm256_or_si256(q, _mm256_slli_epi16(bit, at));
}

/* 32 elements of sub-blocks 2 * s and 2 * s + 1: flags has their bits. */
static GG_ALWAYS_INLINE void put_two(TO *to, __m256i level, unsigned flags,
                                     unsigned s, int shift, float s0, float s1)
{
    int f0 = flags >> 2 * s & 1 ? shift : 0;
    int f1 = flags >> 2 * s & 2 ? shift : 0;
    __m256i add =
        _mm256_set_m128i(_mm_set1_epi8((char)f1), _mm_set1_epi8((char)f0));
    to_i8(to, _mm256_add_epi8(level, add), s0, s1);
}

/* 32 elements of one sub-block. */
static GG_ALWAYS_INLINE void put_one(TO *to, __m256i level, int shift,
                                     float scale)
{
    level = _mm256_add_epi8(level, _mm256_set1_epi8((char)shift));
    to_i8(to, level, scale, scale);
}

/* Address of a member of the block at p. */
#define FIELD(type, member) (p + offsetof(struct gg_block_##type, member))

static GG_ALWAYS_INLINE void gg_kern_each_iq2_k(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    const __m256i table = table_of(level2);
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = FIELD(iq2_k, scales);
        unsigned extra = gg_bytes_load16le(FIELD(iq2_k, extra));
        float d = gg_v256_half_ps(p);
        for (unsigned s = 0; s < 8; s++) {
            __m256i q = gg_v256_pairs_of(FIELD(iq2_k, qs), s);
            put_two(to, m256_lookup(table, q), extra, s, GG_IQ2K_SHIFT,
                    d * (float)((sc[s] & 15) - 8),
                    d * (float)((sc[s] >> 4) - 8));
        }
        p += sizeof(struct gg_block_iq2_k);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq3_k(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    const __m256i table = table_of(level3);
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = FIELD(iq3_k, scales_l);
        unsigned extra = gg_bytes_load16le(FIELD(iq3_k, extra));
        unsigned minus = gg_bytes_load16le(FIELD(iq3_k, scales_h));
        __m256i h = gg_v256_load256(FIELD(iq3_k, qh));
        float d = gg_v256_half_ps(p);
        for (unsigned s = 0; s < 8; s++, minus >>= 2) {
            __m256i q = gg_v256_pairs_of(FIELD(iq3_k, qs), s);
            int s0 = 2 * (sc[s] & 15) + 1, s1 = 2 * (sc[s] >> 4) + 1;
            q = with_bits(q, h, s, 2);
            put_two(to, m256_lookup(table, q), extra, s, GG_IQ3K_SHIFT,
                    d * (float)(minus & 1 ? -s0 : s0),
                    d * (float)(minus & 2 ? -s1 : s1));
        }
        p += sizeof(struct gg_block_iq3_k);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq4_k(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    const __m256i table = table_of(level4);
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *lo = FIELD(iq4_k, scales_l);
        const uint8_t *hi = FIELD(iq4_k, scales_h);
        unsigned extra = gg_bytes_load16le(FIELD(iq4_k, extra));
        float d = gg_v256_half_ps(p);
        for (unsigned s = 0; s < 8; s++) {
            __m256i q = gg_v256_nibbles(FIELD(iq4_k, qs) + 16 * s);
            put_two(to, m256_lookup(table, q), extra, s, GG_IQ4K_SHIFT,
                    d * (float)gg_kern_iq4k_scale(lo, hi, 2 * s),
                    d * (float)gg_kern_iq4k_scale(lo, hi, 2 * s + 1));
        }
        p += sizeof(struct gg_block_iq4_k);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq5_k(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *lo = FIELD(iq5_k, scales_l);
        const uint8_t *hi = FIELD(iq5_k, scales_h);
        unsigned extra = gg_bytes_load16le(FIELD(iq5_k, extra));
        __m256i h = gg_v256_load256(FIELD(iq5_k, qh));
        float d = gg_v256_half_ps(p);
        for (unsigned s = 0; s < 8; s++) {
            __m256i q = nibbles_of(FIELD(iq5_k, qs), s);
            put_two(to, levels5(with_bits(q, h, s, 4)), extra, s,
                    GG_IQ5K_SHIFT,
                    d * (float)gg_kern_iq4k_scale(lo, hi, 2 * s),
                    d * (float)gg_kern_iq4k_scale(lo, hi, 2 * s + 1));
        }
        p += sizeof(struct gg_block_iq5_k);
    }
}

/* GG_IQ6K_CUBIC of eight codes, the shift, the scale. */
static inline __m256 cubic_levels(__m128i codes, float shift, float scale)
{
    __m256 q = gg_v256_u8_ps(codes), v;
    v = _mm256_mul_ps(q, _mm256_set1_ps(0.0011972f));
    v = _mm256_add_ps(_mm256_set1_ps(-0.11218f), v);
    v = _mm256_add_ps(_mm256_set1_ps(6.2568f), _mm256_mul_ps(q, v));
    v = _mm256_add_ps(_mm256_set1_ps(-127.0f), _mm256_mul_ps(q, v));
    v = _mm256_add_ps(v, _mm256_set1_ps(shift));
    return _mm256_mul_ps(_mm256_set1_ps(scale), v);
}

static GG_ALWAYS_INLINE void gg_kern_each_iq6_k(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const int8_t *sc = (const int8_t *)FIELD(iq6_k, scales);
        unsigned extra = gg_bytes_load16le(FIELD(iq6_k, extra));
        float d = gg_v256_half_ps(p);
        for (unsigned s = 0; s < 8; s++, extra >>= 2, sc += 2) {
            __m256i q = gg_v256_pairs_of(FIELD(iq6_k, qh), s);
            q = _mm256_or_si256(nibbles_of(FIELD(iq6_k, qs), s),
                                _mm256_slli_epi16(q, 4));
            __m128i lo = _mm256_castsi256_si128(q);
            __m128i hi = _mm256_extracti128_si256(q, 1);
            float f0 = extra & 1 ? GG_IQ6K_SHIFT : 0;
            float f1 = extra & 2 ? GG_IQ6K_SHIFT : 0;
            float s0 = d * (float)sc[0], s1 = d * (float)sc[1];
            const __m256 v[4] = { cubic_levels(lo, f0, s0),
                                  cubic_levels(_mm_srli_si128(lo, 8), f0, s0),
                                  cubic_levels(hi, f1, s1),
                                  cubic_levels(_mm_srli_si128(hi, 8), f1,
                                               s1) };
            to_ps(to, v);
        }
        p += sizeof(struct gg_block_iq6_k);
    }
}

/* --------------------------------------------- d in the row's header --- */

static inline float row_scale(const uint8_t *p)
{
    return gg_bytes_f32_from_bits(gg_bytes_load32le(p));
}

static GG_ALWAYS_INLINE void gg_kern_each_iq4_ks(TO *to, const void *src,
                                                 size_t n)
{
    const __m256i table = table_of(level4);
    const float d = row_scale(src);
    const uint8_t *p = (const uint8_t *)src + sizeof(float);
    for (size_t i = 0; i < n / 256; i++) {
        for (unsigned s = 0; s < 8; s++) {
            int sc = p[s];
            __m256i q = gg_v256_nibbles(FIELD(iq4_ks, qs) + 16 * s);
            put_one(to, m256_lookup(table, q), sc & 1 ? GG_IQ4K_SHIFT : 0,
                    d * (float)((sc & 254) - 127));
        }
        p += sizeof(struct gg_block_iq4_ks);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq5_ks(TO *to, const void *src,
                                                 size_t n)
{
    const float d = row_scale(src);
    const uint8_t *p = (const uint8_t *)src + sizeof(float);
    for (size_t i = 0; i < n / 256; i++) {
        __m256i h = gg_v256_load256(FIELD(iq5_ks, qh));
        for (unsigned s = 0; s < 8; s++) {
            int sc = p[s];
            __m256i q = nibbles_of(FIELD(iq5_ks, qs), s);
            put_one(to, levels5(with_bits(q, h, s, 4)),
                    sc & 1 ? GG_IQ5K_SHIFT : 0, d * (float)((sc & 254) - 127));
        }
        p += sizeof(struct gg_block_iq5_ks);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq4_kss(TO *to, const void *src,
                                                  size_t n)
{
    const __m256i table = table_of(level4), low = _mm256_set1_epi8(15);
    const float d = row_scale(src);
    const uint8_t *p = (const uint8_t *)src + sizeof(float);
    for (size_t i = 0; i < n / 256 * 8; i++, p += 16) {
        __m128i w = gg_v256_load128(p);
        /* bit 0 of each word, packed to a byte each: the scale */
        __m128i bits =
            _mm_packs_epi16(_mm_slli_epi16(w, 15), _mm_setzero_si128());
        int sc = _mm_movemask_epi8(bits);
        w = _mm_and_si128(w, _mm_set1_epi16((short)0xfffe));
        w = _mm_xor_si128(w, _mm_srli_epi16(w, 1));
        __m256i q = _mm256_set_m128i(_mm_srli_epi16(w, 4), w);
        q = _mm256_and_si256(q, low);
        put_one(to, m256_lookup(table, q), sc & 1 ? GG_IQ4K_SHIFT : 0,
                d * (float)((sc & 254) - 127));
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq2_ks(TO *to, const void *src,
                                                 size_t n)
{
    const __m256i table = table_of(level2);
    const float d = gg_v256_half_ps(src);
    const uint8_t *p = (const uint8_t *)src + sizeof(uint16_t);
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = FIELD(iq2_ks, scales);
        unsigned extra = gg_bytes_load16le(p);
        for (unsigned s = 0; s < 8; s++, extra >>= 1) {
            __m256i q = gg_v256_pairs_of(FIELD(iq2_ks, qs), s);
            int v = (sc[s / 2] >> 4 * (s & 1) & 15) | (extra & 256 ? 16 : 0);
            put_one(to, m256_lookup(table, q), extra & 1 ? GG_IQ2K_SHIFT : 0,
                    d * (float)(v - 16));
        }
        p += sizeof(struct gg_block_iq2_ks);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq3_ks(TO *to, const void *src,
                                                 size_t n)
{
    const __m256i table = table_of(level3);
    const float d = gg_v256_half_ps(src);
    const uint8_t *p = (const uint8_t *)src + sizeof(uint16_t);
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = FIELD(iq3_ks, scales);
        unsigned extra = gg_bytes_load16le(p);
        __m256i h = gg_v256_load256(FIELD(iq3_ks, qh));
        for (unsigned s = 0; s < 8; s++, extra >>= 1) {
            __m256i q =
                with_bits(gg_v256_pairs_of(FIELD(iq3_ks, qs), s), h, s, 2);
            int v = (sc[s % 4] >> 4 * (s / 4) & 15) | (extra & 1 ? 16 : 0);
            put_one(to, m256_lookup(table, q), extra & 256 ? GG_IQ3K_SHIFT : 0,
                    d * (float)(v - 16));
        }
        p += sizeof(struct gg_block_iq3_ks);
    }
}

#endif
