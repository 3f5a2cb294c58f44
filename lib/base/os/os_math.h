/* SPDX-License-Identifier: MIT */
/* os_math.h - functions of <math.h> that a system has, but with other results
 *
 * Threads: any. */
#ifndef GG_BASE_OS_OS_MATH_H
#define GG_BASE_OS_OS_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* a * b + c, rounded once, as fmaf(). Windows: fmaf() of mingw-w64 rounds
 * twice. Here the product is exact in double precision, and the sum is rounded
 * to odd, from which rounding to float gives the result of one rounding (Boldo
 * and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
static inline float gg_os_fmaf(float a, float b, float c)
{
#if defined(_WIN32)
    const double p = (double)a * (double)b, s = p + (double)c;
    const double t = s - p;
    /* exact error of s */
    const double rest = (p - (s - t)) + ((double)c - t);
    int64_t bits;
    double odd;
    memcpy(&bits, &s, sizeof bits);
    if (!(bits & 1) && (rest > 0 || rest < 0))
        bits += (rest > 0) == (s > 0) ? 1 : -1;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
#else
    return fmaf(a, b, c);
#endif
}

#endif
