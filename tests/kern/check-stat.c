/* SPDX-License-Identifier: MIT */
/* check-stat.c - sums over rows: the C reference against plain loops in long
 * double, every other level against the reference, bit for bit
 *
 * A seed as argument gives other data.
 */
#include "config.h"
#include "tests/kern/kern.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum { MAX_N = 2051, N_BINS = 24, N_KINDS = 5 };

static float store_x[MAX_N + 3], store_y[MAX_N + 3];
static float *const x = store_x + 1, *const y = store_y + 2;

static const float special[] = { 0.0f,    -0.0f,   INFINITY, -INFINITY,
                                 NAN,     FLT_MAX, -FLT_MAX, FLT_TRUE_MIN,
                                 -1e-30f, 1,       -1,       3e30f };

/* A row of one kind: usual, with specials, constant, all specials, large. */
static void fill_row(float *v, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = rnd_f32() * (kind == 4 ? 1e30f : 2);
        if (kind == 3 || (kind == 1 && rnd_below(8) == 0))
            v[i] = special[rnd_below(sizeof special / sizeof *special)];
        if (kind == 2)
            v[i] = -1.5f;
    }
}

static bool close_to(double got, long double want, long double size)
{
    return fabsl(got - want) <= 1e-13L * size;
}

/* ---- the reference ---- */

static bool sums_right(size_t n)
{
    struct gg_stat_sums s;
    long double sum = 0, sq = 0, size = 0;
    size_t n_zero = 0, n_nan = 0, n_inf = 0;
    float min = INFINITY, max = -INFINITY;
    gg_stat_sums_c(x, n, &s);
    for (size_t i = 0; i < n; i++) {
        n_nan += isnan(x[i]) != 0;
        n_inf += isinf(x[i]) != 0;
        if (!isfinite(x[i]))
            continue;
        n_zero += x[i] == 0;
        min = fminf(min, x[i]);
        max = fmaxf(max, x[i]);
        sum += x[i];
        size += fabsl(x[i]);
        sq += (long double)x[i] * x[i];
    }
    return s.n_zero == n_zero && s.n_nan == n_nan && s.n_inf == n_inf &&
           s.n_finite == n - n_nan - n_inf && s.min == min && s.max == max &&
           close_to(s.sum, sum, size) && close_to(s.sum_sq, sq, sq);
}

static bool central_right(size_t n, double mean)
{
    double m[3];
    long double want[3] = { 0 }, size = 0;
    gg_stat_central_c(x, n, mean, m);
    for (size_t i = 0; i < n; i++) {
        long double d = isfinite(x[i]) ? (long double)x[i] - mean : 0;
        want[0] += d * d;
        want[1] += d * d * d;
        want[2] += d * d * d * d;
        size += fabsl(d * d * d);
    }
    return close_to(m[0], want[0], want[0]) && close_to(m[1], want[1], size) &&
           close_to(m[2], want[2], want[2]);
}

static bool bins_right(size_t n, double lo, double hi)
{
    uint64_t got[N_BINS] = { 0 }, want[N_BINS] = { 0 };
    double scale = N_BINS / (hi - lo);
    gg_stat_bins_c(x, n, lo, scale, got, N_BINS);
    for (size_t i = 0; i < n; i++) {
        double at = floor((x[i] - lo) * scale);
        if (isfinite(x[i]))
            want[(int)fmin(fmax(at, 0), N_BINS - 1)]++;
    }
    return !memcmp(got, want, sizeof got);
}

static bool diff_right(size_t n)
{
    struct gg_stat_diff s;
    long double dd = 0, xx = 0, yy = 0, xy = 0, size = 0;
    double max = 0;
    size_t n_same = 0, n_finite = 0;
    gg_stat_diff_c(x, y, n, &s);
    for (size_t i = 0; i < n; i++) {
        n_same += (isnan(x[i]) && isnan(y[i])) || x[i] == y[i];
        if (!isfinite(x[i]) || !isfinite(y[i]))
            continue;
        long double a = x[i], b = y[i];
        n_finite++;
        max = fmax(max, fabs((double)x[i] - (double)y[i]));
        dd += (a - b) * (a - b);
        xx += a * a;
        yy += b * b;
        xy += a * b;
        size += fabsl(a * b);
    }
    return s.n_same == n_same && s.n_finite == n_finite && s.max_abs == max &&
           close_to(s.dd, dd, xx + yy) && close_to(s.xx, xx, xx) &&
           close_to(s.yy, yy, yy) && close_to(s.xy, xy, size);
}

/* Rows of any length, stride floats apart, one of them not finite: the sums
 * are added one after another, each square exact. */
static bool squares_right(const struct gg_stat_kern *k, size_t n_rows,
                          size_t n)
{
    const size_t stride = n + 3;
    double got[64], want[64];
    for (size_t j = 0; j < 64; j++)
        got[j] = want[j] = fabs((double)rnd_f32()) * 100;
    k->squares(got, x, stride * sizeof *x, n_rows, n);
    for (size_t i = 0; i < n_rows; i++)
        for (size_t j = 0; j < n; j++) {
            const double v = (double)x[i * stride + j];
            want[j] += v * v;
        }
    for (size_t j = 0; j < 64; j++)
        if (memcmp(&got[j], &want[j], 8) != 0 &&
            !(isnan(got[j]) && isnan(want[j])))
            return false;
    return true;
}

static bool all_squares_right(const struct gg_stat_kern *k)
{
    bool good = true;
    for (int kind = 0; kind < N_KINDS; kind++)
        for (size_t n = 0; n <= 61; n += 1 + n / 7)
            for (size_t n_rows = 0; n_rows <= 27; n_rows++) {
                fill_row(x, MAX_N, kind);
                good &= squares_right(k, n_rows, n);
            }
    return good;
}

/* ---- other levels ---- */

static bool same_as_c(const struct gg_stat_kern *k, size_t n, double mean)
{
    struct gg_stat_sums s = { 0 }, cs = { 0 };
    struct gg_stat_diff d = { 0 }, cd = { 0 };
    double m[3], cm[3];
    uint64_t bins[N_BINS] = { 0 }, c_bins[N_BINS] = { 0 };
    k->sums(x, n, &s);
    gg_stat_sums_c(x, n, &cs);
    k->central(x, n, mean, m);
    gg_stat_central_c(x, n, mean, cm);
    k->bins(x, n, mean - 1, 12.5, bins, N_BINS);
    gg_stat_bins_c(x, n, mean - 1, 12.5, c_bins, N_BINS);
    k->diff(x, y, n, &d);
    gg_stat_diff_c(x, y, n, &cd);
    return s.n_finite == cs.n_finite && s.n_zero == cs.n_zero &&
           s.n_nan == cs.n_nan && s.n_inf == cs.n_inf &&
           !memcmp(&s.min, &cs.min, sizeof s.min) &&
           !memcmp(&s.max, &cs.max, sizeof s.max) &&
           !memcmp(&s.sum, &cs.sum, sizeof s.sum) &&
           !memcmp(&s.sum_sq, &cs.sum_sq, sizeof s.sum_sq) &&
           !memcmp(m, cm, sizeof m) && !memcmp(bins, c_bins, sizeof bins) &&
           d.n_finite == cd.n_finite && d.n_same == cd.n_same &&
           !memcmp(&d.max_abs, &cd.max_abs, sizeof d.max_abs) &&
           !memcmp(&d.dd, &cd.dd, 4 * sizeof d.dd);
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = { 0,  1,  5,   7,   8,    9,    15,
                                      16, 63, 257, 512, 1000, MAX_N };
    struct test_level level[8];
    unsigned n_levels = test_levels(level);
    bool good[4] = { true, true, true, true }, same[8];
    rnd_seed(argc, argv);
    for (unsigned v = 0; v < n_levels; v++)
        same[v] = true;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (int kind = 0; kind < 4 * N_KINDS; kind++) {
            size_t n = lengths[l];
            double mean = (double)rnd_f32();
            fill_row(x, n, kind % N_KINDS);
            fill_row(y, n, (kind / 4) % N_KINDS);
            for (size_t i = 0; i < n; i += 3)
                y[i] = x[i];
            good[0] &= sums_right(n);
            good[1] &= central_right(n, mean);
            good[2] &= bins_right(n, mean - 1, mean + 1);
            good[3] &= diff_right(n);
            for (unsigned v = 0; v < n_levels; v++) {
                struct gg_stat_kern k;
                gg_stat_kern_init(&k, level[v].mask);
                same[v] &= same_as_c(&k, n, mean);
            }
        }
    ok(good[0], "sums, extremes and counts are right");
    ok(good[1], "central moments are right");
    ok(good[2], "bins are right");
    ok(good[3], "differences are right");
    for (unsigned v = 0; v < n_levels; v++)
        ok(same[v], "%s gives the reference's bits", level[v].name);
    for (unsigned v = 0; v < n_levels; v++) {
        struct gg_stat_kern k;
        gg_stat_kern_init(&k, level[v].mask);
        ok(all_squares_right(&k), "%s: sums of squares of rows",
           level[v].name);
    }
    return done_testing();
}
