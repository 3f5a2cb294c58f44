/* SPDX-License-Identifier: MIT */
/* gemm_int_cols.h - functions that the integer packers for 256 bits share */
#ifndef GG_KERN_SIMD_GEMM_INT_256_H
#define GG_KERN_SIMD_GEMM_INT_256_H

#include "kern/gemm_int.h"
#include "kern/simd/v256.h"

#include <string.h>

/* Store eight rows of 32-bit groups of steps, v[r], to dst[i * width + r]. */
static GG_ALWAYS_INLINE void gg_v256_put_8(int32_t *dst, size_t width,
                                           const __m256i rows[8])
{
    __m256 v[8];
    GG_UNROLL
    for (int r = 0; r < 8; r++)
        v[r] = _mm256_castsi256_ps(rows[r]);
    gg_v256_transpose8(v);
    GG_UNROLL
    for (int i = 0; i < 8; i++)
        _mm256_storeu_ps((float *)(void *)(dst + (size_t)i * width), v[i]);
}

/* Store one row. */
static GG_ALWAYS_INLINE void gg_v256_put_1(int32_t *dst, size_t width,
                                           __m256i row)
{
    _Alignas(32) int32_t v[8];
    _mm256_store_si256((__m256i *)(void *)v, row);
    for (size_t t = 0; t < 8; t++)
        dst[t * width] = v[t];
}

/* Store columns col[j], j < n, of n_groups 32-bit groups to dst[t * width + j].
 * For GG_V256_COLS columns, rows are stored with two lanes too many, which the
 * next row overwrites. */
enum { GG_V256_COLS = 6, GG_V256_COL_GROUPS = 192 };
static inline void gg_v256_put_cols(int32_t *dst, size_t width, size_t n,
                                    int32_t col[][GG_V256_COL_GROUPS],
                                    size_t n_groups)
{
    const __m256i six = _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0);
    size_t t = 0;
    for (; n == GG_V256_COLS && width == n && t + 8 <= n_groups; t += 8) {
        __m256 v[8];
        GG_UNROLL
        for (int j = 0; j < 8; j++)
            v[j] = j < GG_V256_COLS
                       ? _mm256_loadu_ps((const float *)(void *)(col[j] + t))
                       : _mm256_setzero_ps();
        gg_v256_transpose8(v);
        GG_UNROLL
        for (int i = 0; i < 7; i++)
            _mm256_storeu_ps((float *)(void *)(dst + (t + (size_t)i) * width),
                             v[i]);
        _mm256_maskstore_ps((float *)(void *)(dst + (t + 7) * width), six,
                            v[7]);
    }
    for (; t < n_groups; t++)
        for (size_t j = 0; j < n; j++)
            dst[t * width + j] = col[j][t];
}

/* Sums of the four lanes of each half: lanes i and i + 4 are those of v[i]. */
static GG_ALWAYS_INLINE __m256i gg_v256_sums_4(const __m256i v[4])
{
    return _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]),
                             _mm256_hadd_epi32(v[2], v[3]));
}

/* Address of the 256 floats of x[k] from at on. If some are missing, they are
 * copied into part, padded with 0. */
static inline const float *gg_v256_block_256(const float *x, size_t at,
                                             size_t k,
                                             float part[GG_GEMM_INT_STEPS])
{
    if (k - at >= GG_GEMM_INT_STEPS)
        return x + at;
    memset(part, 0, GG_GEMM_INT_STEPS * sizeof *part);
    return memcpy(part, x + at, (k - at) * sizeof *part);
}

#endif
