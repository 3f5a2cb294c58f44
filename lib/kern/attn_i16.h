/* SPDX-License-Identifier: MIT */
/* attn_i16.h - products of attention in integers of 16 bits
 *
 * Both sides are rounded to integers of 16 bits, s * i, with one scale for a
 * row, and multiplied in pairs whose sums are integers of 32 bits and exact:
 *
 *     scores   rows of K, each with its scale, by columns of Q with theirs
 *     values   rows of V, which are steps here, have a scale each, too. It is
 *              multiplied into the weights of that step; a column of what comes
 *              of it is rounded, with a scale of its own
 *
 * No sum overflows. Of scores it is |sum of k q| <= |k| |q|, the Euclidean
 * lengths (Cauchy and Schwarz). A row is scaled so that it is no longer than
 * GG_ATTN_I16_LENGTH; rounding moves it by at most sqrt(n) / 2 <= 32, n being
 * GG_ATTN_I16_MOST_STEPS at most; the errors of the length in f32, sums of
 * n / 16 terms in each of 16 lanes, are n / 16 + 10 times 2^-24 of it at most,
 * which is below 1. So it is at most 46300 + 33, and 46333^2 < 2^31.
 *
 * Of values magnitudes are GG_ATTN_I16_VALUE at most, so that weights may add
 * up to (2^31 - 1) / 8191 = 262176. They are scaled to add up to no more than
 * GG_ATTN_I16_SUM; rounding adds 64 at most to the sum of GG_ATTN_I16_STEPS of
 * them, and the errors of f32 less than 1: 262165.
 *
 * 32767 is the largest integer of either. A row whose length is that of one of
 * its elements gets that; one of 64 that are alike still 5787.
 *
 * Panels have the steps in pairs. One of mr rows is
 *
 *     int16_t i[n_pairs][mr][2]
 *
 * and one of nr columns
 *
 *     int16_t i[n_steps / 128][nr][GG_ATTN_I16_STRIDE]
 *
 * where a column's 128 steps lie together, so that it is written as it is. All
 * kernels give the same bits at every level: integers are exact, and the rest
 * is done in one order. Contract: EXACT.
 */
#ifndef GG_KERN_ATTN_I16_H
#define GG_KERN_ATTN_I16_H

#include "base/bytes.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GG_ATTN_I16_STEPS = 128, /* of a column that lie together */
    GG_ATTN_I16_STRIDE =
        160,               /* integers from column to column: 64 bytes more, so
                            * that they are not in the same sets of the cache */
    GG_ATTN_I16_ROWS = 8,  /* that are rounded at once */
    GG_ATTN_I16_UNIT = 16, /* rows are filled up to so many steps with 0 */
    GG_ATTN_I16_MOST_STEPS = 4096, /* of a score */
    GG_ATTN_I16_MOST = 32767,
    GG_ATTN_I16_LENGTH = 46300,
    GG_ATTN_I16_VALUE = 8191,
    GG_ATTN_I16_SUM = 262100
};

/* Below it a row's largest element counts as 0, so that all scales are
 * finite. */
#define GG_ATTN_I16_LEAST 0x1p-100f

/* Round rows of n floats, at most GG_ATTN_I16_MOST_STEPS, to nearest (ties to
 * even), as rows and columns of scores are: n_rows of them, GG_ATTN_I16_ROWS at
 * most, stride floats apart, to_stride integers where they go. scale: theirs;
 * with an infinity or a NaN among them that is NaN, and integers are 0. */
typedef void gg_kern_attn_i16_round_fn(const float *x, size_t stride,
                                       size_t n_rows, size_t n, int16_t *to,
                                       size_t to_stride, float *scale);

/* GG_ATTN_I16_ROWS rows of integers, stride from row to row, into a panel of
 * mr, from the row at panel on; n_steps is a multiple of the unit. */
typedef void gg_kern_attn_i16_rows_fn(const int16_t *row, size_t stride,
                                      size_t n_steps, int16_t *panel);

/* n rows of values, stride floats from row to row, dv of each, a multiple of
 * mr, as steps of dv / mr panels: the first at panel, the next size integers
 * further on. An odd step is one of a pair with 0. scale: n. */
typedef void gg_kern_attn_i16_values_fn(const float *x, size_t stride,
                                        size_t n, size_t dv, int16_t *panel,
                                        size_t size, float *scale);

/* Weights, not negative, of n_cols columns, n steps of each, at most
 * GG_ATTN_I16_STEPS, with the steps' scales in them already: to integers,
 * GG_ATTN_I16_STRIDE apart. x is stride floats from column to column. scale:
 * the columns', or NaN as above. */
typedef void gg_kern_attn_i16_weights_fn(const float *x, size_t stride,
                                         size_t n_cols, size_t n, int16_t *to,
                                         float *scale);

/* Multiply mr rows, a panel at w on 64 bytes, with n_cols columns, 1..nr:
 * y[j * y_stride + r] = (float)sum of integers * (row[r] * col[j]), or with
 * row NULL y = y + (float)sum * col[j]. */
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

/* What is largest in a row by its bits: NaN is more than infinity, that than
 * all numbers. */
static inline bool gg_kern_attn_i16_is_some(uint32_t bits)
{
    return bits < 0x7f800000 &&
           gg_bytes_f32_from_bits(bits) >= GG_ATTN_I16_LEAST;
}

/* The row's scale, if it is none of these: 0 or NaN. */
static inline float gg_kern_attn_i16_nothing(uint32_t bits)
{
    return bits < 0x7f800000 ? 0 : NAN;
}

/* Squares of elements up to max may be added up as they are: they neither
 * overflow nor underflow where that counts. */
static inline bool gg_kern_attn_i16_is_plain(float max)
{
    return max > 0x1p-40f && max < 0x1p40f;
}

/* By what a row is multiplied, and what its scale is then: max becomes 32767,
 * or less where size, the length or the sum of what would come of that, is
 * beyond limit. */
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

/* gg_kern_attn_i16_round_avx2 and so on. Tiles of the levels with VNNI, the
 * rest of those without. */
gg_kern_attn_i16_round_fn gg_kern_attn_i16_round_c,
    gg_kern_attn_i16_round_avx2, gg_kern_attn_i16_round_avx512;
gg_kern_attn_i16_rows_fn gg_kern_attn_i16_rows_c, gg_kern_attn_i16_rows_avx2,
    gg_kern_attn_i16_rows_avx512;
gg_kern_attn_i16_values_fn gg_kern_attn_i16_values_c,
    gg_kern_attn_i16_values_avx2, gg_kern_attn_i16_values_avx512;
gg_kern_attn_i16_weights_fn gg_kern_attn_i16_weights_c,
    gg_kern_attn_i16_weights_avx2, gg_kern_attn_i16_weights_avx512;
gg_kern_attn_i16_tile_fn gg_kern_attn_i16_tile_c, gg_kern_attn_i16_tile_avx2,
    gg_kern_attn_i16_tile_avxvnni, gg_kern_attn_i16_tile_avx512,
    gg_kern_attn_i16_tile_vnni512;

/* Shapes of tiles: the exact ones. */
enum {
    GG_ATTN_I16_MR_C = 8,
    GG_ATTN_I16_NR_C = 4,
    GG_ATTN_I16_MR_AVX2 = 16,
    GG_ATTN_I16_NR_AVX2 = 6,
    GG_ATTN_I16_MR_AVX512 = 32,
    GG_ATTN_I16_NR_AVX512 = 12
};

#endif
