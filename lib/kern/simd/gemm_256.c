/* SPDX-License-Identifier: MIT */
/* gemm_256.c - products for 256 bits: tiles of 16 rows by 6 columns
 *
 * Twelve accumulators, two vectors of weights and a broadcast use 15 of the
 * 16 registers; a step loads 2 vectors and 6 scalars for 12 multiply-adds, so
 * that two loads and two multiply-adds per cycle are balanced by the latter.
 * A w panel (kc * 64 bytes) stays in L1, x panels stream from L2.
 */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_exact.h"
#include "kern/simd/v256.h"

#define VF           __m256
#define vf_zero      _mm256_setzero_ps
#define vf_load      _mm256_load_ps
#define vf_loadu     _mm256_loadu_ps
#define vf_storeu    _mm256_storeu_ps
#define vf_all       _mm256_broadcast_ss
#define vf_add       _mm256_add_ps
#define vf_fma       _mm256_fmadd_ps
#define vf_transpose gg_v256_transpose8
#define TILE         gg_kern_gemm_tile_256
/* clang-format off */
#define CASES                                                                 \
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
/* clang-format on */

enum { MR = GG_GEMM_MR_256, NR = GG_GEMM_NR_256, LANES = 8, FEW = 2 };

static void pack_few(float *dst, size_t width, const float *src, size_t stride,
                     size_t k)
{
    size_t p = 0;
    for (; p + 4 <= k; p += 4) {
        const __m128 a = _mm_loadu_ps(src + p);
        const __m128 b = _mm_loadu_ps(src + stride + p);
        const __m128 lo = _mm_unpacklo_ps(a, b), hi = _mm_unpackhi_ps(a, b);
        _mm_storel_pi((void *)(dst + p * width), lo);
        _mm_storeh_pi((void *)(dst + (p + 1) * width), lo);
        _mm_storel_pi((void *)(dst + (p + 2) * width), hi);
        _mm_storeh_pi((void *)(dst + (p + 3) * width), hi);
    }
    for (; p < k; p++) {
        dst[p * width] = src[p];
        dst[p * width + 1] = src[stride + p];
    }
}

#include "kern/simd/gemm_impl.h"

GG_GEMM_EXACT_PACKERS(256)
