/* SPDX-License-Identifier: MIT */
/* row.h - rows that the programs of make bench print
 *
 * A row is a line of cells with tabs between: table, what, shape, level,
 * precision, threads, value, unit, part, of, spread. "-" is an empty cell.
 * bench.sh makes tables and JSON from the rows.
 */
#ifndef TESTS_BENCH_ROW_H
#define TESTS_BENCH_ROW_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_row {
    const char *table, *what, *shape; /* NULL: empty */
    const char *level, *precision;    /* NULL: empty */
    unsigned threads;
    double value;     /* the best of several runs */
    const char *unit; /* unit of value */
    double part;      /* value as a part of `of' */
    const char *of;   /* name of a rate measured beside it; NULL: none */
    double spread;    /* relative difference of the median and the value; below
                       * 0: unknown */
};

static inline void bench_row(const struct bench_row *r)
{
    const char *const cells[] = { r->table, r->what, r->shape, r->level,
                                  r->precision };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        printf("%s\t", cells[i] && *cells[i] ? cells[i] : "-");
    printf("%u\t%.6g\t%s\t", r->threads, r->value, r->unit);
    if (r->of)
        printf("%.4f\t%s\t", r->part, r->of);
    else
        printf("-\t-\t");
    if (r->spread >= 0)
        printf("%.4f\n", r->spread);
    else
        printf("-\n");
    fflush(stdout);
}

/* Returns p. Ends the program if p is NULL. */
static inline void *bench_must(void *p)
{
    if (!p) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    return p;
}

static inline int bench_ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sort n times and return the smallest. *spread: relative difference of their
 * median. */
static inline double bench_best(double *t, size_t n, double *spread)
{
    qsort(t, n, sizeof *t, bench_ascending);
    *spread = t[n / 2] / t[0] - 1;
    return t[0];
}

#endif
