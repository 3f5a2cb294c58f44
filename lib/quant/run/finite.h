/* SPDX-License-Identifier: MIT */
/* finite.h - has an array NaN, infinities or large numbers? */
#ifndef GG_QUANT_FINITE_H
#define GG_QUANT_FINITE_H

#include <stdbool.h>
#include <stddef.h>

/* No NaN and no infinity in x[0..n). */
bool gg_quant_finite(const float *x, size_t n);

/* And all are below 2^15, so that every type can hold them: F16 ends at 65504,
 * and scales of blocks, which are F16, are smaller than the block's
 * elements. */
bool gg_quant_small(const float *x, size_t n);

#endif
