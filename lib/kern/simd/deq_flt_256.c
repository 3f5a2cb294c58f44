/* SPDX-License-Identifier: MIT */
/* deq_flt_256.c - decoders of plain numbers, eight at a time
 *
 * VCVTPH2PS (f16) and a shift (bf16) give the reference's results, NaN
 * included. Integers of 8 and 16 bits are exact.
 */
#include "config.h"
#include "kern/codec.h"

#include "kern/simd/m256.h"

void gg_kern_decode_f16_256(const void *src, float *dst, size_t n)
{
    const unsigned char *p = src;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm_loadu_si128((const void *)(p + 2 * i));
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(h));
    }
    if (i < n)
        gg_kern_decode_f16_c(p + 2 * i, dst + i, n - i);
}

void gg_kern_decode_bf16_256(const void *src, float *dst, size_t n)
{
    const unsigned char *p = src;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm_loadu_si128((const void *)(p + 2 * i));
        __m256i v = _mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
        _mm256_storeu_si256((void *)(dst + i), v);
    }
    if (i < n)
        gg_kern_decode_bf16_c(p + 2 * i, dst + i, n - i);
}

void gg_kern_decode_i8_256(const void *src, float *dst, size_t n)
{
    const unsigned char *p = src;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i b = _mm_loadl_epi64((const void *)(p + i));
        __m256i v = _mm256_cvtepi8_epi32(b);
        _mm256_storeu_ps(dst + i, _mm256_cvtepi32_ps(v));
    }
    if (i < n)
        gg_kern_decode_i8_c(p + i, dst + i, n - i);
}

void gg_kern_decode_i16_256(const void *src, float *dst, size_t n)
{
    const unsigned char *p = src;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm_loadu_si128((const void *)(p + 2 * i));
        __m256i v = _mm256_cvtepi16_epi32(h);
        _mm256_storeu_ps(dst + i, _mm256_cvtepi32_ps(v));
    }
    if (i < n)
        gg_kern_decode_i16_c(p + 2 * i, dst + i, n - i);
}
