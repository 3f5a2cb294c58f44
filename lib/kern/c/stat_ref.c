/* SPDX-License-Identifier: MIT */
/* stat_ref.c - reference kernels that sum up rows */
#include "config.h"
#include "kern/stat_join.h"

void gg_stat_sums_c(const float *x, size_t n, struct gg_stat_sums *out)
{
    struct gg_stat_sums_lanes l = { { 0 }, { 0 } };
    *out = (struct gg_stat_sums)GG_STAT_SUMS_INIT;
    gg_stat_sums_add(out, &l, x, 0, n);
    gg_stat_sums_join(out, &l);
}

void gg_stat_central_c(const float *x, size_t n, double mean, double out[3])
{
    struct gg_stat_central_lanes l = { { { 0 } } };
    gg_stat_central_add(&l, x, 0, n, mean);
    gg_stat_central_join(&l, out);
}

void gg_stat_bins_c(const float *x, size_t n, double lo, double scale,
                    uint64_t *bins, unsigned n_bins)
{
    double last = n_bins - 1;
    for (size_t i = 0; i < n; i++) {
        double at = (x[i] - lo) * scale;
        if (!gg_stat_finite(x[i]))
            continue;
        at = at > 0 ? at : 0;
        bins[(unsigned)(at < last ? at : last)]++;
    }
}

void gg_stat_diff_c(const float *x, const float *y, size_t n,
                    struct gg_stat_diff *out)
{
    struct gg_stat_diff_lanes l = { { 0 }, { 0 }, { 0 }, { 0 } };
    *out = (struct gg_stat_diff){ 0 };
    gg_stat_diff_add(out, &l, x, y, 0, n);
    gg_stat_diff_join(out, &l);
}

void gg_stat_squares_c(double *sums, const float *x, size_t stride,
                       size_t n_rows, size_t n)
{
    const size_t step = stride / sizeof *x;
    for (size_t i = 0; i < n_rows; i++, x += step)
        for (size_t j = 0; j < n; j++)
            sums[j] += (double)x[j] * (double)x[j];
}
