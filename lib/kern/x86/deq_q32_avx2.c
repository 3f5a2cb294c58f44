/* deq_q32_avx2.c - decoders of the types with blocks of 32 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/block.h"
#include "kern/x86/x86.h"

#include <stddef.h>

/* 32 floats: signed bytes times d. */
static inline void put_i8(float *dst, __m128i lo, __m128i hi, __m256 d)
{
    _mm256_storeu_ps(dst, _mm256_mul_ps(gg_i8_ps(lo), d));
    _mm256_storeu_ps(dst + 8,
                     _mm256_mul_ps(gg_i8_ps(_mm_srli_si128(lo, 8)), d));
    _mm256_storeu_ps(dst + 16, _mm256_mul_ps(gg_i8_ps(hi), d));
    _mm256_storeu_ps(dst + 24,
                     _mm256_mul_ps(gg_i8_ps(_mm_srli_si128(hi, 8)), d));
}

void gg_decode_q4_0_avx2(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    const __m128i low = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        __m128i q = gg_load128(p + offsetof(struct gg_block_q4_0, qs));
        __m128i lo = _mm_and_si128(q, low);
        __m128i hi = _mm_and_si128(_mm_srli_epi16(q, 4), low);
        put_i8(dst, _mm_sub_epi8(lo, eight), _mm_sub_epi8(hi, eight),
               _mm256_set1_ps(gg_half_ps(p)));
        p += sizeof(struct gg_block_q4_0);
    }
}

void gg_decode_q8_0_avx2(const void *src, float *dst, size_t n)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        const uint8_t *q = p + offsetof(struct gg_block_q8_0, qs);
        put_i8(dst, gg_load128(q), gg_load128(q + 16),
               _mm256_set1_ps(gg_half_ps(p)));
        p += sizeof(struct gg_block_q8_0);
    }
}
