/* SPDX-License-Identifier: MIT */
/* finite_rows.c - find NaN, infinities and large numbers in an array */
#include "config.h"
#include "quant/run/finite_rows.h"
#include "base/bytes.h"
#include "base/compiler.h"

#include <stdint.h>

enum { LANES = 16 };

/* Are all magnitudes below limit, as bits of floats? Magnitudes compare like
 * their bits: adding 2^31 - limit sets the sign bit of larger ones. Inner loops
 * have a fixed length, for compilers to vectorize. */
static bool all_below(const float *x, size_t n, uint32_t limit)
{
    uint32_t bad[LANES] = { 0 }, any = 0, add = 0x80000000u - limit;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        GG_UNROLL
        for (int k = 0; k < LANES; k++)
            bad[k] |= (gg_bytes_f32_bits(x[i + k]) & 0x7fffffffu) + add;
    }
    for (int k = 0; k < LANES; k++)
        any |= bad[k];
    for (; i < n; i++)
        any |= (gg_bytes_f32_bits(x[i]) & 0x7fffffffu) + add;
    return !(any & 0x80000000u);
}

bool gg_quant_is_finite(const float *x, size_t n)
{
    return all_below(x, n, 0x7f800000u);
}

bool gg_quant_is_small(const float *x, size_t n)
{
    return all_below(x, n, gg_bytes_f32_bits(0x1p8f));
}
