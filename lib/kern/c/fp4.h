/* fp4.h - the scales of MXFP4 and NVFP4
 *
 * The levels (GG_FP4_LEVELS) are twice those of E2M1, so the scales are half
 * of what their format says. Sources: OCP Microscaling Formats (MX) 1.0 for
 * E8M0; ggml-impl.h (ggml commit d99724f) for the handling of NVFP4's ends.
 */
#ifndef GG_KERN_C_FP4_H
#define GG_KERN_C_FP4_H

#include "base/bytes.h"

/* 2^(e - 128); e = 255, NaN in the specification, is one more exponent. */
static inline float gg_e8m0_half(uint8_t e)
{
    return gg_f32_from_bits(e < 2 ? UINT32_C(0x00200000) << e
                                  : (uint32_t)(e - 1) << 23);
}

/* Half of an unsigned E4M3 (bias 7); 0x7f, its NaN, is zero. Bit 7, which
 * an unsigned value does not have, is not looked at. */
static inline float gg_ue4m3_half(uint8_t v)
{
    unsigned exp = v >> 3 & 15, man = v & 7;
    if (v == 0x7f)
        return 0;
    if (exp == 0)
        return (float)man * 0x1p-10f;
    return gg_f32_from_bits((exp + 127 - 8) << 23 | man << 20);
}

#endif
