/* blocks_iq.h - blocks of the codebook types, handed on as floats.h says
 *
 * An entry is level numbers of 2 or 3 bits (dtype/iq_code.h): shifted into
 * lanes, they pick the levels out of a register.
 */
#ifndef GG_KERN_X86_BLOCKS_IQ_H
#define GG_KERN_X86_BLOCKS_IQ_H

#include "base/bytes.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"
#include "kern/x86/x86.h"

/* Bit j of signs becomes the sign of lane j. */
static inline __m256 sign_lanes(uint32_t signs)
{
    const __m256i up = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    __m256i v = _mm256_sllv_epi32(_mm256_set1_epi32((int)signs), up);
    return _mm256_and_ps(_mm256_castsi256_ps(v), _mm256_set1_ps(-0.0f));
}

/* Levels of an entry of eight elements. */
static inline __m256 levels8(const float *level, unsigned code)
{
    const __m256i shift = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    __m256i v = _mm256_srlv_epi32(_mm256_set1_epi32((int)code), shift);
    v = _mm256_and_si256(v, _mm256_set1_epi32(3));
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(level), v);
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

static const float iq1_level[8] = GG_IQ1_LEVELS;
static const float iq2_level[8] = GG_IQ2_LEVELS;
static const float iq3_xxs_level[8] = GG_IQ3_XXS_LEVELS;
static const float iq3_s_level[8] = GG_IQ3_S_LEVELS;

static GG_ALWAYS_INLINE void gg_kern_each_iq2_xxs(TO *to, const void *src,
                                                  size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        float d = gg_x86_half_ps(p);
        for (int g = 0; g < 8; g++) {
            const uint8_t *index = p + 2 + 8 * g;
            uint32_t rest = gg_bytes_load32le(index + 4);
            float scale = d * (0.5f + (float)(rest >> 28)) * 0.25f;
            __m256 v[4];
            GG_UNROLL
            for (int l = 0; l < 4; l++)
                v[l] =
                    scaled(levels8(iq2_level, gg_dtype_iq2_xxs_code[index[l]]),
                           gg_dtype_iq_signs(rest >> 7 * l), scale);
            to_ps(to, v);
        }
        p += sizeof(struct gg_block_iq2_xxs);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq2_xs(TO *to, const void *src,
                                                 size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = p + offsetof(struct gg_block_iq2_xs, scales);
        float d = gg_x86_half_ps(p);
        for (int s = 0; s < 8; s++) {
            __m256 v[4];
            GG_UNROLL
            for (int l = 0; l < 4; l++) {
                unsigned q = gg_bytes_load16le(p + 2 + 8 * s + 2 * l);
                unsigned k = sc[s] >> 4 * (l / 2) & 15u;
                float scale = d * (0.5f + (float)(int)k) * 0.25f;
                v[l] =
                    scaled(levels8(iq2_level, gg_dtype_iq2_xs_code[q & 511]),
                           gg_dtype_iq_signs(q >> 9), scale);
            }
            to_ps(to, v);
        }
        p += sizeof(struct gg_block_iq2_xs);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq2_s(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_iq2_s, qs);
        const uint8_t *qh = p + offsetof(struct gg_block_iq2_s, qh);
        const uint8_t *sc = p + offsetof(struct gg_block_iq2_s, scales);
        float d = gg_x86_half_ps(p);
        for (int s = 0; s < 8; s++, qs += 4) {
            __m256 v[4];
            GG_UNROLL
            for (int l = 0; l < 4; l++) {
                unsigned k = sc[s] >> 4 * (l / 2) & 15u;
                unsigned hi = (unsigned)qh[s] << 8 >> 2 * l & 0x300;
                float scale = d * (0.5f + (float)(int)k) * 0.25f;
                v[l] =
                    scaled(levels8(iq2_level, gg_dtype_iq2_s_code[qs[l] | hi]),
                           qs[32 + l], scale);
            }
            to_ps(to, v);
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

static inline __m256 shifted(unsigned code, float delta, float scale)
{
    __m256 v = _mm256_add_ps(levels8(iq1_level, code), _mm256_set1_ps(delta));
    return _mm256_mul_ps(_mm256_set1_ps(scale), v);
}

static GG_ALWAYS_INLINE void gg_kern_each_iq1_s(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_iq1_s, qs);
        float d = gg_x86_half_ps(p);
        for (int s = 0; s < 8; s++, qs += 4) {
            unsigned h = gg_bytes_load16le(
                p + offsetof(struct gg_block_iq1_s, qh) + 2 * s);
            float scale = d * (float)(int)(2 * (h >> 12 & 7) + 1);
            __m256 v[4];
            GG_UNROLL
            for (int l = 0; l < 4; l++)
                v[l] =
                    shifted(gg_dtype_iq1_code[qs[l] | (h >> 3 * l & 7) << 8],
                            h & 0x8000 ? -GG_IQ1_DELTA : GG_IQ1_DELTA, scale);
            to_ps(to, v);
        }
        p += sizeof(struct gg_block_iq1_s);
    }
}

static GG_ALWAYS_INLINE void gg_kern_each_iq1_m(TO *to, const void *src,
                                                size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qh = p + offsetof(struct gg_block_iq1_m, qh);
        unsigned sc[4], half = 0;
        for (int k = 0; k < 4; k++) {
            sc[k] = gg_bytes_load16le(
                p + offsetof(struct gg_block_iq1_m, scales) + 2 * k);
            half |= sc[k] >> 12 << 4 * k;
        }
        float d = _cvtsh_ss((unsigned short)half);
        for (int s = 0; s < 8; s++) {
            unsigned h = gg_bytes_load16le(qh + 2 * s);
            unsigned k = sc[s / 2] >> 6 * (s % 2);
            __m256 v[4];
            GG_UNROLL
            for (int l = 0; l < 4; l++, h >>= 4)
                v[l] = shifted(gg_dtype_iq1_code[p[4 * s + l] | (h & 7) << 8],
                               h & 8 ? -GG_IQ1_DELTA : GG_IQ1_DELTA,
                               d * (float)(int)(2 * (k >> l / 2 * 3 & 7) + 1));
            to_ps(to, v);
        }
        p += sizeof(struct gg_block_iq1_m);
    }
}

#endif
