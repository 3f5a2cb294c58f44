/* finite.c - is there anything but numbers in an array? */
#include "config.h"
#include "quant/finite.h"
#include "base/bytes.h"
#include "base/compiler.h"

#include <stdint.h>

enum { LANES = 16 };

/* Inner loops of fixed length, for compilers to make vectors of: the sign bit
 * of bits + 2^23 is set for the largest exponent only, which is that of NaN
 * and infinity. */
bool gg_finite(const float *x, size_t n)
{
    uint32_t bad[LANES] = { 0 }, any = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        GG_UNROLL
        for (int k = 0; k < LANES; k++)
            bad[k] |= (gg_f32_bits(x[i + k]) & 0x7fffffffu) + 0x00800000u;
    }
    for (int k = 0; k < LANES; k++)
        any |= bad[k];
    for (; i < n; i++)
        any |= (gg_f32_bits(x[i]) & 0x7fffffffu) + 0x00800000u;
    return !(any & 0x80000000u);
}
