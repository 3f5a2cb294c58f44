/* SPDX-License-Identifier: MIT */
/* blocks_k.h - blocks of 256 in sub-blocks, handed on as floats.h says */
#ifndef GG_KERN_X86_BLOCKS_K_H
#define GG_KERN_X86_BLOCKS_K_H

#include "base/bytes.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"
#include "kern/x86/x86.h"

/* d times eight bytes of a sub-block's scale or minimum each, as the product of
 * the byte as a float with d is rounded. */
static inline void times_u8(float out[8], __m128i bytes, float d)
{
    _mm256_storeu_ps(out,
                     _mm256_mul_ps(_mm256_set1_ps(d), gg_x86_u8_ps(bytes)));
}

static inline void times_i8(float out[16], __m128i bytes, float d)
{
    const __m256 v = _mm256_set1_ps(d);
    _mm256_storeu_ps(out, _mm256_mul_ps(v, gg_x86_i8_ps(bytes)));
    bytes = _mm_srli_si128(bytes, 8);
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(v, gg_x86_i8_ps(bytes)));
}

/* The scales and minima of Q4_K and Q5_K: gg_kern_k4_scale, gg_kern_k4_min. */
static inline void scales_k4(float scale[8], float min[8], const uint8_t s[12],
                             float d, float dmin)
{
    const uint32_t a = gg_bytes_load32le(s), b = gg_bytes_load32le(s + 4),
                   c = gg_bytes_load32le(s + 8);
    const uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x30303030;
    times_u8(scale,
             _mm_setr_epi32((int)(a & six), (int)((c & four) | (a >> 2 & two)),
                            0, 0),
             d);
    times_u8(min,
             _mm_setr_epi32((int)(b & six),
                            (int)((c >> 4 & four) | (b >> 2 & two)), 0, 0),
             dmin);
}

static GG_ALWAYS_INLINE void gg_kern_each_q4_k(TO *to, const void *src,
                                               size_t n)
{
    const uint8_t *p = src;
    const __m256i low = _mm256_set1_epi8(15);
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_q4_k, qs);
        float scale[8], min[8];
        scales_k4(scale, min, p + offsetof(struct gg_block_q4_k, scales),
                  to_d(to, gg_x86_half_ps(p), 0),
                  gg_x86_half_ps(p + offsetof(struct gg_block_q4_k, dmin)));
        for (unsigned s = 0; s < 8; s += 2) {
            __m256i q = gg_x86_load256(qs + 16 * s);
            __m256i hi = _mm256_and_si256(_mm256_srli_epi16(q, 4), low);
            to_u8(to, _mm256_and_si256(q, low), scale[s], min[s], scale[s],
                  min[s]);
            to_u8(to, hi, scale[s + 1], min[s + 1], scale[s + 1], min[s + 1]);
        }
        p += sizeof(struct gg_block_q4_k);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_q5_k(TO *to, const void *src,
                                               size_t n)
{
    const uint8_t *p = src;
    const __m256i low = _mm256_set1_epi8(15), fifth = _mm256_set1_epi8(16);
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_q5_k, qs);
        __m256i h = gg_x86_load256(p + offsetof(struct gg_block_q5_k, qh));
        float scale[8], min[8];
        scales_k4(scale, min, p + offsetof(struct gg_block_q5_k, scales),
                  to_d(to, gg_x86_half_ps(p), 0),
                  gg_x86_half_ps(p + offsetof(struct gg_block_q5_k, dmin)));
        for (unsigned s = 0; s < 8; s += 2) {
            __m256i q = gg_x86_load256(qs + 16 * s), q0, q1;
            /* bits 0 and 1 of h, then the next */
            q0 = _mm256_and_si256(_mm256_slli_epi16(h, 4), fifth);
            q1 = _mm256_and_si256(_mm256_slli_epi16(h, 3), fifth);
            h = _mm256_srli_epi16(h, 2);
            q0 = _mm256_or_si256(_mm256_and_si256(q, low), q0);
            q = _mm256_srli_epi16(q, 4);
            q1 = _mm256_or_si256(_mm256_and_si256(q, low), q1);
            to_u8(to, q0, scale[s], min[s], scale[s], min[s]);
            to_u8(to, q1, scale[s + 1], min[s + 1], scale[s + 1], min[s + 1]);
        }
        p += sizeof(struct gg_block_q5_k);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_q2_k(TO *to, const void *src,
                                               size_t n)
{
    const uint8_t *p = src;
    const __m128i low = _mm_set1_epi8(15);
    for (size_t i = 0; i < n / 256; i++) {
        const __m128i sc =
            gg_x86_load128(p + offsetof(struct gg_block_q2_k, scales));
        const __m128i lo = _mm_and_si128(sc, low);
        const __m128i hi = _mm_and_si128(_mm_srli_epi16(sc, 4), low);
        float d =
            to_d(to, gg_x86_half_ps(p + offsetof(struct gg_block_q2_k, d)), 0);
        float dmin = gg_x86_half_ps(p + offsetof(struct gg_block_q2_k, dmin));
        float scale[16], min[16];
        times_i8(scale, lo, d);
        times_i8(min, hi, dmin);
        GG_UNROLL
        for (unsigned s = 0; s < 8; s++)
            to_u8(to,
                  gg_x86_pairs_of(p + offsetof(struct gg_block_q2_k, qs), s),
                  scale[2 * s], min[2 * s], scale[2 * s + 1], min[2 * s + 1]);
        p += sizeof(struct gg_block_q2_k);
    }
}

/* gg_kern_k3_scale of all sub-blocks. */
static inline __m128i scales_k3(const uint8_t s[12])
{
    const uint32_t a = gg_bytes_load32le(s), b = gg_bytes_load32le(s + 4),
                   c = gg_bytes_load32le(s + 8);
    const uint32_t four = 0x0f0f0f0f, two = 0x30303030;
    const __m128i v = _mm_setr_epi32((int)((a & four) | (c << 4 & two)),
                                     (int)((b & four) | (c << 2 & two)),
                                     (int)((a >> 4 & four) | (c & two)),
                                     (int)((b >> 4 & four) | (c >> 2 & two)));
    return _mm_sub_epi8(v, _mm_set1_epi8(32));
}

static GG_ALWAYS_INLINE void gg_kern_each_q3_k(TO *to, const void *src,
                                               size_t n)
{
    const uint8_t *p = src;
    const __m256i four = _mm256_set1_epi8(4);
    for (size_t i = 0; i < n / 256; i++) {
        __m256i h = gg_x86_load256(p + offsetof(struct gg_block_q3_k, hmask));
        float scale[16];
        times_i8(scale, scales_k3(p + offsetof(struct gg_block_q3_k, scales)),
                 to_d(to,
                      gg_x86_half_ps(p + offsetof(struct gg_block_q3_k, d)),
                      0));
        GG_UNROLL
        for (unsigned s = 0; s < 8; s++) {
            /* the third bit, then four less */
            __m256i q =
                gg_x86_pairs_of(p + offsetof(struct gg_block_q3_k, qs), s);
            __m256i bit = _mm256_srl_epi16(h, _mm_cvtsi32_si128((int)s));
            bit = _mm256_and_si256(_mm256_slli_epi16(bit, 2), four);
            q = _mm256_sub_epi8(_mm256_or_si256(q, bit), four);
            to_i8(to, q, scale[2 * s], scale[2 * s + 1]);
        }
        p += sizeof(struct gg_block_q3_k);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_q6_k(TO *to, const void *src,
                                               size_t n)
{
    const uint8_t *p = src;
    const __m256i low = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
    const __m256i bias = _mm256_set1_epi8(32);
    for (size_t i = 0; i < n / 256; i++) {
        float scale[16], *sc = scale;
        times_i8(
            scale, gg_x86_load128(p + offsetof(struct gg_block_q6_k, scales)),
            to_d(to, gg_x86_half_ps(p + offsetof(struct gg_block_q6_k, d)),
                 0));
        for (int h = 0; h < 2; h++, sc += 8) {
            __m256i hi = gg_x86_load256(
                p + offsetof(struct gg_block_q6_k, qh) + 32 * h);
            __m256i up[4] = { _mm256_slli_epi16(hi, 4),
                              _mm256_slli_epi16(hi, 2), hi,
                              _mm256_srli_epi16(hi, 2) };
            GG_UNROLL
            for (int r = 0; r < 4; r++) {
                __m256i l = gg_x86_load256(p + 64 * h + 32 * (r & 1));
                l = _mm256_and_si256(r < 2 ? l : _mm256_srli_epi16(l, 4), low);
                l = _mm256_or_si256(l, _mm256_and_si256(up[r], two));
                to_i8(to, _mm256_sub_epi8(l, bias), sc[2 * r], sc[2 * r + 1]);
            }
        }
        p += sizeof(struct gg_block_q6_k);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_q8_k(TO *to, const void *src,
                                               size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        float d = gg_bytes_f32_from_bits(gg_bytes_load32le(p));
        for (int e = 0; e < 256; e += 32)
            to_i8(to,
                  gg_x86_load256(p + offsetof(struct gg_block_q8_k, qs) + e),
                  d, d);
        p += sizeof(struct gg_block_q8_k);
    }
}

/* (low | high << 4) - 32 of eight sub-blocks: nibbles, and pairs of bits. */
static inline __m128i scales_iq4_xs(const uint8_t low[4], unsigned high)
{
    const uint32_t l = gg_bytes_load32le(low);
    /* bytes 0, 2, 4, 6: low nibbles; the others: high nibbles */
    __m128i v =
        _mm_unpacklo_epi8(_mm_cvtsi32_si128((int)(l & 0x0f0f0f0f)),
                          _mm_cvtsi32_si128((int)(l >> 4 & 0x0f0f0f0f)));
    const __m256i shift = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    __m256i h = _mm256_srlv_epi32(_mm256_set1_epi32((int)high), shift);
    h = _mm256_slli_epi32(_mm256_and_si256(h, _mm256_set1_epi32(3)), 4);
    const __m128i h16 = _mm_packs_epi32(_mm256_castsi256_si128(h),
                                        _mm256_extracti128_si256(h, 1));
    v = _mm_or_si128(v, _mm_packs_epi16(h16, h16));
    return _mm_sub_epi8(v, _mm_set1_epi8(32));
}

static GG_ALWAYS_INLINE void gg_kern_each_iq4_xs(TO *to, const void *src,
                                                 size_t n)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    const __m256i table = _mm256_broadcastsi128_si256(gg_x86_load128(level));
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        float scale[16];
        times_i8(
            scale,
            scales_iq4_xs(p + offsetof(struct gg_block_iq4_xs, scales_l),
                          gg_bytes_load16le(
                              p + offsetof(struct gg_block_iq4_xs, scales_h))),
            to_d(to, gg_x86_half_ps(p), 0));
        GG_UNROLL
        for (unsigned s = 0; s < 8; s++) {
            __m256i q = gg_x86_nibbles(
                p + offsetof(struct gg_block_iq4_xs, qs) + 16 * s);
            to_i8(to, _mm256_shuffle_epi8(table, q), scale[s], scale[s]);
        }
        p += sizeof(struct gg_block_iq4_xs);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_tq2_0(TO *to, const void *src,
                                                size_t n)
{
    const __m256i one = _mm256_set1_epi8(1);
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        float d = gg_x86_half_ps(p + offsetof(struct gg_block_tq2_0, d));
        for (unsigned s = 0; s < 8; s++)
            to_i8(to, _mm256_sub_epi8(gg_x86_pairs_of(p, s), one), d, d);
        p += sizeof(struct gg_block_tq2_0);
    }
}

#endif
