/* SPDX-License-Identifier: MIT */
/* finite_rows.h - find NaN, infinities and large numbers in an array */
#ifndef GG_QUANT_RUN_FINITE_ROWS_H
#define GG_QUANT_RUN_FINITE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

/* Are all of x[0..n) finite? */
bool gg_quant_is_finite(const float *x, size_t n);

/* Are all of x[0..n) finite and below 2^8? Every type can hold such numbers:
 * F8_E4M3, whose limit is the lowest, ends at 448, NVFP4 at 2688; types with
 * F16 scales end at 65504, and their scales are smaller than the block's
 * elements. */
bool gg_quant_is_small(const float *x, size_t n);

#endif
