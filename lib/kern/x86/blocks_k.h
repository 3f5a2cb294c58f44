/* blocks_k.h - blocks of 256 in sub-blocks, handed on as floats.h says */
#ifndef GG_KERN_X86_BLOCKS_K_H
#define GG_KERN_X86_BLOCKS_K_H

#include "base/bytes.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"
#include "kern/x86/x86.h"

/* 32 codes that share the scale and minimum of sub-block s. */
static GG_ALWAYS_INLINE void put_k4(TO *to, __m256i q, const uint8_t *sc,
                                    unsigned s, float d, float dmin)
{
    float scale = d * (float)gg_kern_k4_scale(sc, s);
    float min = dmin * (float)gg_kern_k4_min(sc, s);
    to_u8(to, q, scale, min, scale, min);
}

static GG_ALWAYS_INLINE void gg_kern_each_q4_k(TO *to, const void *src,
                                               size_t n)
{
    const uint8_t *p = src;
    const __m256i low = _mm256_set1_epi8(15);
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = p + offsetof(struct gg_block_q4_k, scales);
        const uint8_t *qs = p + offsetof(struct gg_block_q4_k, qs);
        float d = gg_x86_half_ps(p);
        float dmin = gg_x86_half_ps(p + offsetof(struct gg_block_q4_k, dmin));
        for (unsigned s = 0; s < 8; s += 2) {
            __m256i q = gg_x86_load256(qs + 16 * s);
            __m256i hi = _mm256_and_si256(_mm256_srli_epi16(q, 4), low);
            put_k4(to, _mm256_and_si256(q, low), sc, s, d, dmin);
            put_k4(to, hi, sc, s + 1, d, dmin);
        }
        p += sizeof(struct gg_block_q4_k);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_q5_k(TO *to, const void *src,
                                               size_t n)
{
    const uint8_t *p = src;
    const __m256i low = _mm256_set1_epi8(15), fifth = _mm256_set1_epi8(16);
    const __m256i one = _mm256_set1_epi8(1);
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = p + offsetof(struct gg_block_q5_k, scales);
        const uint8_t *qs = p + offsetof(struct gg_block_q5_k, qs);
        __m256i h = gg_x86_load256(p + offsetof(struct gg_block_q5_k, qh));
        float d = gg_x86_half_ps(p);
        float dmin = gg_x86_half_ps(p + offsetof(struct gg_block_q5_k, dmin));
        for (unsigned s = 0; s < 8; s++) {
            __m256i q = gg_x86_load256(qs + s / 2 * 32);
            q = _mm256_and_si256(s & 1 ? _mm256_srli_epi16(q, 4) : q, low);
            __m256i bit = _mm256_slli_epi16(_mm256_and_si256(h, one), 4);
            q = _mm256_or_si256(q, _mm256_and_si256(bit, fifth));
            h = _mm256_srli_epi16(h, 1);
            put_k4(to, q, sc, s, d, dmin);
        }
        p += sizeof(struct gg_block_q5_k);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_q2_k(TO *to, const void *src,
                                               size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = p + offsetof(struct gg_block_q2_k, scales);
        float d = gg_x86_half_ps(p + offsetof(struct gg_block_q2_k, d));
        float dmin = gg_x86_half_ps(p + offsetof(struct gg_block_q2_k, dmin));
        for (unsigned s = 0; s < 8; s++, sc += 2)
            to_u8(to,
                  gg_x86_pairs_of(p + offsetof(struct gg_block_q2_k, qs), s),
                  d * (float)(sc[0] & 15), dmin * (float)(sc[0] >> 4),
                  d * (float)(sc[1] & 15), dmin * (float)(sc[1] >> 4));
        p += sizeof(struct gg_block_q2_k);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_q3_k(TO *to, const void *src,
                                               size_t n)
{
    const uint8_t *p = src;
    const __m256i four = _mm256_set1_epi8(4);
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = p + offsetof(struct gg_block_q3_k, scales);
        __m256i h = gg_x86_load256(p + offsetof(struct gg_block_q3_k, hmask));
        float d = gg_x86_half_ps(p + offsetof(struct gg_block_q3_k, d));
        for (unsigned s = 0; s < 8; s++) {
            /* the third bit, then four less */
            __m256i q =
                gg_x86_pairs_of(p + offsetof(struct gg_block_q3_k, qs), s);
            __m256i bit = _mm256_srl_epi16(h, _mm_cvtsi32_si128((int)s));
            bit = _mm256_and_si256(_mm256_slli_epi16(bit, 2), four);
            q = _mm256_sub_epi8(_mm256_or_si256(q, bit), four);
            to_i8(to, q, d * (float)gg_kern_k3_scale(sc, 2 * s),
                  d * (float)gg_kern_k3_scale(sc, 2 * s + 1));
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
        const int8_t *sc =
            (const int8_t *)p + offsetof(struct gg_block_q6_k, scales);
        float d = gg_x86_half_ps(p + offsetof(struct gg_block_q6_k, d));
        for (int h = 0; h < 2; h++, sc += 8) {
            __m256i hi = gg_x86_load256(
                p + offsetof(struct gg_block_q6_k, qh) + 32 * h);
            __m256i up[4] = { _mm256_slli_epi16(hi, 4),
                              _mm256_slli_epi16(hi, 2), hi,
                              _mm256_srli_epi16(hi, 2) };
            for (int r = 0; r < 4; r++) {
                __m256i l = gg_x86_load256(p + 64 * h + 32 * (r & 1));
                l = _mm256_and_si256(r < 2 ? l : _mm256_srli_epi16(l, 4), low);
                l = _mm256_or_si256(l, _mm256_and_si256(up[r], two));
                to_i8(to, _mm256_sub_epi8(l, bias), d * (float)sc[2 * r],
                      d * (float)sc[2 * r + 1]);
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

static GG_ALWAYS_INLINE void gg_kern_each_iq4_xs(TO *to, const void *src,
                                                 size_t n)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    const __m256i table = _mm256_broadcastsi128_si256(gg_x86_load128(level));
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *low = p + offsetof(struct gg_block_iq4_xs, scales_l);
        unsigned high =
            gg_bytes_load16le(p + offsetof(struct gg_block_iq4_xs, scales_h));
        float d = gg_x86_half_ps(p);
        for (unsigned s = 0; s < 8; s++) {
            unsigned l = low[s / 2] >> 4 * (s & 1) & 15u;
            float dl = d * (float)((int)(l | (high >> 2 * s & 3) << 4) - 32);
            __m256i q = gg_x86_nibbles(
                p + offsetof(struct gg_block_iq4_xs, qs) + 16 * s);
            to_i8(to, _mm256_shuffle_epi8(table, q), dl, dl);
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
