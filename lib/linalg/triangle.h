/* SPDX-License-Identifier: MIT */
/* triangle.h - diagonal blocks of factorizations, in double precision */
#ifndef GG_LINALG_TRIANGLE_H
#define GG_LINALG_TRIANGLE_H

#include <stddef.h>

/* Factor the symmetric block A = R R', R upper triangular.
 *
 * a   n x n. The elements above and on the diagonal are read and become R.
 *
 * Returns n. A smaller number is the pivot that is not positive and finite; it
 * is at its place in a. */
size_t gg_linalg_factor_block(double *a, size_t n);

/* Compute row i of the inverse of an upper triangular R.
 *
 * r     n x n
 * row   n doubles; its first i elements become 0. */
void gg_linalg_invert_row(const double *r, size_t n, size_t i, double *row);

#endif
