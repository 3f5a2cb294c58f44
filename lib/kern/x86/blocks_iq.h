/* blocks_iq.h - blocks of the codebook types, handed on as floats.h says
 *
 * An entry is level numbers of 2 or 3 bits (dtype/iq_code.h), which pick the
 * levels out of a register. Where they are of 2 bits 32 elements are spread to
 * bytes at once: levels are small integers, for a scale that is a power of two
 * times that of the decoder in C where it has fractions. Products are the same.
 */
#ifndef GG_KERN_X86_BLOCKS_IQ_H
#define GG_KERN_X86_BLOCKS_IQ_H

#include "base/bytes.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"
#include "kern/x86/x86.h"

/* Minus where a bit of signs is set. */
static inline __m256i with_signs(__m256i q, uint32_t signs)
{
    const __m256i minus = gg_x86_spread_bits(signs);
    return _mm256_sub_epi8(_mm256_xor_si256(q, minus), minus);
}

/* gg_dtype_iq_signs of four bytes. */
static inline uint32_t even_signs(uint32_t s)
{
    uint32_t p = s ^ (s >> 4 & 0x07070707);
    p ^= p >> 2;
    p ^= p >> 1;
    return s | (p & 0x01010101) << 7;
}

/* The same of four times seven bits. */
static inline uint32_t even_signs_28(uint32_t s)
{
    return even_signs((s & 0x7f) | (s << 1 & 0x7f00) | (s << 2 & 0x7f0000) |
                      (s << 3 & 0x7f000000));
}

/* Levels of four entries of eight elements, 16 bits each. A level's number is
 * in one of the two pairs of bits of an index: level 1 at 1 and 4, level 2 at 2
 * and 8. */
#define LEVELS_OF_TWO_BITS(l0, l1, l2)                                        \
    _mm256_broadcastsi128_si256(                                              \
        _mm_setr_epi8(l0, l1, l2, 0, l1, 0, 0, 0, l2, 0, 0, 0, 0, 0, 0, 0))
static inline __m256i levels8(__m256i levels, uint64_t codes)
{
    const __m256i which =
        _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4,
                         4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7);
    const __m256i pair = _mm256_set1_epi32((int)0xc0300c03);
    __m256i v = _mm256_set1_epi64x((long long)codes);
    v = _mm256_and_si256(_mm256_shuffle_epi8(v, which), pair);
    v = _mm256_or_si256(v, _mm256_srli_epi16(v, 4));
    v = _mm256_and_si256(v, _mm256_set1_epi8(15));
    return _mm256_shuffle_epi8(levels, v);
}

static inline uint64_t four_codes(unsigned a, unsigned b, unsigned c,
                                  unsigned d)
{
    return a | (uint64_t)b << 16 | (uint64_t)c << 32 | (uint64_t)d << 48;
}

static inline __m256i iq2_levels(void)
{
    static const int8_t l[] = GG_IQ2_LEVELS;
    return LEVELS_OF_TWO_BITS(l[0], l[1], l[2]);
}

static GG_ALWAYS_INLINE void gg_kern_each_iq2_xxs(TO *to, const void *src,
                                                  size_t n)
{
    const uint16_t *code = gg_dtype_iq2_xxs_code;
    const __m256i levels = iq2_levels();
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        float d = gg_x86_half_ps(p);
        for (int g = 0; g < 8; g++) {
            const uint8_t *k = p + 2 + 8 * g;
            uint32_t rest = gg_bytes_load32le(k + 4);
            float s = d * (0.5f + (float)(int)(rest >> 28)) * 0.25f;
            __m256i q = levels8(levels, four_codes(code[k[0]], code[k[1]],
                                                   code[k[2]], code[k[3]]));
            to_i8(to, with_signs(q, even_signs_28(rest)), s, s);
        }
        p += sizeof(struct gg_block_iq2_xxs);
    }
}

/* Bits 9 to 15 of four words, to the low bits of bytes. */
static inline uint32_t top_seven(uint64_t words)
{
    uint64_t v = words >> 9 & 0x007f007f007f007f;
    v = (v | v >> 8) & 0x0000ffff0000ffff;
    return (uint32_t)(v | v >> 16);
}

static GG_ALWAYS_INLINE void gg_kern_each_iq2_xs(TO *to, const void *src,
                                                 size_t n)
{
    const uint16_t *code = gg_dtype_iq2_xs_code;
    const __m256i levels = iq2_levels();
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = p + offsetof(struct gg_block_iq2_xs, scales);
        float d = gg_x86_half_ps(p);
        for (int s = 0; s < 8; s++) {
            const uint64_t k = gg_bytes_load64le(p + 2 + 8 * s);
            __m256i q = levels8(
                levels, four_codes(code[k & 511], code[k >> 16 & 511],
                                   code[k >> 32 & 511], code[k >> 48 & 511]));
            to_i8(to, with_signs(q, even_signs(top_seven(k))),
                  d * (0.5f + (float)(sc[s] & 15)) * 0.25f,
                  d * (0.5f + (float)(sc[s] >> 4)) * 0.25f);
        }
        p += sizeof(struct gg_block_iq2_xs);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq2_s(TO *to, const void *src,
                                                size_t n)
{
    const uint16_t *code = gg_dtype_iq2_s_code;
    const __m256i levels = iq2_levels();
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *k = p + offsetof(struct gg_block_iq2_s, qs);
        const uint8_t *qh = p + offsetof(struct gg_block_iq2_s, qh);
        const uint8_t *sc = p + offsetof(struct gg_block_iq2_s, scales);
        float d = gg_x86_half_ps(p);
        for (int s = 0; s < 8; s++, k += 4) {
            const unsigned h = (unsigned)qh[s] << 8;
            __m256i q =
                levels8(levels, four_codes(code[k[0] | (h & 0x300)],
                                           code[k[1] | (h >> 2 & 0x300)],
                                           code[k[2] | (h >> 4 & 0x300)],
                                           code[k[3] | (h >> 6 & 0x300)]));
            to_i8(to, with_signs(q, gg_bytes_load32le(k + 32)),
                  d * (0.5f + (float)(sc[s] & 15)) * 0.25f,
                  d * (0.5f + (float)(sc[s] >> 4)) * 0.25f);
        }
        p += sizeof(struct gg_block_iq2_s);
    }
}

/* ---- floats: spreading entries of four to bytes is not faster ---- */

/* Bit j of signs becomes the sign of lane j. */
static inline __m256 sign_lanes(uint32_t signs)
{
    const __m256i up = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    __m256i v = _mm256_sllv_epi32(_mm256_set1_epi32((int)signs), up);
    return _mm256_and_ps(_mm256_castsi256_ps(v), _mm256_set1_ps(-0.0f));
}

/* Levels of two entries of four elements, lo's first. */
static inline __m256 levels4(const float *level, unsigned lo, unsigned hi)
{
    const __m256i shift = _mm256_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21);
    __m256i v = _mm256_set1_epi32((int)(lo | hi << 12));
    v = _mm256_srlv_epi32(v, shift); /* three bits are used */
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(level), v);
}

static inline __m256 scaled(__m256 level, uint32_t signs, float scale)
{
    __m256 v = _mm256_mul_ps(_mm256_set1_ps(scale), level);
    return _mm256_xor_ps(v, sign_lanes(signs));
}

static const float iq3_xxs_level[8] = GG_IQ3_XXS_LEVELS;
static const float iq3_s_level[8] = GG_IQ3_S_LEVELS;

static GG_ALWAYS_INLINE void gg_kern_each_iq3_xxs(TO *to, const void *src,
                                                  size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_iq3_xxs, qs);
        for (int g = 0; g < 8; g++, qs += 8) {
            uint32_t rest = gg_bytes_load32le(
                p + offsetof(struct gg_block_iq3_xxs, qs) + 64 + 4 * g);
            float scale =
                gg_x86_half_ps(p) * (0.5f + (float)(rest >> 28)) * 0.5f;
            __m256 v[4];
            GG_UNROLL
            for (int l = 0; l < 4; l++)
                v[l] = scaled(levels4(iq3_xxs_level,
                                      gg_dtype_iq3_xxs_code[qs[2 * l]],
                                      gg_dtype_iq3_xxs_code[qs[2 * l + 1]]),
                              gg_dtype_iq_signs(rest >> 7 * l), scale);
            to_ps(to, v);
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
        float d = gg_x86_half_ps(p);
        for (int s = 0; s < 8; s++, qs += 8) {
            int k = sc[s / 2] >> 4 * (s & 1) & 15;
            float scale = d * (float)(1 + 2 * k);
            const uint16_t *code = gg_dtype_iq3_s_code;
            __m256 v[4];
            GG_UNROLL
            for (int l = 0; l < 4; l++) {
                unsigned h = (unsigned)qh[s] << 8 >> 2 * l;
                v[l] = scaled(levels4(iq3_s_level, code[qs[2 * l] | (h & 256)],
                                      code[qs[2 * l + 1] | (h >> 1 & 256)]),
                              signs[4 * s + l], scale);
            }
            to_ps(to, v);
        }
        p += sizeof(struct gg_block_iq3_s);
    }
}

/* Eight times level and GG_IQ1_DELTA, for an eighth of the scale. */
static inline __m256i iq1_levels(void)
{
    static const int8_t l[] = GG_IQ1_LEVELS;
    return LEVELS_OF_TWO_BITS((char)(8 * l[0]), (char)(8 * l[1]),
                              (char)(8 * l[2]));
}

static GG_ALWAYS_INLINE void gg_kern_each_iq1_s(TO *to, const void *src,
                                                size_t n)
{
    const uint16_t *code = gg_dtype_iq1_code;
    const __m256i levels = iq1_levels();
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *k = p + offsetof(struct gg_block_iq1_s, qs);
        const uint8_t *qh = p + offsetof(struct gg_block_iq1_s, qh);
        const float d = gg_x86_half_ps(p) * 0.125f;
        for (int g = 0; g < 8; g++, k += 4) {
            const unsigned h = gg_bytes_load16le(qh + 2 * g);
            const float s = d * (float)(int)(2 * (h >> 12 & 7) + 1);
            __m256i q =
                levels8(levels, four_codes(code[k[0] | (h << 8 & 0x700)],
                                           code[k[1] | (h << 5 & 0x700)],
                                           code[k[2] | (h << 2 & 0x700)],
                                           code[k[3] | (h >> 1 & 0x700)]));
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
    const uint16_t *code = gg_dtype_iq1_code;
    const __m256i levels = iq1_levels();
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qh = p + offsetof(struct gg_block_iq1_m, qh);
        unsigned sc[4], half = 0;
        for (int k = 0; k < 4; k++) {
            sc[k] = gg_bytes_load16le(
                p + offsetof(struct gg_block_iq1_m, scales) + 2 * k);
            half |= sc[k] >> 12 << 4 * k;
        }
        const float d = _cvtsh_ss((unsigned short)half) * 0.125f;
        for (int g = 0; g < 8; g++) {
            const uint8_t *k = p + 4 * g;
            const unsigned h = gg_bytes_load16le(qh + 2 * g);
            const unsigned s = sc[g / 2] >> 6 * (g % 2);
            const __m256i q =
                levels8(levels, four_codes(code[k[0] | (h << 8 & 0x700)],
                                           code[k[1] | (h << 4 & 0x700)],
                                           code[k[2] | (h & 0x700)],
                                           code[k[3] | (h >> 4 & 0x700)]));
            to_i8(to, _mm256_add_epi8(q, iq1_deltas(h)),
                  d * (float)(int)(2 * (s & 7) + 1),
                  d * (float)(int)(2 * (s >> 3 & 7) + 1));
        }
        p += sizeof(struct gg_block_iq1_m);
    }
}

#endif
