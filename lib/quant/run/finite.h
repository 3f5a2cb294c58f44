/* finite.h - is there anything but numbers in an array? */
#ifndef GG_QUANT_FINITE_H
#define GG_QUANT_FINITE_H

#include <stdbool.h>
#include <stddef.h>

/* No NaN and no infinity in x[0..n). */
bool gg_quant_finite(const float *x, size_t n);

/* They are below 2^15, too: numbers that every type to encode to has room for,
 * as F16 ends at 65504, and scales of blocks, which are F16, are smaller than
 * what they are for. */
bool gg_quant_small(const float *x, size_t n);

#endif
