/* SPDX-License-Identifier: MIT */
/* check-stats.c - statistics of importance data agree with their formulas in
 * long double */
#include "config.h"
#include "base/compiler.h"
#include "gguf/imatrix.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>

enum { COLS = 96, MATS = 3, N = COLS * MATS };
static float sums[N], before[N];
/* the second expert got no token */
static const float counts[MATS] = { 40, 0, 7 };

static bool is_near(double got, long double want)
{
    return fabsl(got - want) <= 1e-12L * fabsl(want);
}

/* Mean square j. *is: false for a matrix without input. */
static long double value_of(const float *of, int j, bool *is)
{
    const float count = counts[j / COLS];
    *is = count > 0;
    return *is ? (long double)of[j] / count : 0;
}

struct want {
    long double n, sum, min, max, mean, stddev, active, high, entropy;
};

static struct want by_formula(void)
{
    struct want w = { .min = HUGE_VALL };
    bool is;
    for (int j = 0; j < N; j++) {
        const long double v = value_of(sums, j, &is);
        if (!is)
            continue;
        w.n++;
        w.sum += v;
        w.min = fminl(w.min, v);
        w.max = fmaxl(w.max, v);
        w.active += v > 1e-5L;
    }
    w.mean = w.sum / w.n;
    for (int j = 0; j < N; j++) {
        const long double v = value_of(sums, j, &is);
        w.stddev += is ? (v - w.mean) * (v - w.mean) / w.n : 0;
        w.entropy -= is && v > 0 ? v / w.sum * log2l(v / w.sum) : 0;
    }
    w.stddev = sqrtl(w.stddev);
    for (int j = 0; j < N; j++) {
        const long double v = value_of(sums, j, &is);
        w.high += is && v > w.mean + w.stddev;
    }
    w.active /= w.n;
    w.high /= w.n;
    return w;
}

static long double cosine_by_formula(void)
{
    long double ab = 0, aa = 0, bb = 0;
    bool is;
    for (int j = 0; j < N; j++) {
        const long double v = value_of(sums, j, &is),
                          u = value_of(before, j, &is);
        ab += v * u;
        aa += v * v;
        bb += u * u;
    }
    return ab / sqrtl(aa * bb);
}

static void check_figures(const char *what)
{
    struct gguf_imatrix_stats s = GGUF_IMATRIX_STATS_INIT;
    struct gguf_imatrix *im = NULL;
    double cosine = 0;
    const struct want w = by_formula();
    const bool good =
        !gguf_imatrix_create(&im, NULL, NULL) &&
        !gguf_imatrix_add(im, "a", COLS, MATS, before, counts, NULL) &&
        !gguf_imatrix_add(im, "b", COLS, MATS, sums, counts, NULL) &&
        !gguf_imatrix_stats(im, 1, &s, NULL) &&
        !gguf_imatrix_cosine(im, 1, 0, &cosine, NULL);
    ok(good && s.n == 2 * COLS && s.n_empty == 1 && !s.n_bad &&
           is_near(s.min_count, 0) && is_near(s.max_count, 40),
       "%s: %d values, one matrix of three without", what, 2 * COLS);
    ok(good && is_near(s.sum, w.sum) && is_near(s.min, w.min) &&
           is_near(s.max, w.max) && is_near(s.mean, w.mean),
       "%s: sum %.9g, min %.9g, max %.9g, mean %.9g", what, s.sum, s.min,
       s.max, s.mean);
    ok(good && fabsl(s.stddev - w.stddev) <= 1e-9L * w.stddev,
       "%s: stddev %.15g, by its formula %.15Lg", what, s.stddev, w.stddev);
    ok(good && is_near(s.active, w.active) && is_near(s.high, w.high),
       "%s: active %g, high %g", what, s.active, s.high);
    ok(good && is_near(s.entropy, w.entropy) &&
           is_near(cosine, cosine_by_formula()),
       "%s: entropy %.12g bits, cosine %.12g", what, s.entropy, cosine);
    gguf_imatrix_destroy(im);
}

/* A random number from 0 to 1. */
static double drawn_chance(void)
{
    return (double)rnd_below(1 << 20) / (1 << 20);
}

int main(void)
{
    for (int j = 0; j < N; j++) {
        before[j] = (float)exp(20 * drawn_chance() - 15);
        sums[j] = j % 11 ? (float)(before[j] * exp(4 * drawn_chance())) : 0;
    }
    check_figures("over eight decades");
    for (int j = 0; j < N; j++)
        sums[j] = counts[j / COLS] * (float)(1 + 3e-7 * drawn_chance());
    check_figures("nearly equal");
    for (int j = 0; j < N; j++)
        sums[j] = counts[j / COLS] * 0.25f;
    check_figures("all the same");
    return done_testing();
}
