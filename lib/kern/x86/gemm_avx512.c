/* gemm_avx512.c - products for AVX-512: tiles of 32 rows by 12 columns
 *
 * 24 accumulators, two vectors of weights and a broadcast; a step is 2 + 12
 * loads for 24 multiply-adds. The x panel (kc * 48 bytes) stays in L1, w
 * panels stream from L2.
 */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_exact.h"

#include <immintrin.h>

enum { MR = GG_GEMM_MR_AVX512, NR = GG_GEMM_NR_AVX512 };

/* The tile for a number of columns that the compiler knows. */
static GG_ALWAYS_INLINE void tile(const float *w, const float *x, size_t k,
                                  int n_cols, float *y, size_t y_stride,
                                  int add)
{
    __m512 acc[NR][2];
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        acc[j][0] = acc[j][1] = _mm512_setzero_ps();
        GG_PREFETCH_W(y + j * y_stride);
        GG_PREFETCH_W(y + j * y_stride + 16);
        GG_PREFETCH_W(y + j * y_stride + MR - 1);
    }
    for (size_t p = 0; p < k; p++, w += MR, x += NR) {
        const __m512 w0 = _mm512_load_ps(w), w1 = _mm512_load_ps(w + 16);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const __m512 b = _mm512_set1_ps(x[j]);
            acc[j][0] = _mm512_fmadd_ps(w0, b, acc[j][0]);
            acc[j][1] = _mm512_fmadd_ps(w1, b, acc[j][1]);
        }
    }
    GG_UNROLL
    for (int j = 0; j < n_cols; j++, y += y_stride) {
        if (add) {
            acc[j][0] = _mm512_add_ps(_mm512_loadu_ps(y), acc[j][0]);
            acc[j][1] = _mm512_add_ps(_mm512_loadu_ps(y + 16), acc[j][1]);
        }
        _mm512_storeu_ps(y, acc[j][0]);
        _mm512_storeu_ps(y + 16, acc[j][1]);
    }
}

#define CASE(n)                                                               \
    case n: tile(w, x, k, n, y, y_stride, add); break;

void gg_kern_gemm_tile_avx512(const void *w, const void *x, size_t n_blocks,
                              unsigned n_cols, float *y, size_t y_stride,
                              int add)
{
    const size_t k = n_blocks;
    switch (n_cols) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
    }
}

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

static void pack16(float *dst, size_t width, const float *src, size_t stride,
                   size_t k)
{
    size_t p = 0;
    for (; p + 16 <= k; p += 16) {
        __m512 v[16];
        GG_UNROLL
        for (int r = 0; r < 16; r++)
            v[r] = _mm512_loadu_ps(src + r * stride + p);
        transpose16(v);
        GG_UNROLL
        for (int r = 0; r < 16; r++)
            _mm512_storeu_ps(dst + (p + r) * width, v[r]);
    }
    for (; p < k; p++)
        for (size_t r = 0; r < 16; r++)
            dst[p * width + r] = src[r * stride + p];
}

/* Four rows: each quarter is a 4 by 4 transpose. */
static void pack4(float *dst, size_t width, const float *src, size_t stride,
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

static void pack(float *dst, size_t width, const float *src, size_t stride,
                 size_t rows, size_t k)
{
    size_t r = 0;
    for (; r + 16 <= rows; r += 16)
        pack16(dst + r, width, src + r * stride, stride, k);
    for (; r + 4 <= rows; r += 4)
        pack4(dst + r, width, src + r * stride, stride, k);
    for (; r < rows; r++)
        for (size_t p = 0; p < k; p++)
            dst[p * width + r] = src[r * stride + p];
}

GG_GEMM_EXACT_PACKERS(avx512)
