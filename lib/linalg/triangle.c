/* SPDX-License-Identifier: MIT */
/* triangle.c - diagonal blocks of factorizations, in double precision */
#include "config.h"
#include "linalg/triangle.h"

#include "linalg/linalg.h"

#include <math.h>
#include <string.h>

/* y = y - a x. Compilers make vectors of the inner loop's constant length. */
static void subtract_scaled(double *restrict y, double a,
                            const double *restrict x, size_t n)
{
    enum { STEP = 8 };
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        for (size_t k = 0; k < STEP; k++)
            y[i + k] -= a * x[i + k];
    for (; i < n; i++)
        y[i] -= a * x[i];
}

size_t gg_linalg_factor_block(double *a, size_t n)
{
    double col[GG_LINALG_BLOCK];
    for (size_t j = n; j-- > 0;) {
        const double pivot = a[j * n + j];
        if (!(pivot > 0) || !isfinite(pivot))
            return j;
        const double root = sqrt(pivot);
        a[j * n + j] = root;
        for (size_t i = 0; i < j; i++)
            col[i] = a[i * n + j] /= root;
        for (size_t i = 0; i < j; i++)
            subtract_scaled(a + i * n + i, col[i], col + i, j - i);
    }
    return n;
}

void gg_linalg_invert_row(const double *r, size_t n, size_t i, double *row)
{
    memset(row, 0, n * sizeof *row);
    row[i] = 1;
    for (size_t k = i; k < n; k++) {
        row[k] /= r[k * n + k];
        subtract_scaled(row + k + 1, row[k], r + k * n + k + 1, n - k - 1);
    }
}
