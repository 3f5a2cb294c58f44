/* SPDX-License-Identifier: MIT */
/* round.h - conversions of floats to integers that encoders depend on
 *
 * Source of the rules: ggml-quants.c (ggml commit d99724f) and what x86
 * compilers make of its conversions. Each is total: where C leaves a
 * conversion undefined, the result is what SSE instructions give.
 */
#ifndef GG_KERN_C_ROUND_H
#define GG_KERN_C_ROUND_H

#include "base/bytes.h"

#include <math.h>

/* Nearest integer, ties to even, for |v| <= 2^22. Adding 1.5 * 2^23 leaves
 * the integer in the low bits of the significand. Outside of that range the
 * bits are those of the same sum: deterministic, but not the nearest. */
static inline int gg_kern_nearest(float v)
{
    uint32_t bits = gg_bytes_f32_bits(v + 12582912.0f);
    return (int)(bits & 0x7fffff) - 0x400000;
}

/* Truncate towards zero. Numbers out of range and NaN give INT32_MIN, as
 * CVTTSS2SI does. */
static inline int32_t gg_kern_truncate(float v)
{
    return v >= -0x1p31f && v < 0x1p31f ? (int32_t)v : INT32_MIN;
}

/* Nearest, ties away from zero, then as gg_kern_truncate. roundf() of mingw-w64
 * gives 1 for the number below 0.5. */
static inline int32_t gg_round_away(float v)
{
    const int32_t i = gg_kern_truncate(v);
    const float rest = v - (float)i; /* exact */
    return i == INT32_MIN ? i : i + (rest >= 0.5f) - (rest <= -0.5f);
}

static inline int gg_kern_clamp(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Largest magnitude of n floats; NaN counts as more than infinity. */
static inline float gg_kern_max_abs(const float *x, size_t n)
{
    uint32_t m = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t a = gg_bytes_f32_bits(x[i]) & 0x7fffffff;
        m = a > m ? a : m;
    }
    return gg_bytes_f32_from_bits(m);
}

/* The first of n floats that has the largest magnitude, with its sign; NaN
 * does not count; 0 if all are NaN. Bits are compared, since clang 19.1.0 loses
 * the fabsf() of a maximum that begins with 0. */
static inline float gg_kern_max_abs_signed(const float *x, size_t n)
{
    uint32_t best = 0, m = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t v = gg_bytes_f32_bits(x[i]), a = v & 0x7fffffff;
        if (a > m && a <= 0x7f800000) {
            m = a;
            best = v;
        }
    }
    return gg_bytes_f32_from_bits(best);
}

#endif
