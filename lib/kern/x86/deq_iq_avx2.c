/* deq_iq_avx2.c - decoders of the codebook types
 *
 * An entry is level numbers of 2 or 3 bits (dtype/iq_code.h): shifted into
 * lanes, they pick the levels out of a register.
 */
#include "config.h"
#include "kern/codec.h"
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

static inline void put8(float *dst, __m256 level, uint32_t signs, float scale)
{
    __m256 v = _mm256_mul_ps(_mm256_set1_ps(scale), level);
    _mm256_storeu_ps(dst, _mm256_xor_ps(v, sign_lanes(signs)));
}

static const float iq1_level[8] = GG_IQ1_LEVELS;
static const float iq2_level[8] = GG_IQ2_LEVELS;
static const float iq3_xxs_level[8] = GG_IQ3_XXS_LEVELS;
static const float iq3_s_level[8] = GG_IQ3_S_LEVELS;

void gg_kern_decode_iq2_xxs_avx2(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        float d = gg_x86_half_ps(p);
        for (int g = 0; g < 8; g++) {
            const uint8_t *index = p + 2 + 8 * g;
            uint32_t rest = gg_bytes_load32le(index + 4);
            float scale = d * (0.5f + (float)(rest >> 28)) * 0.25f;
            for (int l = 0; l < 4; l++, dst += 8)
                put8(dst, levels8(iq2_level, gg_dtype_iq2_xxs_code[index[l]]),
                     gg_dtype_iq_signs(rest >> 7 * l), scale);
        }
        p += sizeof(struct gg_block_iq2_xxs);
    }
}

void gg_kern_decode_iq2_xs_avx2(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *sc = p + offsetof(struct gg_block_iq2_xs, scales);
        float d = gg_x86_half_ps(p);
        for (int s = 0; s < 16; s++, dst += 16) {
            unsigned v = sc[s / 2] >> 4 * (s & 1) & 15u;
            float scale = d * (0.5f + (float)(int)v) * 0.25f;
            for (int l = 0; l < 2; l++) {
                unsigned q = gg_bytes_load16le(p + 2 + 4 * s + 2 * l);
                put8(dst + 8 * l,
                     levels8(iq2_level, gg_dtype_iq2_xs_code[q & 511]),
                     gg_dtype_iq_signs(q >> 9), scale);
            }
        }
        p += sizeof(struct gg_block_iq2_xs);
    }
}

void gg_kern_decode_iq2_s_avx2(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_iq2_s, qs);
        const uint8_t *qh = p + offsetof(struct gg_block_iq2_s, qh);
        const uint8_t *sc = p + offsetof(struct gg_block_iq2_s, scales);
        float d = gg_x86_half_ps(p);
        for (int s = 0; s < 16; s++, dst += 16, qs += 2) {
            unsigned v = sc[s / 2] >> 4 * (s & 1) & 15u;
            unsigned hi = (unsigned)qh[s / 2] << 8 >> 4 * (s & 1);
            float scale = d * (0.5f + (float)(int)v) * 0.25f;
            put8(dst,
                 levels8(iq2_level, gg_dtype_iq2_s_code[qs[0] | (hi & 0x300)]),
                 qs[32], scale);
            put8(dst + 8,
                 levels8(iq2_level,
                         gg_dtype_iq2_s_code[qs[1] | (hi >> 2 & 0x300)]),
                 qs[33], scale);
        }
        p += sizeof(struct gg_block_iq2_s);
    }
}

void gg_kern_decode_iq3_xxs_avx2(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_iq3_xxs, qs);
        float d = gg_x86_half_ps(p);
        for (int g = 0; g < 8; g++, qs += 8) {
            uint32_t rest = gg_bytes_load32le(
                p + offsetof(struct gg_block_iq3_xxs, qs) + 64 + 4 * g);
            float scale = d * (0.5f + (float)(rest >> 28)) * 0.5f;
            for (int l = 0; l < 4; l++, dst += 8)
                put8(dst,
                     levels4(iq3_xxs_level, gg_dtype_iq3_xxs_code[qs[2 * l]],
                             gg_dtype_iq3_xxs_code[qs[2 * l + 1]]),
                     gg_dtype_iq_signs(rest >> 7 * l), scale);
        }
        p += sizeof(struct gg_block_iq3_xxs);
    }
}

void gg_kern_decode_iq3_s_avx2(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_iq3_s, qs);
        const uint8_t *qh = p + offsetof(struct gg_block_iq3_s, qh);
        const uint8_t *signs = p + offsetof(struct gg_block_iq3_s, signs);
        const uint8_t *sc = p + offsetof(struct gg_block_iq3_s, scales);
        float d = gg_x86_half_ps(p);
        for (int s = 0; s < 8; s++, qs += 8) {
            int v = sc[s / 2] >> 4 * (s & 1) & 15;
            float scale = d * (float)(1 + 2 * v);
            unsigned h = (unsigned)qh[s] << 8;
            for (int l = 0; l < 4; l++, dst += 8, h >>= 2)
                put8(dst,
                     levels4(
                         iq3_s_level,
                         gg_dtype_iq3_s_code[qs[2 * l] | (h & 256)],
                         gg_dtype_iq3_s_code[qs[2 * l + 1] | (h >> 1 & 256)]),
                     signs[4 * s + l], scale);
        }
        p += sizeof(struct gg_block_iq3_s);
    }
}

static inline void put8_shifted(float *dst, unsigned code, float delta,
                                float scale)
{
    __m256 v = _mm256_add_ps(levels8(iq1_level, code), _mm256_set1_ps(delta));
    _mm256_storeu_ps(dst, _mm256_mul_ps(_mm256_set1_ps(scale), v));
}

void gg_kern_decode_iq1_s_avx2(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 256; i++) {
        const uint8_t *qs = p + offsetof(struct gg_block_iq1_s, qs);
        float d = gg_x86_half_ps(p);
        for (int l = 0; l < 32; l++, dst += 8) {
            unsigned h = gg_bytes_load16le(
                p + offsetof(struct gg_block_iq1_s, qh) + l / 4 * 2);
            unsigned hi = h >> 3 * (l % 4) & 7;
            put8_shifted(dst, gg_dtype_iq1_code[qs[l] | hi << 8],
                         h & 0x8000 ? -GG_IQ1_DELTA : GG_IQ1_DELTA,
                         d * (float)(int)(2 * (h >> 12 & 7) + 1));
        }
        p += sizeof(struct gg_block_iq1_s);
    }
}

void gg_kern_decode_iq1_m_avx2(const void *src, float *dst, size_t n)
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
        for (int s = 0; s < 16; s++) {
            unsigned h = qh[s], v = sc[s / 4] >> 3 * (s % 4) & 7;
            float scale = d * (float)(int)(2 * v + 1);
            for (int l = 0; l < 2; l++, dst += 8, h >>= 4)
                put8_shifted(dst,
                             gg_dtype_iq1_code[p[2 * s + l] | (h & 7) << 8],
                             h & 8 ? -GG_IQ1_DELTA : GG_IQ1_DELTA, scale);
        }
        p += sizeof(struct gg_block_iq1_m);
    }
}
