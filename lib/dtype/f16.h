/* SPDX-License-Identifier: MIT */
/* f16.h - convert F16 and BF16 exactly, without tables
 *
 * F16 is IEEE 754 binary16; BF16 is the upper half of binary32. Numbers are
 * rounded to nearest, ties to even. Results are the same as in hardware.
 */
#ifndef GG_DTYPE_F16_H
#define GG_DTYPE_F16_H

#include "base/bytes.h"

/* F16 to float, without rounding. Signalling NaNs become quiet. */
static inline float gg_dtype_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exp = h >> 10 & 0x1f, man = h & 0x3ff;
    if (exp == 0x1f)
        return gg_bytes_f32_from_bits(sign | 0x7f800000u | man << 13 |
                                      (man ? 0x400000u : 0));
    if (exp)
        return gg_bytes_f32_from_bits(sign | (exp + 112) << 23 | man << 13);
    /* zero or subnormal: man * 2^-24 is exact */
    float v = (float)man * 0x1p-24f;
    return gg_bytes_f32_from_bits(gg_bytes_f32_bits(v) | sign);
}

/* Float to F16. NaNs become quiet; large numbers become infinite. */
static inline uint16_t gg_dtype_f32_to_f16(float f)
{
    uint32_t v = gg_bytes_f32_bits(f);
    uint32_t sign = v >> 16 & 0x8000, a = v & 0x7fffffffu;
    if (a > 0x7f800000u) /* NaN: quiet, upper payload bits kept */
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x47800000u) /* 65536 and more, infinity */
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000u) {
        /* below 2^-14: adding 0.5 leaves the value in units of 2^-24,
         * rounded to nearest even, in the low bits of the sum */
        float s = gg_bytes_f32_from_bits(a) + 0.5f;
        return (uint16_t)(sign | (gg_bytes_f32_bits(s) - 0x3f000000u));
    }
    a += 0xfff + (a >> 13 & 1);
    return (uint16_t)(sign | ((a >> 13) - (112u << 10)));
}

/* BF16 to float, without rounding. */
static inline float gg_dtype_bf16_to_f32(uint16_t b)
{
    return gg_bytes_f32_from_bits((uint32_t)b << 16);
}

/* Float to BF16, as in ggml: NaNs become quiet, large numbers become infinite,
 * subnormals are kept. */
static inline uint16_t gg_dtype_f32_to_bf16(float f)
{
    uint32_t v = gg_bytes_f32_bits(f);
    if ((v & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(v >> 16 | 64);
    return (uint16_t)((v + (0x7fff + (v >> 16 & 1))) >> 16);
}

#endif
