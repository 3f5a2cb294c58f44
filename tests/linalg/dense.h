/* SPDX-License-Identifier: MIT */
/* dense.h - small dense matrices in double precision, for expected values
 *
 * Plain loops by the definitions. A matrix is n x n or m x n doubles. */
#ifndef TESTS_LINALG_DENSE_H
#define TESTS_LINALG_DENSE_H

#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>

static inline void *dense_alloc(size_t n, size_t size)
{
    void *p = calloc(n + !n, size);
    if (!p)
        exit(99);
    return p;
}

static inline float *dense_random(size_t n)
{
    float *x = dense_alloc(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = rnd_f32();
    return x;
}

/* Solve A x = b by elimination with row pivots, for k right sides: b is n x k
 * and becomes x; a is destroyed. Returns false if A is singular. */
static inline bool dense_solve(double *a, double *b, size_t n, size_t k)
{
    for (size_t c = 0; c < n; c++) {
        size_t best = c;
        for (size_t i = c + 1; i < n; i++)
            if (fabs(a[i * n + c]) > fabs(a[best * n + c]))
                best = i;
        if (a[best * n + c] == 0)
            return false;
        for (size_t j = 0; j < n; j++) {
            const double t = a[c * n + j];
            a[c * n + j] = a[best * n + j];
            a[best * n + j] = t;
        }
        for (size_t j = 0; j < k; j++) {
            const double t = b[c * k + j];
            b[c * k + j] = b[best * k + j];
            b[best * k + j] = t;
        }
        for (size_t i = 0; i < n; i++) {
            const double f = i == c ? 0 : a[i * n + c] / a[c * n + c];
            if (f == 0)
                continue;
            for (size_t j = c; j < n; j++)
                a[i * n + j] -= f * a[c * n + j];
            for (size_t j = 0; j < k; j++)
                b[i * k + j] -= f * b[c * k + j];
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++)
            b[i * k + j] /= a[i * n + i];
    return true;
}

/* Moments X'X / n_rows of rows whose covariance has eigenvalues from 1 down to
 * 1 / condition, evenly on a logarithmic scale. Returns n x n doubles. */
static inline double *dense_moments(size_t n, size_t n_rows, double condition)
{
    /* Rows are z diag(sqrt(eigenvalue)) H for a reflection H = I - 2 v v'. */
    double *s = dense_alloc(n * n, sizeof *s);
    double *v = dense_alloc(n, sizeof *v), *x = dense_alloc(n, sizeof *x);
    double norm = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = rnd_f32();
        norm += v[i] * v[i];
    }
    for (size_t t = 0; t < n_rows; t++) {
        double dot = 0;
        for (size_t i = 0; i < n; i++) {
            const double z =
                (double)rnd_f32() + (double)rnd_f32() + (double)rnd_f32();
            x[i] = z * pow(condition, -0.5 * (double)i / (double)n);
            dot += x[i] * v[i];
        }
        for (size_t i = 0; i < n; i++)
            x[i] -= 2 * dot / norm * v[i];
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                s[i * n + j] += x[i] * x[j] / (double)n_rows;
    }
    free(v);
    free(x);
    return s;
}

static inline double dense_mean_diagonal(const double *s, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += s[i * n + i];
    return sum / (double)n;
}

#endif
