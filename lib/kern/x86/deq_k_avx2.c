/* deq_k_avx2.c - decoders of 256-element blocks */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"
#include "kern/x86/x86.h"

#include <stddef.h>

/* 32 codes of a byte each: scale * code - min. */
static inline void put_affine(float *dst, __m256i q, float scale, float min)
{
    __m256 s = _mm256_set1_ps(scale), m = _mm256_set1_ps(min);
    __m128i half[2] = { _mm256_castsi256_si128(q),
                        _mm256_extracti128_si256(q, 1) };
    for (int k = 0; k < 4; k++) {
        __m128i b = k & 1 ? _mm_srli_si128(half[k / 2], 8) : half[k / 2];
        __m256 v = _mm256_mul_ps(s, gg_u8_ps(b));
        _mm256_storeu_ps(dst + 8 * k, _mm256_sub_ps(v, m));
    }
}

void gg_decode_q4_k_avx2(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    const __m256i low = _mm256_set1_epi8(15);
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        const uint8_t *sc = p + offsetof(struct gg_block_q4_k, scales);
        const uint8_t *qs = p + offsetof(struct gg_block_q4_k, qs);
        float d = gg_half_ps(p);
        float dmin = gg_half_ps(p + offsetof(struct gg_block_q4_k, dmin));
        for (unsigned s = 0; s < 8; s += 2) {
            __m256i q = gg_load256(qs + 16 * s);
            put_affine(dst + 32 * s, _mm256_and_si256(q, low),
                       d * (float)gg_k4_scale(sc, s),
                       dmin * (float)gg_k4_min(sc, s));
            put_affine(dst + 32 * s + 32,
                       _mm256_and_si256(_mm256_srli_epi16(q, 4), low),
                       d * (float)gg_k4_scale(sc, s + 1),
                       dmin * (float)gg_k4_min(sc, s + 1));
        }
        p += sizeof(struct gg_block_q4_k);
    }
}

/* 32 signed codes, 16 by each scale. */
static inline void put_two(float *dst, __m256i q, float s0, float s1)
{
    __m128i half[2] = { _mm256_castsi256_si128(q),
                        _mm256_extracti128_si256(q, 1) };
    for (int k = 0; k < 4; k++) {
        __m128i b = k & 1 ? _mm_srli_si128(half[k / 2], 8) : half[k / 2];
        __m256 s = _mm256_set1_ps(k < 2 ? s0 : s1);
        _mm256_storeu_ps(dst + 8 * k, _mm256_mul_ps(s, gg_i8_ps(b)));
    }
}

void gg_decode_q6_k_avx2(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    const __m256i low = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
    const __m256i bias = _mm256_set1_epi8(32);
    for (size_t i = 0; i < n / 256; i++) {
        const int8_t *sc =
            (const int8_t *)p + offsetof(struct gg_block_q6_k, scales);
        float d = gg_half_ps(p + offsetof(struct gg_block_q6_k, d));
        for (int h = 0; h < 2; h++, sc += 8, dst += 128) {
            __m256i l0 = gg_load256(p + 64 * h), l1 = gg_load256(p + 64 * h + 32);
            __m256i hi = gg_load256(p + offsetof(struct gg_block_q6_k, qh) +
                                    32 * h);
            __m256i q[4] = {
                _mm256_or_si256(_mm256_and_si256(l0, low),
                                _mm256_and_si256(_mm256_slli_epi16(hi, 4), two)),
                _mm256_or_si256(_mm256_and_si256(l1, low),
                                _mm256_and_si256(_mm256_slli_epi16(hi, 2), two)),
                _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l0, 4), low),
                                _mm256_and_si256(hi, two)),
                _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l1, 4), low),
                                _mm256_and_si256(_mm256_srli_epi16(hi, 2), two))
            };
            for (int r = 0; r < 4; r++)
                put_two(dst + 32 * r, _mm256_sub_epi8(q[r], bias),
                        d * (float)sc[2 * r], d * (float)sc[2 * r + 1]);
        }
        p += sizeof(struct gg_block_q6_k);
    }
}
