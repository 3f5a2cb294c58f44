/* SPDX-License-Identifier: MIT */
/* enc_flt_256.c - encoders of plain floats, eight and sixteen at a time */
#include "config.h"
#include "kern/codec.h"

#include "kern/simd/m256.h"

void gg_kern_encode_f16_256(const float *src, void *dst, size_t n_rows,
                            size_t row_len, const float *weight)
{
    unsigned char *p = dst;
    size_t n = n_rows * row_len, i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(src + i),
                                    _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((void *)(p + 2 * i), h);
    }
    if (i < n)
        gg_kern_encode_f16_c(src + i, p + 2 * i, 1, n - i, weight);
}

/* Eight floats to bf16 in the low halves of the lanes: round to nearest even;
 * a NaN is cut and made quiet. */
static inline __m256i bf16_of(__m256i v)
{
    __m256i hi = _mm256_srli_epi32(v, 16);
    __m256i odd = _mm256_and_si256(hi, _mm256_set1_epi32(1));
    __m256i r = _mm256_add_epi32(v, _mm256_set1_epi32(0x7fff));
    r = _mm256_srli_epi32(_mm256_add_epi32(r, odd), 16);
    __m256i nan = _mm256_or_si256(hi, _mm256_set1_epi32(64));
    __m256i is_nan =
        _mm256_cmpgt_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0x7fffffff)),
                           _mm256_set1_epi32(0x7f800000));
    return m256_select(r, nan, is_nan);
}

void gg_kern_encode_bf16_256(const float *src, void *dst, size_t n_rows,
                             size_t row_len, const float *weight)
{
    unsigned char *p = dst;
    size_t n = n_rows * row_len, i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = bf16_of(_mm256_loadu_si256((const void *)(src + i)));
        __m256i b = bf16_of(_mm256_loadu_si256((const void *)(src + i + 8)));
        __m256i h = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
        _mm256_storeu_si256((void *)(p + 2 * i), h);
    }
    if (i < n)
        gg_kern_encode_bf16_c(src + i, p + 2 * i, 1, n - i, weight);
}
