/* SPDX-License-Identifier: MIT */
/* f8.h - convert F8_E4M3, floats of 8 bits, without tables
 *
 * A sign, four bits of exponent (bias 7), three of significand. The type has no
 * infinity; all ones is NaN; the largest number is 448 (OCP 8-bit Floating
 * Point Specification 1.0, E4M3).
 */
#ifndef GG_DTYPE_F8_H
#define GG_DTYPE_F8_H

#include "base/bytes.h"

static inline float gg_dtype_f8_to_f32(uint8_t v)
{
    const uint32_t sign = (uint32_t)(v & 0x80) << 24;
    const unsigned exp = v >> 3 & 15, man = v & 7;
    if ((v & 0x7f) == 0x7f)
        return gg_bytes_f32_from_bits(sign | 0x7fc00000u);
    if (exp == 0)
        return (v & 0x80 ? -0x1p-9f : 0x1p-9f) * (float)man;
    return gg_bytes_f32_from_bits(sign | (exp + 120) << 23 | man << 20);
}

/* Nearest F8_E4M3, halves to even. Larger numbers and infinities become 448,
 * NaNs 0x7f, as in ggml (llama.cpp b12211). */
static inline uint8_t gg_dtype_f32_to_f8(float v)
{
    const uint32_t bits = gg_bytes_f32_bits(v), a = bits & 0x7fffffff;
    const uint8_t sign = (uint8_t)(bits >> 24 & 0x80);
    if (a > 0x7f800000u)
        return 0x7f;
    if (a >= 0x43e00000u) /* 448 */
        return sign | 0x7e;
    if (a >= 0x3c800000u) /* 2^-6, the smallest normal number */
        return (uint8_t)(sign | (((a + 0x7ffff + (a >> 20 & 1)) >> 20) - 960));
    /* n 2^-9 = significand 2^(exponent - 150) */
    const uint32_t exp = a >> 23, man = (a & 0x7fffff) | 0x800000;
    if (exp < 117)
        return sign; /* less than half of 2^-9 */
    const uint32_t shift = 141 - exp, half = 1u << (shift - 1);
    return (uint8_t)(sign | ((man + half - 1 + (man >> shift & 1)) >> shift));
}

#endif
