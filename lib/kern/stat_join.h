/* SPDX-License-Identifier: MIT */
/* stat_join.h - sums in lanes, element by element, and their total
 *
 * The C reference consists of these functions. A level's variant adds whole
 * groups of elements in vectors, and uses them for the remaining elements and
 * for the total of the lanes.
 */
#ifndef GG_KERN_STAT_JOIN_H
#define GG_KERN_STAT_JOIN_H

#include "kern/stat.h"

#include <math.h>
#include <stdbool.h>

static inline double gg_stat_join(const double v[GG_STAT_LANES])
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

static inline bool gg_stat_finite(float x)
{
    return fabsf(x) < INFINITY;
}

struct gg_stat_sums_lanes {
    double sum[GG_STAT_LANES], sum_sq[GG_STAT_LANES];
};

static inline void gg_stat_sums_add(struct gg_stat_sums *s,
                                    struct gg_stat_sums_lanes *l,
                                    const float *x, size_t from, size_t n)
{
    for (size_t i = from; i < n; i++) {
        if (!gg_stat_finite(x[i])) {
            s->n_nan += x[i] != x[i];
            s->n_inf += x[i] == x[i];
            continue;
        }
        double v = x[i];
        s->n_finite++;
        s->n_zero += x[i] == 0;
        s->min = x[i] < s->min ? x[i] : s->min;
        s->max = x[i] > s->max ? x[i] : s->max;
        l->sum[i % GG_STAT_LANES] += v;
        l->sum_sq[i % GG_STAT_LANES] += v * v;
    }
}

static inline void gg_stat_sums_join(struct gg_stat_sums *s,
                                     const struct gg_stat_sums_lanes *l)
{
    s->min += 0.0f; /* -0 becomes 0 */
    s->max += 0.0f;
    s->sum = gg_stat_join(l->sum);
    s->sum_sq = gg_stat_join(l->sum_sq);
}

struct gg_stat_central_lanes {
    double m[3][GG_STAT_LANES];
};

static inline void gg_stat_central_add(struct gg_stat_central_lanes *l,
                                       const float *x, size_t from, size_t n,
                                       double mean)
{
    for (size_t i = from; i < n; i++) {
        double d = gg_stat_finite(x[i]) ? x[i] - mean : 0, d2 = d * d;
        l->m[0][i % GG_STAT_LANES] += d2;
        l->m[1][i % GG_STAT_LANES] += d2 * d;
        l->m[2][i % GG_STAT_LANES] += d2 * d2;
    }
}

static inline void gg_stat_central_join(const struct gg_stat_central_lanes *l,
                                        double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = gg_stat_join(l->m[i]);
}

struct gg_stat_diff_lanes {
    double dd[GG_STAT_LANES], xx[GG_STAT_LANES], yy[GG_STAT_LANES],
        xy[GG_STAT_LANES];
};

static inline void gg_stat_diff_add(struct gg_stat_diff *s,
                                    struct gg_stat_diff_lanes *l,
                                    const float *x, const float *y,
                                    size_t from, size_t n)
{
    for (size_t i = from; i < n; i++) {
        size_t k = i % GG_STAT_LANES;
        s->n_same += x[i] == y[i] || (x[i] != x[i] && y[i] != y[i]);
        if (!gg_stat_finite(x[i]) || !gg_stat_finite(y[i]))
            continue;
        double a = x[i], b = y[i], d = fabs(a - b);
        s->n_finite++;
        s->max_abs = d > s->max_abs ? d : s->max_abs;
        l->dd[k] += d * d;
        l->xx[k] += a * a;
        l->yy[k] += b * b;
        l->xy[k] += a * b;
    }
}

static inline void gg_stat_diff_join(struct gg_stat_diff *s,
                                     const struct gg_stat_diff_lanes *l)
{
    s->dd = gg_stat_join(l->dd);
    s->xx = gg_stat_join(l->xx);
    s->yy = gg_stat_join(l->yy);
    s->xy = gg_stat_join(l->xy);
}

#define GG_STAT_SUMS_INIT                                                     \
    {                                                                         \
        .min = INFINITY, .max = -INFINITY                                     \
    }

#endif
