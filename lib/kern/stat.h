/* SPDX-License-Identifier: MIT */
/* stat.h - kernels that sum up rows of f32
 *
 * Sums are kept in double in GG_STAT_LANES lanes: element i goes into lane i %
 * GG_STAT_LANES, and gg_stat_join (stat_join.h) adds the lanes in one order, so
 * that every level gives the same bits (EXACT, see vec.h). Elements that are
 * not finite are counted and otherwise ignored. n is at most GG_STAT_MAX. No
 * pointer needs alignment. Any thread.
 */
#ifndef GG_KERN_STAT_H
#define GG_KERN_STAT_H

#include <stddef.h>
#include <stdint.h>

enum { GG_STAT_LANES = 8, GG_STAT_MAX = 1 << 24 };

struct gg_stat_sums {
    size_t n_finite, n_zero, n_nan, n_inf;
    /* infinity and -infinity if no element is finite; a zero is +0 */
    float min, max;
    double sum, sum_sq;
};
typedef void gg_stat_sums_fn(const float *x, size_t n,
                             struct gg_stat_sums *out);

/* out: sums of (x - mean)^2, ^3 and ^4. */
typedef void gg_stat_central_fn(const float *x, size_t n, double mean,
                                double out[3]);

/* Increment bins[n_bins] for each element: bin (x - lo) * scale, truncated; the
 * first bin for negative results, the last for larger ones. n_bins <= 32. */
typedef void gg_stat_bins_fn(const float *x, size_t n, double lo, double scale,
                             uint64_t *bins, unsigned n_bins);

struct gg_stat_diff {
    size_t n_finite;       /* pairs of two finite numbers */
    size_t n_same;         /* pairs of equal numbers or two NaN */
    double max_abs;        /* largest |x - y| */
    double dd, xx, yy, xy; /* sums of (x - y)^2, x^2, y^2, x y */
};
typedef void gg_stat_diff_fn(const float *x, const float *y, size_t n,
                             struct gg_stat_diff *out);

/* Add squares of n_rows rows of n elements: sums[j] += x[j]^2, row by row.
 *
 * stride   bytes from row to row, a multiple of 4
 *
 * Squares of floats are exact in double, and each sum is rounded. All elements
 * are added, finite or not. */
typedef void gg_stat_squares_fn(double *sums, const float *x, size_t stride,
                                size_t n_rows, size_t n);

struct gg_stat_kern {
    gg_stat_sums_fn *sums;
    gg_stat_central_fn *central;
    gg_stat_bins_fn *bins;
    gg_stat_diff_fn *diff;
    gg_stat_squares_fn *squares;
};

void gg_stat_kern_init(struct gg_stat_kern *k, uint32_t cpu);

gg_stat_sums_fn gg_stat_sums_c, gg_stat_sums_256;
gg_stat_central_fn gg_stat_central_c, gg_stat_central_256;
gg_stat_bins_fn gg_stat_bins_c, gg_stat_bins_256;
gg_stat_diff_fn gg_stat_diff_c, gg_stat_diff_256;
gg_stat_squares_fn gg_stat_squares_c, gg_stat_squares_256;

#endif
