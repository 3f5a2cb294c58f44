/* SPDX-License-Identifier: MIT */
/* gemm_avx512bf16.c - products of bf16 for AVX-512 BF16
 *
 * A step of 32 bits is a pair of products: the tile and the transposition are
 * those of f32.
 */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_bf16.h"
#include "kern/x86/dp.h"

#include <immintrin.h>

static GG_ALWAYS_INLINE __m512 add_pairs(__m512 a, __m512 b, __m512 c)
{
    GG_DP_DPBF16_512(c, a, b);
    return c;
}

static GG_ALWAYS_INLINE __m256i to_bf16(__m512 x)
{
    __m256i to;
    GG_DP_TO_BF16(to, x);
    return to;
}

#define vf_fma add_pairs
#define TILE   gg_kern_bf16_tile_avx512bf16
#include "kern/x86/gemm_512.h"

enum { PART = 256, ROWS = 16, PAIRS = PART / 2 + 16 };

/* n floats to pairs, the last filled up with 0. */
static void round_row(float *pair, const float *src, size_t n)
{
    for (size_t p = 0; p < n; p += 16) {
        const __mmask16 in =
            (__mmask16)(n - p < 16 ? (1u << (n - p)) - 1 : 0xffff);
        _mm256_storeu_ps(
            pair + p / 2,
            _mm256_castsi256_ps(to_bf16(_mm512_maskz_loadu_ps(in, src + p))));
    }
}

static void pack_pairs(float *dst, size_t width, const float *src,
                       size_t stride, size_t n, size_t k)
{
    _Alignas(64) float pair[ROWS * PAIRS];
    for (size_t p = 0; p < k; p += PART, dst += PART / 2 * width)
        for (size_t r = 0; r < n; r += ROWS) {
            const size_t rows = GG_MIN(n - r, (size_t)ROWS);
            const size_t len = GG_MIN(k - p, (size_t)PART);
            for (size_t i = 0; i < rows; i++)
                round_row(pair + i * PAIRS, src + (r + i) * stride + p, len);
            pack_floats(dst + r, width, pair, PAIRS, rows, (len + 1) / 2);
        }
}

void gg_kern_bf16_pack_w_avx512bf16(const struct gg_kern_gemm *g, void *panel,
                                    size_t first, const float *src,
                                    size_t stride, size_t n, size_t k)
{
    pack_pairs((float *)panel + first, g->mr, src, stride, n, k);
}

void gg_kern_bf16_pack_x_avx512bf16(const struct gg_kern_gemm *g, void *panel,
                                    size_t first, const float *src,
                                    size_t stride, size_t n, size_t k)
{
    pack_pairs((float *)panel + first, g->nr, src, stride, n, k);
}
