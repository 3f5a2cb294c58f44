/* SPDX-License-Identifier: MIT */
/* floats.h - sink of blocks: floats in memory
 *
 * blocks_*.h read the numbers of a type from its blocks and pass them on 32 at
 * a time, in order. Their includer first defines the sink: the type TO, a
 * function that receives the scale of a block whose parts have integer scales,
 * and functions that receive the next 32 numbers.
 *
 *     to_d(to, d, unit)              returns the scale to use: d itself, or
 *                                    2^unit, which makes all numbers integers
 *     to_i8(to, q, s0, s1)           q times a scale, 16 by each
 *     to_u8(to, q, s0, m0, s1, m1)   q times a scale, less a minimum
 *     to_ps(to, v)                   v[4], eight floats each
 *     to_signs(to, bits, d)          d where a bit is set, else -d
 *
 * Products and differences are rounded. Here they are stored; dots_impl.h
 * multiplies them with columns of activations.
 */
#ifndef GG_KERN_SIMD_FLOATS_H
#define GG_KERN_SIMD_FLOATS_H

#include "kern/codec.h"
#include "kern/simd/v256.h"

struct gg_kern_floats {
    float *next;
};
#define TO struct gg_kern_floats

static GG_ALWAYS_INLINE float to_d(TO *to, float d, int unit)
{
    (void)to;
    (void)unit;
    return d;
}

static GG_ALWAYS_INLINE void to_i8(TO *to, __m256i q, float s0, float s1)
{
    gg_v256_put_i8(to->next, q, s0, s1);
    to->next += 32;
}

static GG_ALWAYS_INLINE void to_u8(TO *to, __m256i q, float s0, float m0,
                                   float s1, float m1)
{
    gg_v256_put_u8(to->next, q, s0, m0, s1, m1);
    to->next += 32;
}

static GG_ALWAYS_INLINE void to_ps(TO *to, const __m256 v[4])
{
    GG_UNROLL
    for (int k = 0; k < 4; k++)
        _mm256_storeu_ps(to->next + 8 * k, v[k]);
    to->next += 32;
}

static GG_ALWAYS_INLINE void to_signs(TO *to, uint32_t bits, float d)
{
    __m256 v[4];
    gg_v256_signs_ps(v, bits, d);
    to_ps(to, v);
}

/* The decoder of a type (kern/codec.h). */
#define DECODER(NAME)                                                         \
    void gg_kern_decode_##NAME##_256(const void *src, float *dst, size_t n)   \
    {                                                                         \
        TO to = { dst };                                                      \
        gg_kern_each_##NAME(&to, src, n);                                     \
    }

#endif
