/* gemm_avx2.c - products for AVX2 and FMA: tiles of 16 rows by 6 columns
 *
 * Twelve accumulators, two vectors of weights and a broadcast use 15 of the
 * 16 registers; a step loads 2 vectors and 6 scalars for 12 multiply-adds, so
 * that two loads and two multiply-adds per cycle are balanced by the latter.
 * A w panel (kc * 64 bytes) stays in L1, x panels stream from L2.
 */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_exact.h"
#include "kern/x86/x86.h"

enum { MR = GG_GEMM_MR_AVX2, NR = GG_GEMM_NR_AVX2 };

/* The tile for a number of columns that the compiler knows. */
static GG_ALWAYS_INLINE void tile(const float *w, const float *x, size_t k,
                                  int n_cols, float *y, size_t y_stride,
                                  int add)
{
    __m256 acc[NR][2];
    GG_UNROLL
    for (int j = 0; j < n_cols; j++) {
        acc[j][0] = acc[j][1] = _mm256_setzero_ps();
        GG_PREFETCH_W(y + j * y_stride);
        GG_PREFETCH_W(y + j * y_stride + MR - 1);
    }
    for (size_t p = 0; p < k; p++, w += MR, x += NR) {
        const __m256 w0 = _mm256_load_ps(w), w1 = _mm256_load_ps(w + 8);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const __m256 b = _mm256_broadcast_ss(x + j);
            acc[j][0] = _mm256_fmadd_ps(w0, b, acc[j][0]);
            acc[j][1] = _mm256_fmadd_ps(w1, b, acc[j][1]);
        }
    }
    GG_UNROLL
    for (int j = 0; j < n_cols; j++, y += y_stride) {
        if (add) {
            acc[j][0] = _mm256_add_ps(_mm256_loadu_ps(y), acc[j][0]);
            acc[j][1] = _mm256_add_ps(_mm256_loadu_ps(y + 8), acc[j][1]);
        }
        _mm256_storeu_ps(y, acc[j][0]);
        _mm256_storeu_ps(y + 8, acc[j][1]);
    }
}

#define CASE(n)                                                               \
    case n: tile(w, x, k, n, y, y_stride, add); break;

void gg_kern_gemm_tile_avx2(const void *w, const void *x, size_t n_blocks,
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
    }
}

static void pack8(float *dst, size_t width, const float *src, size_t stride,
                  size_t k)
{
    size_t p = 0;
    for (; p + 8 <= k; p += 8) {
        __m256 v[8];
        GG_UNROLL
        for (int r = 0; r < 8; r++)
            v[r] = _mm256_loadu_ps(src + r * stride + p);
        gg_x86_transpose8(v);
        GG_UNROLL
        for (int r = 0; r < 8; r++)
            _mm256_storeu_ps(dst + (p + r) * width, v[r]);
    }
    for (; p < k; p++)
        for (size_t r = 0; r < 8; r++)
            dst[p * width + r] = src[r * stride + p];
}

static void pack2(float *dst, size_t width, const float *src, size_t stride,
                  size_t k)
{
    size_t p = 0;
    for (; p + 4 <= k; p += 4) {
        const __m128 a = _mm_loadu_ps(src + p);
        const __m128 b = _mm_loadu_ps(src + stride + p);
        const __m128 lo = _mm_unpacklo_ps(a, b), hi = _mm_unpackhi_ps(a, b);
        _mm_storel_pi((__m64 *)(void *)(dst + p * width), lo);
        _mm_storeh_pi((__m64 *)(void *)(dst + (p + 1) * width), lo);
        _mm_storel_pi((__m64 *)(void *)(dst + (p + 2) * width), hi);
        _mm_storeh_pi((__m64 *)(void *)(dst + (p + 3) * width), hi);
    }
    for (; p < k; p++) {
        dst[p * width] = src[p];
        dst[p * width + 1] = src[stride + p];
    }
}

static void pack(float *dst, size_t width, const float *src, size_t stride,
                 size_t rows, size_t k)
{
    size_t r = 0;
    for (; r + 8 <= rows; r += 8)
        pack8(dst + r, width, src + r * stride, stride, k);
    for (; r + 2 <= rows; r += 2)
        pack2(dst + r, width, src + r * stride, stride, k);
    for (; r < rows; r++)
        for (size_t p = 0; p < k; p++)
            dst[p * width + r] = src[r * stride + p];
}

GG_GEMM_EXACT_PACKERS(avx2)
