/* SPDX-License-Identifier: MIT */
/* check-factor.c - factorizations and solves against double precision */
#include "config.h"
#include "base/compiler.h"
#include "linalg/linalg.h"
#include "tests/linalg/dense.h"

#include <float.h>

static struct gguf_pool *pool;

/* Positive definite: products of random rows, with damping. Returns n x n
 * floats. */
static float *random_moments(size_t n)
{
    const size_t rows = n + 5;
    float *x = dense_random(rows * n), *s = dense_alloc(n * n, sizeof *s);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) {
            double sum = i == j ? 0.1 * (double)rows : 0;
            for (size_t t = 0; t < rows; t++)
                sum += (double)x[t * n + i] * (double)x[t * n + j];
            s[i * n + j] = s[j * n + i] = (float)sum;
        }
    free(x);
    return s;
}

/* Largest |R R' - S| relative to |R| |R'|, over the upper elements. */
static double backward_error(const float *r, const float *s, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) {
            double sum = 0, size = 0;
            for (size_t k = j; k < n; k++) {
                const double x = (double)r[i * n + k] * (double)r[j * n + k];
                sum += x;
                size += fabs(x);
            }
            worst = fmax(worst, fabs(sum - (double)s[i * n + j]) / size);
        }
    return worst;
}

static void check_factor(size_t n)
{
    struct gg_linalg la, alone;
    float *s = random_moments(n), *r = dense_alloc(n * n, sizeof *r);
    float *one = dense_alloc(n * n, sizeof *one);
    bool kept = true;
    size_t bad;
    gg_linalg_init(&la, pool, NULL);
    gg_linalg_init(&alone, NULL, NULL);
    memcpy(r, s, n * n * sizeof *s);
    memcpy(one, s, n * n * sizeof *s);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            r[i * n + j] = 7; /* not read */
    ok(!gg_linalg_factor_upper(&la, r, n, &bad, NULL), "%zu: is factored", n);
    ok(!gg_linalg_factor_upper(&alone, one, n, NULL, NULL),
       "%zu: one thread factors it", n);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++)
            kept &= r[i * n + j] == 7;
        kept &= !memcmp(r + i * n + i, one + i * n + i, (n - i) * sizeof *r);
    }
    ok(kept, "%zu: the same bits; elements below the diagonal stay", n);
    /* Higham, Accuracy and Stability of Numerical Algorithms, 10.3: n + 1
     * roundings of |R| |R'|. */
    const double error = backward_error(r, s, n);
    ok(error <= ((double)n + 1) * FLT_EPSILON / 2,
       "%zu: R R' is S: error %.2g", n, error);
    gg_linalg_fini(&la);
    gg_linalg_fini(&alone);
    free(s);
    free(r);
    free(one);
}

static void check_solve(size_t n, size_t m)
{
    struct gg_linalg la;
    float *s = random_moments(n), *b = dense_random(m * n);
    float *x = dense_alloc(m * n, sizeof *x);
    double *a = dense_alloc(n * n, sizeof *a);
    double *want = dense_alloc(n * m, sizeof *want);
    double diff = 0, size = 0;
    for (size_t i = 0; i < n * n; i++)
        a[i] = (double)s[i];
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            want[j * m + i] = (double)b[i * n + j];
    memcpy(x, b, m * n * sizeof *b);
    gg_linalg_init(&la, pool, NULL);
    const bool done = !gg_linalg_factor_upper(&la, s, n, NULL, NULL) &&
                      !gg_linalg_solve_rows(&la, s, n, x, m, NULL) &&
                      dense_solve(a, want, n, m);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            const double w = want[j * m + i];
            diff += pow((double)x[i * n + j] - w, 2);
            size += w * w;
        }
    ok(done && diff <= 1e-10 * size, "%zu rows of %zu are solved: error %.2g",
       m, n, sqrt(diff / size));
    /* Rows solved by themselves have the same bits. */
    float *last = dense_alloc(n, sizeof *last);
    memcpy(last, b + (m - 1) * n, n * sizeof *b);
    ok(!gg_linalg_solve_rows(&la, s, n, last, 1, NULL) &&
           !memcmp(last, x + (m - 1) * n, n * sizeof *x),
       "a row by itself gives the same bits");
    gg_linalg_fini(&la);
    free(s);
    free(b);
    free(x);
    free(a);
    free(want);
    free(last);
}

static void check_bad_pivots(void)
{
    enum { N = 300 };
    struct gg_linalg la;
    struct gguf_error err;
    size_t bad = 0;
    float *s = dense_alloc(N * N, sizeof *s);
    gg_linalg_init(&la, pool, NULL);
    for (size_t i = 0; i < N; i++)
        s[i * N + i] = 2;
    s[3 * N + 3] = -1;
    ok(gg_linalg_factor_upper(&la, s, N, &bad, &err) == GGUF_E_INVALID &&
           bad == 3 && strstr(err.message, "pivot 3"),
       "a negative pivot is refused: %s", err.message);
    for (size_t i = 0; i < N; i++)
        s[i * N + i] = 2;
    s[7 * N + 280] = NAN;
    ok(gg_linalg_factor_upper(&la, s, N, &bad, &err) == GGUF_E_NONFINITE &&
           bad == 7,
       "NaN is refused: %s", err.message);
    s[0] = 0;
    ok(gg_linalg_factor_upper(&la, s, 1, &bad, &err) == GGUF_E_INVALID &&
           bad == 0,
       "a zero pivot is refused");
    ok(!gg_linalg_factor_upper(&la, s, 0, NULL, &err) &&
           !gg_linalg_solve_rows(&la, s, 0, s, 3, &err),
       "an empty matrix is nothing to do");
    gg_linalg_fini(&la);
    free(s);
}

/* R of S in double precision, by columns from the last to the first. */
static void factor_doubles(double *s, size_t n)
{
    for (size_t j = n; j-- > 0;) {
        s[j * n + j] = sqrt(s[j * n + j]);
        for (size_t i = 0; i < j; i++)
            s[i * n + j] /= s[j * n + j];
        for (size_t i = 0; i < j; i++)
            for (size_t k = i; k < j; k++)
                s[i * n + k] -= s[i * n + j] * s[k * n + j];
    }
}

/* Moments of condition 1e5 with a damping, and a column with larger numbers, as
 * activations have them: is single precision enough? Errors of R's diagonal,
 * and of rows that are solved. Measured: below 1e-5. */
static void check_precision(double damping, double outlier)
{
    enum { N = 512, M = 16 };
    const double eps = FLT_EPSILON / 2;
    struct gg_linalg la;
    double *s = dense_moments(N, 4 * N, 1e5);
    for (size_t i = 0; i < N; i++) {
        s[i * N + N / 3] *= outlier;
        s[N / 3 * N + i] *= outlier;
    }
    const double add = damping * dense_mean_diagonal(s, N);
    float *r = dense_alloc(N * N, sizeof *r), *x = dense_random(M * N);
    double *a = dense_alloc(N * N, sizeof *a);
    double *want = dense_alloc(N * M, sizeof *want);
    double worst = 0, least = INFINITY, diff = 0, size = 0;
    for (size_t i = 0; i < N; i++)
        s[i * N + i] += add;
    for (size_t i = 0; i < N * N; i++) {
        r[i] = (float)s[i];
        a[i] = s[i];
    }
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++)
            want[j * M + i] = (double)x[i * N + j];
    gg_linalg_init(&la, pool, NULL);
    const bool done = !gg_linalg_factor_upper(&la, r, N, NULL, NULL) &&
                      !gg_linalg_solve_rows(&la, r, N, x, M, NULL) &&
                      dense_solve(a, want, N, M);
    double top = 0;
    for (size_t i = 0; i < N; i++)
        top = fmax(top, s[i * N + i]);
    factor_doubles(s, N);
    for (size_t i = 0; i < N; i++) {
        const double d = s[i * N + i];
        least = fmin(least, d * d);
        worst = fmax(worst, fabs((double)r[i * N + i] - d) / d);
    }
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            const double w = want[j * M + i];
            diff += pow((double)x[i * N + j] - w, 2);
            size += w * w;
        }
    diff = sqrt(diff / size);
    /* A pivot is the end of a chain of at most N subtractions from S[j][j]: its
     * relative error is at most N eps S[j][j] / pivot, and half of that for its
     * root. That of solutions is at most N eps times the condition, which is
     * below N / damping: the trace is N times the mean. Rounding errors that
     * are independent grow with sqrt(N) instead. */
    const double pivot_bound = sqrt(N) * eps * top / least / 2;
    const double solve_bound = sqrt(N) * eps * N / damping;
    ok(done && worst <= pivot_bound && worst <= 1e-5,
       "damping %g, a column times %g: diagonal of R within %.2g, bound %.2g",
       damping, outlier, worst, pivot_bound);
    ok(done && diff <= solve_bound && diff <= 1e-5,
       "damping %g, a column times %g: solutions within %.2g, bound %.2g",
       damping, outlier, diff, solve_bound);
    gg_linalg_fini(&la);
    free(s);
    free(r);
    free(x);
    free(a);
    free(want);
}

int main(int argc, char **argv)
{
    struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
    static const size_t sizes[] = { 1, 2, 31, 255, 256, 257, 600 };
    rnd_seed(argc, argv);
    params.n_threads = 3;
    if (gguf_pool_create(&pool, &params, NULL))
        return 99;
    for (size_t i = 0; i < GG_LEN(sizes); i++)
        check_factor(sizes[i]);
    check_solve(1, 1);
    check_solve(40, 3);
    check_solve(530, 20);
    check_bad_pivots();
    check_precision(0.01, 1);
    check_precision(0.1, 1);
    check_precision(0.01, 100);
    check_precision(0.1, 100);
    gguf_pool_destroy(pool);
    return done_testing();
}
