/* SPDX-License-Identifier: MIT */
/* gemm_512.h - tiles of 32 rows by 12 columns in vectors of 512 bits
 *
 * Included once by the file of a level, which first defines vf_fma(a, b, c),
 * which adds the products of a step (32 bits of a row and of a column) to a
 * sum, and TILE, the name of the tile. 24 accumulators, two vectors of weights
 * and a broadcast are in registers; a step is 2 + 12 loads for 24
 * multiply-adds. The x panel (kc * 48 bytes) stays in L1, w panels stream from
 * L2.
 */
#include <immintrin.h>

#define VF           __m512
#define vf_zero      _mm512_setzero_ps
#define vf_load      _mm512_load_ps
#define vf_loadu     _mm512_loadu_ps
#define vf_storeu    _mm512_storeu_ps
#define vf_all(p)    _mm512_set1_ps(*(p))
#define vf_add       _mm512_add_ps
#define vf_transpose transpose16
/* clang-format off */
#define CASES                                                                 \
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9)   \
    CASE(10) CASE(11) CASE(12)
/* clang-format on */

enum { MR = GG_GEMM_MR_AVX512, NR = GG_GEMM_NR_AVX512, LANES = 16, FEW = 4 };

/* v[r] holds 16 steps of row r; afterwards step r of 16 rows. */
static GG_ALWAYS_INLINE void transpose16(__m512 v[16])
{
    __m512 t[16];
    GG_UNROLL
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    /* v[4g + s]: step s, s + 4, s + 8, s + 12 of rows 4g .. 4g + 3 */
    GG_UNROLL
    for (int i = 0; i < 16; i += 4) {
        v[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        v[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        v[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        v[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    /* quarters: t[s] has steps s and s + 8 (quarters 0, 2), t[s + 4] of rows
     * 0..7 steps s + 4, s + 12; t[8 + ...] the same of rows 8..15 */
    GG_UNROLL
    for (int s = 0; s < 4; s++) {
        t[s] = _mm512_shuffle_f32x4(v[s], v[s + 4], 0x88);
        t[s + 4] = _mm512_shuffle_f32x4(v[s], v[s + 4], 0xdd);
        t[s + 8] = _mm512_shuffle_f32x4(v[s + 8], v[s + 12], 0x88);
        t[s + 12] = _mm512_shuffle_f32x4(v[s + 8], v[s + 12], 0xdd);
    }
    GG_UNROLL
    for (int s = 0; s < 8; s++) {
        v[s] = _mm512_shuffle_f32x4(t[s], t[s + 8], 0x88);
        v[s + 8] = _mm512_shuffle_f32x4(t[s], t[s + 8], 0xdd);
    }
}

/* Four rows: each quarter is a 4 by 4 transpose. */
static void pack_few(float *dst, size_t width, const float *src, size_t stride,
                     size_t k)
{
    size_t p = 0;
    for (; p + 4 <= k; p += 4) {
        __m128 a = _mm_loadu_ps(src + p);
        __m128 b = _mm_loadu_ps(src + stride + p);
        __m128 c = _mm_loadu_ps(src + 2 * stride + p);
        __m128 d = _mm_loadu_ps(src + 3 * stride + p);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps(dst + p * width, a);
        _mm_storeu_ps(dst + (p + 1) * width, b);
        _mm_storeu_ps(dst + (p + 2) * width, c);
        _mm_storeu_ps(dst + (p + 3) * width, d);
    }
    for (; p < k; p++)
        for (size_t r = 0; r < 4; r++)
            dst[p * width + r] = src[r * stride + p];
}

#include "kern/simd/gemm_impl.h"
