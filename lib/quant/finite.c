/* finite.c - is there anything but numbers in an array? */
#include "config.h"
#include "quant/finite.h"

#include <stdint.h>
#include <string.h>

enum { LANES = 16 };

/* Inner loops of fixed length, for compilers to make vectors of: the sign bit
 * of bits + 2^23 is set for the largest exponent only, which is that of NaN
 * and infinity. */
bool gg_finite(const float *x, size_t n)
{
    uint32_t bad[LANES] = { 0 }, bits[LANES], any = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        memcpy(bits, x + i, sizeof bits);
        for (int k = 0; k < LANES; k++)
            bad[k] |= (bits[k] & 0x7fffffffu) + 0x00800000u;
    }
    for (int k = 0; k < LANES; k++)
        any |= bad[k];
    for (; i < n; i++) {
        memcpy(bits, x + i, sizeof *bits);
        any |= (bits[0] & 0x7fffffffu) + 0x00800000u;
    }
    return !(any & 0x80000000u);
}
