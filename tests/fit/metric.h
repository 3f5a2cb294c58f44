/* SPDX-License-Identifier: MIT */
/* metric.h - moments of correlated inputs, and their factors in double
 * precision by the formulas */
#ifndef TESTS_FIT_METRIC_H
#define TESTS_FIT_METRIC_H

#include "fit/feedback.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>

struct metric {
    struct gg_feedback_metric m; /* argument of the encoder */
    double *s;                   /* [n][n]: S, exactly that of m */
    double *r;                   /* [n][n]: S = R R', R upper */
};

static inline double *metric_matrix(size_t n)
{
    double *p = calloc(n * n, sizeof *p);
    if (!p)
        exit(99);
    return p;
}

/* About normal, mean 0, deviation 1. */
static inline double metric_normal(void)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (double)(rnd64() >> 11) * 0x1p-53;
    return sum - 6;
}

/* R of S = R R': from the last column to the first. */
static inline double *metric_factor(const double *s, size_t n)
{
    double *r = metric_matrix(n);
    for (size_t j = n; j-- > 0;) {
        double d = s[j * n + j];
        for (size_t k = j + 1; k < n; k++)
            d -= r[j * n + k] * r[j * n + k];
        r[j * n + j] = sqrt(d);
        for (size_t i = 0; i < j; i++) {
            double x = s[i * n + j];
            for (size_t k = j + 1; k < n; k++)
                x -= r[i * n + k] * r[j * n + k];
            r[i * n + j] = x / r[j * n + j];
        }
    }
    return r;
}

/* Moments of inputs that are a few common parts and noise, with damp times
 * their mean diagonal added. */
static inline void metric_init(struct metric *m, size_t n, double damp)
{
    const size_t n_parts = n / 8, n_inputs = 2 * n;
    double *part = calloc(n_parts * n, sizeof *part), mean = 0;
    double *x = calloc(n, sizeof *x), *scale = calloc(n, sizeof *scale);
    float *g = calloc(n * n, sizeof *g), *d = calloc(n, sizeof *d);
    float *s = calloc(n * n, sizeof *s);
    if (!part || !x || !scale || !g || !d || !s)
        exit(99);
    for (size_t i = 0; i < n_parts * n; i++)
        part[i] = metric_normal();
    for (size_t i = 0; i < n; i++)
        scale[i] = exp(0.5 * metric_normal());
    m->s = metric_matrix(n);
    for (size_t t = 0; t < n_inputs; t++) {
        for (size_t i = 0; i < n; i++)
            x[i] = 0.3 * metric_normal();
        for (size_t k = 0; k < n_parts; k++) {
            const double z = 0.4 * metric_normal() / (double)(k + 1);
            for (size_t i = 0; i < n; i++)
                x[i] += z * part[k * n + i];
        }
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                m->s[i * n + j] += x[i] * scale[i] * x[j] * scale[j];
    }
    for (size_t i = 0; i < n; i++)
        mean += m->s[i * n + i] / (double)n;
    for (size_t i = 0; i < n; i++)
        m->s[i * n + i] += damp * mean;
    for (size_t i = 0; i < n * n; i++)
        m->s[i] = s[i] = (float)(m->s[i] / mean);
    m->r = metric_factor(m->s, n);
    for (size_t i = 0; i < n; i++) {
        d[i] = (float)(m->r[i * n + i] * m->r[i * n + i]);
        for (size_t j = i + 1; j < n; j++)
            g[i * n + j] = (float)(m->r[i * n + j] / m->r[j * n + j]);
        for (size_t j = 0; j <= i; j++)
            g[i * n + j] = NAN; /* not read */
    }
    m->m = (struct gg_feedback_metric){ n, g, d, s };
    free(part);
    free(x);
    free(scale);
}

static inline void metric_fini(struct metric *m)
{
    free((float *)m->m.g);
    free((float *)m->m.d);
    free((float *)m->m.s);
    free(m->s);
    free(m->r);
}

/* e' S e. */
static inline double metric_error(const struct metric *m, const double *e)
{
    const size_t n = m->m.n;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double z = 0;
        for (size_t j = 0; j < n; j++)
            z += m->s[i * n + j] * e[j];
        sum += z * e[i];
    }
    return sum;
}

#endif
