/* SPDX-License-Identifier: MIT */
/* attn_i16.h - attention products in 16-bit integers
 *
 * Both sides are rounded to 16-bit integers, s * i, with one scale s per row.
 * They are multiplied in pairs whose 32-bit sums are exact:
 *
 *     scores   rows of K, each with its scale, by columns of Q with theirs
 *     values   rows of V are the steps of this product. Each has a scale,
 *              which is multiplied into the softmax weights of that step. A
 *              column of the products is then rounded, with its own scale
 *
 * No sum overflows. For scores, |sum of k q| <= |k| |q|, the product of the
 * Euclidean lengths (Cauchy and Schwarz). A row is scaled to a length of at
 * most GG_ATTN_I16_LENGTH. Rounding adds at most sqrt(n) / 2 <= 32 to it, where
 * n <= GG_ATTN_I16_MOST_STEPS. The length itself is an f32 sum of n / 16 terms
 * in each of 16 lanes, whose relative error is at most (n / 16 + 10) 2^-24:
 * less than 1. So a length is at most 46300 + 33, and 46333^2 < 2^31.
 *
 * For values, magnitudes are at most GG_ATTN_I16_VALUE, so weights may add up
 * to (2^31 - 1) / 8191 = 262176. They are scaled to add up to at most
 * GG_ATTN_I16_SUM. Rounding GG_ATTN_I16_STEPS of them adds at most 64, and the
 * errors of f32 less than 1: 262165.
 *
 * The largest integer of either side is 32767. A row with a single nonzero
 * element gets that; 64 equal elements still get 5787.
 *
 * Panels hold the steps in pairs. A panel of mr rows is
 *
 *     int16_t i[n_pairs][mr][2]
 *
 * and a panel of nr columns
 *
 *     int16_t i[n_steps / 128][nr][GG_ATTN_I16_STRIDE]
 *
 * where the 128 steps of a column are contiguous, so that they are written in
 * one piece. All levels give the same bits: integers are exact, and the f32
 * part has one order. Contract: EXACT.
 */
#ifndef GG_KERN_ATTN_I16_H
#define GG_KERN_ATTN_I16_H

#include "base/bytes.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GG_ATTN_I16_STEPS = 128, /* contiguous steps of a column */
    /* Integers from column to column. The 64 extra bytes keep columns out of
     * the same sets of the cache. */
    GG_ATTN_I16_STRIDE = 160,
    GG_ATTN_I16_ROWS = 8, /* rows rounded by one call */
    /* rows are padded with 0 to a multiple of this many steps */
    GG_ATTN_I16_UNIT = 16,
    GG_ATTN_I16_MOST_STEPS = 4096, /* most steps of a score */
    GG_ATTN_I16_MOST = 32767,
    GG_ATTN_I16_LENGTH = 46300,
    GG_ATTN_I16_VALUE = 8191,
    GG_ATTN_I16_SUM = 262100
};

/* Rows whose largest magnitude is below this count as 0, so that all scales are
 * finite. */
#define GG_ATTN_I16_LEAST 0x1p-100f

/* Round rows of floats to 16-bit integers, to nearest, ties to even.
 *
 * x          n_rows rows of n floats; n_rows <= GG_ATTN_I16_ROWS, n <=
 *            GG_ATTN_I16_MOST_STEPS
 * stride     floats from row to row of x
 * to         integers, to_stride from row to row
 * scale      n_rows scales. A row with an infinity or a NaN gets the scale NaN
 *            and integers 0. */
typedef void gg_kern_attn_i16_round_fn(const float *x, size_t stride,
                                       size_t n_rows, size_t n, int16_t *to,
                                       size_t to_stride, float *scale);

/* Copy GG_ATTN_I16_ROWS rows of integers into a panel of mr rows, from the row
 * at panel on. Rows lie stride integers apart; n_steps is a multiple of
 * GG_ATTN_I16_UNIT. */
typedef void gg_kern_attn_i16_rows_fn(const int16_t *row, size_t stride,
                                      size_t n_steps, int16_t *panel);

/* Round rows of values and store them as steps of dv / mr panels.
 *
 * x          n rows of dv floats, stride floats apart; dv is a multiple of mr
 * panel      first panel; the next is size integers further on. If n is odd,
 *            the last step is paired with 0.
 * scale      n scales */
typedef void gg_kern_attn_i16_values_fn(const float *x, size_t stride,
                                        size_t n, size_t dv, int16_t *panel,
                                        size_t size, float *scale);

/* Round softmax weights to integers. The steps' scales are already multiplied
 * in.
 *
 * x          n_cols columns of n weights, none negative, stride floats apart; n
 *            <= GG_ATTN_I16_STEPS
 * to         integers, columns GG_ATTN_I16_STRIDE apart
 * scale      n_cols scales, NaN for a column with an infinity or a NaN */
typedef void gg_kern_attn_i16_weights_fn(const float *x, size_t stride,
                                         size_t n_cols, size_t n, int16_t *to,
                                         float *scale);

/* Multiply mr rows with n_cols columns (1 .. nr). w is a panel aligned to 64
 * bytes. y[j * y_stride + r] = (float)sum of integers * (row[r] * col[j]). If
 * row is NULL: y = y + (float)sum * col[j]. */
typedef void gg_kern_attn_i16_tile_fn(const int16_t *w, const int16_t *x,
                                      size_t n_pairs, unsigned n_cols,
                                      const float *row, const float *col,
                                      float *y, size_t y_stride);

struct gg_kern_attn_i16 {
    unsigned mr, nr;
    gg_kern_attn_i16_round_fn *round;
    gg_kern_attn_i16_rows_fn *rows;
    gg_kern_attn_i16_values_fn *values;
    gg_kern_attn_i16_weights_fn *weights;
    gg_kern_attn_i16_tile_fn *tile;
};

void gg_kern_attn_i16_init(struct gg_kern_attn_i16 *k, uint32_t cpu);

/* Can a row with this largest magnitude be scaled? bits is the largest bit
 * pattern of its magnitudes: NaN exceeds infinity, which exceeds all
 * numbers. */
static inline bool gg_kern_attn_i16_is_scalable(uint32_t bits)
{
    return bits < 0x7f800000 &&
           gg_bytes_f32_from_bits(bits) >= GG_ATTN_I16_LEAST;
}

/* Scale of a row that cannot be scaled: 0 or NaN. */
static inline float gg_kern_attn_i16_zero_scale(uint32_t bits)
{
    return bits < 0x7f800000 ? 0 : NAN;
}

/* May squares of elements up to max be added without scaling? They neither
 * overflow nor underflow where that matters. */
static inline bool gg_kern_attn_i16_fits_squares(float max)
{
    return max > 0x1p-40f && max < 0x1p40f;
}

/* Factor of a row and the scale that results. max becomes 32767, or less if
 * size, the length or sum that would result, exceeds limit. */
struct gg_kern_attn_i16_scale {
    float inverse, scale;
};
static inline struct gg_kern_attn_i16_scale
gg_kern_attn_i16_scale_of(float max, float size, float limit)
{
    struct gg_kern_attn_i16_scale s = { GG_ATTN_I16_MOST / max,
                                        max / GG_ATTN_I16_MOST };
    if (size > limit) {
        s.inverse /= size / limit;
        s.scale *= size / limit;
    }
    return s;
}

/* Functions of the levels: gg_kern_attn_i16_round_256 and so on. Levels with
 * VNNI have tiles of their own and share the rest with the level without. */
gg_kern_attn_i16_round_fn gg_kern_attn_i16_round_c, gg_kern_attn_i16_round_256,
    gg_kern_attn_i16_round_avx512;
gg_kern_attn_i16_rows_fn gg_kern_attn_i16_rows_c, gg_kern_attn_i16_rows_256,
    gg_kern_attn_i16_rows_avx512;
gg_kern_attn_i16_values_fn gg_kern_attn_i16_values_c,
    gg_kern_attn_i16_values_256, gg_kern_attn_i16_values_avx512;
gg_kern_attn_i16_weights_fn gg_kern_attn_i16_weights_c,
    gg_kern_attn_i16_weights_256, gg_kern_attn_i16_weights_avx512;
gg_kern_attn_i16_tile_fn gg_kern_attn_i16_tile_c, gg_kern_attn_i16_tile_256,
    gg_kern_attn_i16_tile_avxvnni, gg_kern_attn_i16_tile_avx512,
    gg_kern_attn_i16_tile_vnni512;

/* Shapes of tiles, those of the exact products. */
enum {
    GG_ATTN_I16_MR_C = 8,
    GG_ATTN_I16_NR_C = 4,
    GG_ATTN_I16_MR_256 = 16,
    GG_ATTN_I16_NR_256 = 6,
    GG_ATTN_I16_MR_AVX512 = 32,
    GG_ATTN_I16_NR_AVX512 = 12
};

#endif
