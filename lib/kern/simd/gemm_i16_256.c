/* SPDX-License-Identifier: MIT */
/* gemm_i16_256.c - products of 16-bit integers for 256 bits: tiles of 16 by 6
 *
 * The packer of activations here is that of all x86 levels.
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "kern/gemm_int.h"
#include "kern/simd/dp_256.h"
#include "kern/simd/gemm_int_cols.h"
#include "kern/simd/v256.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define LEVEL          256
#define VI_DP(c, a, b) GG_DP_MADDWD_ALL_256(c, a, b)
#include "kern/simd/gemm_int_256.h"

#include "kern/simd/gemm_i16_impl.h"

enum { STEPS = GG_GEMM_INT_STEPS, PAIRS = GG_GEMM_INT_PAIRS };

static GG_ALWAYS_INLINE __m256i round_8(const float *x, __m256 inverse)
{
    return m256_to_ints(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
}

/* Pairs of 256 floats, rounded. */
static void round_all(const float *x, float inverse, int32_t *pair)
{
    const __m256 f = _mm256_set1_ps(inverse);
    for (int p = 0; p < STEPS; p += 32)
        for (int t = 0; t < 16; t += 8) {
            const __m256i a = round_8(x + p + t, f);
            const __m256i b = round_8(x + p + t + 16, f);
            _mm256_storeu_si256(
                (__m256i *)(void *)(pair + p / 2 + t),
                _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa));
        }
}

static int32_t sum_epi32(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v),
                              _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/* The largest sum of magnitudes of a run of what rounding gives. */
static int32_t largest_sum(const float *x, float inverse, unsigned n_runs)
{
    const __m256 f = _mm256_set1_ps(inverse);
    int32_t most = 0;
    for (unsigned r = 0; r < n_runs; r++) {
        __m256i sum = _mm256_setzero_si256();
        for (unsigned i = 0; i < STEPS / n_runs; i += 8, x += 8)
            sum = _mm256_add_epi32(sum, _mm256_abs_epi32(round_8(x, f)));
        most = GG_MAX(most, sum_epi32(sum));
    }
    return most;
}

static uint32_t largest_bits(const float *x)
{
    __m256i m = _mm256_setzero_si256();
    for (size_t i = 0; i < STEPS; i += 8)
        m = _mm256_max_epi32(m, gg_v256_abs_bits(_mm256_loadu_ps(x + i)));
    return (uint32_t)gg_v256_hmax_epi32(m);
}

/* 256 floats to pairs; returns their scale. Runs whose sums cannot be too
 * large are not added up. */
static float round_block(const struct gg_kern_gemm_ints *ints, const float *x,
                         int32_t *pair)
{
    const unsigned n = STEPS / ints->n_scales;
    const uint32_t bits = largest_bits(x);
    const float max = gg_bytes_f32_from_bits(bits);
    if (bits >= 0x7f800000 || max < GG_GEMM_INT_LEAST) {
        memset(pair, 0, PAIRS * sizeof *pair);
        return bits >= 0x7f800000 ? NAN : 0;
    }
    float inverse = GG_GEMM_INT_MOST / max;
    float scale = max / GG_GEMM_INT_MOST;
    if (n * GG_GEMM_INT_MOST > ints->most) {
        const float coarser = gg_gemm_int_coarsen_scale(
            largest_sum(x, inverse, ints->n_scales), ints->most, n);
        inverse /= coarser;
        scale *= coarser;
    }
    round_all(x, inverse, pair);
    return scale;
}

/* Sums of the low halves of 16 pairs each, and of the high ones. */
static void sums_16(const int32_t *pair, int32_t low[8], int32_t high[8])
{
    for (int i = 0; i < 8; i += 4) {
        __m256i lo[4], hi[4];
        GG_UNROLL
        for (int k = 0; k < 4; k++, pair += 16) {
            const __m256i a = gg_v256_load256(pair);
            const __m256i b = gg_v256_load256(pair + 8);
            lo[k] = _mm256_add_epi32(
                _mm256_srai_epi32(_mm256_slli_epi32(a, 16), 16),
                _mm256_srai_epi32(_mm256_slli_epi32(b, 16), 16));
            hi[k] = _mm256_add_epi32(_mm256_srai_epi32(a, 16),
                                     _mm256_srai_epi32(b, 16));
        }
        const __m256i l = gg_v256_sums_4(lo), h = gg_v256_sums_4(hi);
        _mm_storeu_si128((__m128i *)(void *)(low + i),
                         _mm_add_epi32(_mm256_castsi256_si128(l),
                                       _mm256_extracti128_si256(l, 1)));
        _mm_storeu_si128((__m128i *)(void *)(high + i),
                         _mm_add_epi32(_mm256_castsi256_si128(h),
                                       _mm256_extracti128_si256(h, 1)));
    }
}

static void put_float(int32_t *to, float x)
{
    memcpy(to, &x, sizeof x);
}

/* Sums of each 32 or 16 steps, times their scale. */
static void put_sums(const int32_t *pair, unsigned n, float scale, int32_t *to)
{
    int32_t low[8], high[8];
    if (!n)
        return;
    sums_16(pair, low, high);
    for (unsigned i = 0; i < 8 && n == 8; i++)
        put_float(to + i, (float)(low[i] + high[i]) * scale);
    for (unsigned i = 0; i < 8 && n == 16; i++) {
        put_float(to + 2 * i, (float)low[i] * scale);
        put_float(to + 2 * i + 1, (float)high[i] * scale);
    }
}

void gg_kern_i16_pack_x_256(const struct gg_kern_gemm *g, void *panel,
                            size_t first, const float *src, size_t stride,
                            size_t n, size_t k)
{
    for (size_t b = 0; b * STEPS < k; b++) {
        int32_t col[GG_V256_COLS][GG_V256_COL_GROUPS];
        for (size_t c = 0; c < n; c++) {
            float part[STEPS];
            const float scale = round_block(
                &g->ints,
                gg_v256_block_256(src + c * stride, b * STEPS, k, part),
                col[c]);
            put_float(&col[c][PAIRS], scale);
            put_sums(col[c], g->ints.n_mins, scale, col[c] + PAIRS + 1);
        }
        gg_v256_put_cols((int32_t *)(void *)gg_gemm_int_x_at(g, panel, b).i +
                             first,
                         g->nr, n, col, g->x_block / 4 / g->nr);
    }
}
