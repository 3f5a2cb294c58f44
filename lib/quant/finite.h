/* finite.h - is there anything but numbers in an array? */
#ifndef GG_QUANT_FINITE_H
#define GG_QUANT_FINITE_H

#include <stdbool.h>
#include <stddef.h>

/* No NaN and no infinity in x[0..n). */
bool gg_finite(const float *x, size_t n);

#endif
