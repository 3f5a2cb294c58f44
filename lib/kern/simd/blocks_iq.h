/* SPDX-License-Identifier: MIT */
/* blocks_iq.h - readers of the codebook types (floats.h)
 *
 * An entry is eight or four bytes (kern/iq_bytes.h): small integers, whose
 * scale is a power of two times that of the C decoder, where that has
 * fractions. Products are the same. Signs and scales of a block are computed
 * before its entries.
 */
#ifndef GG_KERN_SIMD_BLOCKS_IQ_H
#define GG_KERN_SIMD_BLOCKS_IQ_H

#include "base/bytes.h"
#include "kern/c/block_io.h"
#include "kern/iq_bytes.h"
#include "kern/simd/v256.h"

/* Negate where a bit of signs is set. A level may define a shorter way. */
#ifndef WITH_SIGNS
#define WITH_SIGNS with_signs
static inline __m256i with_signs(__m256i q, uint32_t signs)
{
    const __m256i minus = gg_v256_spread_bits(signs);
    return _mm256_sub_epi8(_mm256_xor_si256(q, minus), minus);
}
#endif

/* gg_dtype_iq_signs of 32 bytes of seven bits. */
static inline __m256i even_signs(__m256i s)
{
    /* index: a nibble; bit 7: it has an odd number of set bits */
    const char odd = (char)0x80;
    const __m256i parity = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, odd, odd, 0, odd, 0, 0, odd, odd, 0, 0, odd, 0, odd, odd, 0));
    const __m256i p = _mm256_xor_si256(s, _mm256_srli_epi16(s, 4));
    return _mm256_or_si256(
        s, m256_lookup(parity, _mm256_and_si256(p, _mm256_set1_epi8(15))));
}

/* Signs of four times seven bits in each of eight words; the four bits above
 * them are the scale, d (1/2 + bits) half. */
static inline void signs_and_scales(uint32_t sign[8], float scale[8],
                                    __m256i v, float d, float half)
{
    __m256i s = _mm256_and_si256(v, _mm256_set1_epi32(0x7f));
    GG_UNROLL
    for (int i = 1; i < 4; i++)
        s = _mm256_or_si256(
            s, _mm256_and_si256(_mm256_slli_epi32(v, i),
                                _mm256_set1_epi32(0x7f << 8 * i)));
    _mm256_storeu_si256((__m256i *)(void *)sign, even_signs(s));
    __m256 f = _mm256_cvtepi32_ps(_mm256_srli_epi32(v, 28));
    f = _mm256_add_ps(_mm256_set1_ps(0.5f), f);
    f = _mm256_mul_ps(_mm256_set1_ps(d), f);
    _mm256_storeu_ps(scale, _mm256_mul_ps(f, _mm256_set1_ps(half)));
}

/* d (1/2 + nibble) / 4 of 16 nibbles, low ones first. */
static inline void scales_iq2(float scale[16], const uint8_t s[8], float d)
{
    const __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)s);
    const __m128i low = _mm_set1_epi8(15);
    const __m128i b = _mm_unpacklo_epi8(
        _mm_and_si128(v, low), _mm_and_si128(_mm_srli_epi16(v, 4), low));
    const __m256 all = _mm256_set1_ps(d), half = _mm256_set1_ps(0.5f);
    __m256 f[2] = { gg_v256_u8_ps(b), gg_v256_u8_ps(_mm_srli_si128(b, 8)) };
    GG_UNROLL
    for (int i = 0; i < 2; i++) {
        f[i] = _mm256_mul_ps(all, _mm256_add_ps(half, f[i]));
        _mm256_storeu_ps(scale + 8 * i,
                         _mm256_mul_ps(f[i], _mm256_set1_ps(0.25f)));
    }
}

static inline __m256i entries_8(const uint64_t *t, unsigned a, unsigned b,
                                unsigned c, unsigned d)
{
    return _mm256_setr_epi64x((long long)t[a], (long long)t[b],
                              (long long)t[c], (long long)t[d]);
}

/* Entries of four elements: those of k, with the bits of high above. */
static inline __m256i entries_4(const uint32_t *t, const uint8_t k[8],
                                unsigned high)
{
    int v[8];
    GG_UNROLL
    for (unsigned i = 0; i < 8; i++)
        v[i] = (int)t[k[i] | (high << (8 - i) & 256)];
    return _mm256_setr_epi32(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
}

static GG_ALWAYS_INLINE void gg_kern_each_iq2_xxs(TO *to, const void *src,
                                                  size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        /* the last four of each eight bytes */
        const __m256 a = _mm256_castsi256_ps(gg_v256_load256(p + 2));
        const __m256 b = _mm256_castsi256_ps(gg_v256_load256(p + 34));
        const __m256i odd = _mm256_permute4x64_epi64(
            _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd)), 0xd8);
        uint32_t sign[8];
        float scale[8];
        signs_and_scales(sign, scale, odd, to_d(to, gg_v256_half_ps(p), 3),
                         0.25f);
        for (int g = 0; g < 8; g++) {
            const uint8_t *k = p + 2 + 8 * g;
            const __m256i q =
                entries_8(gg_kern_iq2_xxs_bytes, k[0], k[1], k[2], k[3]);
            to_i8(to, WITH_SIGNS(q, sign[g]), scale[g], scale[g]);
        }
        p += sizeof(struct gg_block_iq2_xxs);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq2_xs(TO *to, const void *src,
                                                 size_t n)
{
    const __m256i nine = _mm256_set1_epi16(511);
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const __m256i a = gg_v256_load256(p + 2), b = gg_v256_load256(p + 34);
        const __m256i seven = _mm256_packus_epi16(_mm256_srli_epi16(a, 9),
                                                  _mm256_srli_epi16(b, 9));
        uint32_t sign[8];
        uint16_t k[32];
        float scale[16];
        _mm256_storeu_si256((__m256i *)(void *)sign,
                            even_signs(_mm256_permute4x64_epi64(seven, 0xd8)));
        _mm256_storeu_si256((__m256i *)(void *)k, _mm256_and_si256(a, nine));
        _mm256_storeu_si256((__m256i *)(void *)(k + 16),
                            _mm256_and_si256(b, nine));
        scales_iq2(scale, p + offsetof(struct gg_block_iq2_xs, scales),
                   to_d(to, gg_v256_half_ps(p), 3));
        for (int s = 0; s < 8; s++) {
            const __m256i q =
                entries_8(gg_kern_iq2_xs_bytes, k[4 * s], k[4 * s + 1],
                          k[4 * s + 2], k[4 * s + 3]);
            to_i8(to, WITH_SIGNS(q, sign[s]), scale[2 * s], scale[2 * s + 1]);
        }
        p += sizeof(struct gg_block_iq2_xs);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq2_s(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *k = p + offsetof(struct gg_block_iq2_s, qs);
        const uint8_t *qh = p + offsetof(struct gg_block_iq2_s, qh);
        float scale[16];
        scales_iq2(scale, p + offsetof(struct gg_block_iq2_s, scales),
                   to_d(to, gg_v256_half_ps(p), 3));
        for (int s = 0; s < 8; s++, k += 4) {
            const unsigned h = (unsigned)qh[s] << 8;
            const __m256i q =
                entries_8(gg_kern_iq2_s_bytes, k[0] | (h & 0x300),
                          k[1] | (h >> 2 & 0x300), k[2] | (h >> 4 & 0x300),
                          k[3] | (h >> 6 & 0x300));
            to_i8(to, WITH_SIGNS(q, gg_bytes_load32le(k + 32)), scale[2 * s],
                  scale[2 * s + 1]);
        }
        p += sizeof(struct gg_block_iq2_s);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq3_xxs(TO *to, const void *src,
                                                  size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_iq3_xxs, qs);
        uint32_t sign[8];
        float scale[8];
        signs_and_scales(sign, scale, gg_v256_load256(qs + 64),
                         to_d(to, gg_v256_half_ps(p), 2), 0.5f);
        for (int g = 0; g < 8; g++, qs += 8) {
            const __m256i q = entries_4(gg_kern_iq3_xxs_bytes, qs, 0);
            to_i8(to, WITH_SIGNS(q, sign[g]), scale[g], scale[g]);
        }
        p += sizeof(struct gg_block_iq3_xxs);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq3_s(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_iq3_s, qs);
        const uint8_t *qh = p + offsetof(struct gg_block_iq3_s, qh);
        const uint8_t *signs = p + offsetof(struct gg_block_iq3_s, signs);
        const uint8_t *sc = p + offsetof(struct gg_block_iq3_s, scales);
        const float d = to_d(to, gg_v256_half_ps(p), 0);
        for (int s = 0; s < 8; s++, qs += 8, signs += 4) {
            const int k = sc[s / 2] >> 4 * (s & 1) & 15;
            const float scale = d * (float)(1 + 2 * k);
            const __m256i q = entries_4(gg_kern_iq3_s_bytes, qs, qh[s]);
            to_i8(to, WITH_SIGNS(q, gg_bytes_load32le(signs)), scale, scale);
        }
        p += sizeof(struct gg_block_iq3_s);
    }
}

/* Eight times level and GG_IQ1_DELTA, for an eighth of the scale. */
static GG_ALWAYS_INLINE void gg_kern_each_iq1_s(TO *to, const void *src,
                                                size_t n)
{
    const uint64_t *bytes = gg_kern_iq1_bytes;
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *k = p + offsetof(struct gg_block_iq1_s, qs);
        const uint8_t *qh = p + offsetof(struct gg_block_iq1_s, qh);
        const float d = to_d(to, gg_v256_half_ps(p), 3) * 0.125f;
        for (int g = 0; g < 8; g++, k += 4) {
            const unsigned h = gg_bytes_load16le(qh + 2 * g);
            const float s = d * (float)(int)(2 * (h >> 12 & 7) + 1);
            __m256i q = entries_8(
                bytes, k[0] | (h << 8 & 0x700), k[1] | (h << 5 & 0x700),
                k[2] | (h << 2 & 0x700), k[3] | (h >> 1 & 0x700));
            q = _mm256_add_epi8(q, _mm256_set1_epi8(h & 0x8000 ? -1 : 1));
            to_i8(to, q, s, s);
        }
        p += sizeof(struct gg_block_iq1_s);
    }
}

/* 1, or -1 where bit 3 of the nibble of eight elements is set. */
static inline __m256i iq1_deltas(unsigned h)
{
    const __m256i bit = _mm256_setr_epi64x(8, 0x80, 0x800, 0x8000);
    const __m256i set =
        _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(h), bit), bit);
    return _mm256_or_si256(set, _mm256_set1_epi8(1));
}

static GG_ALWAYS_INLINE void gg_kern_each_iq1_m(TO *to, const void *src,
                                                size_t n)
{
    const uint64_t *bytes = gg_kern_iq1_bytes;
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qh = p + offsetof(struct gg_block_iq1_m, qh);
        unsigned sc[4], half = 0;
        for (int k = 0; k < 4; k++) {
            sc[k] = gg_bytes_load16le(
                p + offsetof(struct gg_block_iq1_m, scales) + 2 * k);
            half |= sc[k] >> 12 << 4 * k;
        }
        const float d = to_d(to, _cvtsh_ss((unsigned short)half), 3) * 0.125f;
        for (int g = 0; g < 8; g++) {
            const uint8_t *k = p + 4 * g;
            const unsigned h = gg_bytes_load16le(qh + 2 * g);
            const unsigned s = sc[g / 2] >> 6 * (g % 2);
            const __m256i q = entries_8(
                bytes, k[0] | (h << 8 & 0x700), k[1] | (h << 4 & 0x700),
                k[2] | (h & 0x700), k[3] | (h >> 4 & 0x700));
            to_i8(to, _mm256_add_epi8(q, iq1_deltas(h)),
                  d * (float)(int)(2 * (s & 7) + 1),
                  d * (float)(int)(2 * (s >> 3 & 7) + 1));
        }
        p += sizeof(struct gg_block_iq1_m);
    }
}

#endif
