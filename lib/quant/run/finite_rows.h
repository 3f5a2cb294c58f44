/* SPDX-License-Identifier: MIT */
/* finite_rows.h - has an array NaN, infinities or large numbers? */
#ifndef GG_QUANT_RUN_FINITE_ROWS_H
#define GG_QUANT_RUN_FINITE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

/* No NaN and no infinity in x[0..n). */
bool gg_quant_is_finite(const float *x, size_t n);

/* And all are below 2^11, so that every type can hold them: NVFP4, which ends
 * first, at 2688, and those whose scales are F16, which ends at 65504, and are
 * smaller than the block's elements. */
bool gg_quant_is_small(const float *x, size_t n);

#endif
