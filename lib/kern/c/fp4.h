/* SPDX-License-Identifier: MIT */
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
static inline float gg_kern_e8m0_half(uint8_t e)
{
    return gg_bytes_f32_from_bits(e < 2 ? UINT32_C(0x00200000) << e
                                        : (uint32_t)(e - 1) << 23);
}

/* Half of an unsigned E4M3 (bias 7). 0x7f, its NaN, is zero. Bit 7 is ignored:
 * an unsigned E4M3 does not have it. */
static inline float gg_kern_ue4m3_half(uint8_t v)
{
    unsigned exp = v >> 3 & 15, man = v & 7;
    if (v == 0x7f)
        return 0;
    if (exp == 0)
        return (float)man * 0x1p-10f;
    return gg_bytes_f32_from_bits((exp + 127 - 8) << 23 | man << 20);
}

/* Nearest unsigned E4M3 of v; halves go up. NaN and numbers up to 0 become 0.
 * The largest result is 448 (0x7e). */
static inline uint8_t gg_kern_ue4m3_of(float v)
{
    if (!(v > 0))
        return 0;
    if (v > 448)
        v = 448;
    uint32_t bits = gg_bytes_f32_bits(v);
    int exp = (int)(bits >> 23) - 127 + 7;
    if (exp <= 0) {
        int man = (int)(v * 512 + 0.5f);
        return (uint8_t)(man > 7 ? 7 : man);
    }
    /* a carry out of the significand goes on into the exponent */
    int code = (exp << 3 | (int)(bits >> 20 & 7)) + (int)(bits >> 19 & 1);
    return (uint8_t)(code < 0x78 ? code : 0x7e);
}

/* floor(log2f(amax)) for amax > 0, finite: the exponent; one more where
 * amax is so little below a power of two, 2^k, that its logarithm rounds to
 * k. It lies eps * 2^-24 below, relatively, so the logarithm is
 * k - eps * 2^-24 / ln 2, and half of the distance from k to the next float
 * towards minus infinity is 2^(m - 24), m = floor(log2(|k|)) (half of that
 * where k is a positive power of two): eps must be less than ln 2 * 2^m. */
static inline int gg_kern_floor_log2f(float amax)
{
    int subnormal = amax < 0x1p-126f, m = 0;
    uint32_t bits = gg_bytes_f32_bits(subnormal ? amax * 0x1p24f : amax);
    int k = (int)(bits >> 23) - 126 - (subnormal ? 24 : 0);
    unsigned eps = 0x800000 - (bits & 0x7fffff),
             a = (unsigned)(k < 0 ? -k : k);
    if (eps > 88) /* ln 2 * 2^7 */
        return k - 1;
    while (a >> (m + 1))
        m++;
    if (k > 0 && !(a & (a - 1)))
        m--;
    /* 0.693147 * 2^7 at most: no product is near an integer */
    float limit = m < 0 ? 0.3465736f : 0.6931472f * (float)(1 << m);
    return k != 0 && (float)eps < limit ? k : k - 1;
}

/* Exponent of the scale of MXFP4: the largest level, 6, is for magnitudes from
 * 4 to 8. An exponent beyond eight bits wraps, as in ggml's conversion on
 * x86. */
static inline uint8_t gg_kern_mxfp4_exponent(float amax)
{
    if (!(amax > 0))
        return 0;
    if (gg_bytes_f32_bits(amax) >= 0x7f800000)
        return 0; /* infinity: out of range of any integer */
    return (uint8_t)(gg_kern_floor_log2f(amax) - 2 + 127);
}

#endif
