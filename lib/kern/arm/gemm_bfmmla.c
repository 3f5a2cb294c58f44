/* SPDX-License-Identifier: MIT */
/* gemm_bfmmla.c - products of bf16 by BFMMLA
 *
 * A block of a panel has four steps of each row or column side by side. BFMMLA
 * multiplies two columns by two rows: a vector of sums has two rows of a
 * column, then those of the next. It adds the sum of each pair of products in
 * order, rounding to odd, with subnormal numbers as 0 (Arm Architecture
 * Reference Manual, BFMatMulAdd(), without FEAT_EBF16).
 */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_bf16.h"

#include <arm_neon.h>
#include <assert.h>
#include <string.h>

enum {
    MR = GG_GEMM_MR_256,
    NR = GG_GEMM_NR_256,
    STEPS = 4, /* steps of a block */
    TWO = 8    /* elements of two rows or columns */
};

/* One block: each two columns by each two rows. */
static GG_ALWAYS_INLINE void multiply_block(float32x4_t acc[NR / 2][MR / 2],
                                            const bfloat16_t *w,
                                            const bfloat16_t *x, int n_pairs)
{
    bfloat16x8_t cols[NR / 2];
    GG_UNROLL
    for (int j = 0; j < n_pairs; j++)
        cols[j] = vld1q_bf16(x + j * TWO);
    GG_UNROLL
    for (int i = 0; i < MR / 2; i++) {
        const bfloat16x8_t rows = vld1q_bf16(w + i * TWO);
        GG_UNROLL
        for (int j = 0; j < n_pairs; j++)
            acc[j][i] = vbfmmlaq_f32(acc[j][i], cols[j], rows);
    }
}

/* Add four rows of a column to y, or store them there. */
static GG_ALWAYS_INLINE void put_rows(float *y, float64x2_t v, int add)
{
    float32x4_t sum = vreinterpretq_f32_f64(v);
    if (add)
        sum = vaddq_f32(vld1q_f32(y), sum);
    vst1q_f32(y, sum);
}

/* The tile for a number of pairs of columns that the compiler knows. */
static GG_ALWAYS_INLINE void multiply_tile(const bfloat16_t *w,
                                           const bfloat16_t *x, size_t n,
                                           int n_pairs, unsigned n_cols,
                                           float *y, size_t y_stride, int add)
{
    float32x4_t acc[NR / 2][MR / 2];
    GG_UNROLL
    for (int j = 0; j < n_pairs; j++)
        GG_UNROLL
    for (int i = 0; i < MR / 2; i++)
        acc[j][i] = vdupq_n_f32(0);
    for (; n; n--, w += STEPS * MR, x += STEPS * NR)
        multiply_block(acc, w, x, n_pairs);
    GG_UNROLL
    for (int j = 0; j < n_pairs; j++, y += 2 * y_stride)
        GG_UNROLL
    for (int i = 0; i < MR / 2; i += 2) {
        const float64x2_t a = vreinterpretq_f64_f32(acc[j][i]);
        const float64x2_t b = vreinterpretq_f64_f32(acc[j][i + 1]);
        put_rows(y + 2 * i, vzip1q_f64(a, b), add);
        if ((unsigned)(2 * j + 1) < n_cols)
            put_rows(y + y_stride + 2 * i, vzip2q_f64(a, b), add);
    }
}

void gg_kern_bf16_tile_bf16(const void *w, const void *x, size_t n_blocks,
                            unsigned n_cols, float *y, size_t y_stride,
                            int add)
{
    switch ((n_cols + 1) / 2) {
    case 1: multiply_tile(w, x, n_blocks, 1, n_cols, y, y_stride, add); break;
    case 2: multiply_tile(w, x, n_blocks, 2, n_cols, y, y_stride, add); break;
    case 3: multiply_tile(w, x, n_blocks, 3, n_cols, y, y_stride, add); break;
    }
}
static_assert(NR == 6, "cases of the tile");

/* Four floats to nearest; subnormal ones to 0 of the same sign. */
static inline float32x4_t flush_subnormals(float32x4_t v)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t normal = vtstq_u32(bits, vdupq_n_u32(0x7f800000));
    return vreinterpretq_f32_u32(
        vandq_u32(bits, vorrq_u32(normal, vdupq_n_u32(0x80000000))));
}

/* Eight steps of a row. */
static GG_ALWAYS_INLINE uint64x2_t round_8(const float *src)
{
    const bfloat16x8_t low =
        vcvtq_low_bf16_f32(flush_subnormals(vld1q_f32(src)));
    return vreinterpretq_u64_bf16(
        vcvtq_high_bf16_f32(low, flush_subnormals(vld1q_f32(src + 4))));
}

/* Two blocks of two rows. */
static GG_ALWAYS_INLINE void put_blocks(uint64_t *to, size_t width,
                                        uint64x2_t a, uint64x2_t b)
{
    vst1q_u64(to, vzip1q_u64(a, b));
    vst1q_u64(to + width, vzip2q_u64(a, b));
}

/* Steps from p on of a row that go into its last blocks. */
static void pack_rest(uint64_t *dst, size_t width, const float *src, size_t p,
                      size_t k)
{
    for (; p < k; p += STEPS) {
        float part[2 * STEPS] = { 0 };
        memcpy(part, src + p, GG_MIN(k - p, (size_t)STEPS) * sizeof *part);
        dst[p / STEPS * width] = vgetq_lane_u64(round_8(part), 0);
    }
}

/* dst: the first row in the first block; a block has width rows. */
static void pack_blocks(uint64_t *dst, size_t width, const float *src,
                        size_t stride, size_t n, size_t k)
{
    const size_t whole = k / 8 * 8;
    size_t r = 0;
    for (; r + 2 <= n; r += 2, dst += 2, src += 2 * stride) {
        for (size_t p = 0; p < whole; p += 8)
            put_blocks(dst + p / STEPS * width, width, round_8(src + p),
                       round_8(src + stride + p));
        pack_rest(dst, width, src, whole, k);
        pack_rest(dst + 1, width, src + stride, whole, k);
    }
    if (r < n)
        pack_rest(dst, width, src, 0, k);
}

void gg_kern_bf16_pack_w_bf16(const struct gg_kern_gemm *g, void *panel,
                              size_t first, const float *src, size_t stride,
                              size_t n, size_t k)
{
    pack_blocks((uint64_t *)panel + first, g->mr, src, stride, n, k);
}

void gg_kern_bf16_pack_x_bf16(const struct gg_kern_gemm *g, void *panel,
                              size_t first, const float *src, size_t stride,
                              size_t n, size_t k)
{
    pack_blocks((uint64_t *)panel + first, g->nr, src, stride, n, k);
}
