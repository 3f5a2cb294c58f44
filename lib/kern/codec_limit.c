/* SPDX-License-Identifier: MIT */
/* codec_limit.c - largest magnitudes of types
 *
 * A block has a scale of few bits, and an element is the scale times a factor
 * that its codes choose. The limit of a type is its largest scale times its
 * largest factor. gguf-quants(7) has the layouts from which the factors follow.
 */
#include "config.h"
#include "kern/codec.h"

#include <math.h>

/* The largest factor of the scale, of types whose scale is an F16. */
static const float factor[GG_N_DTYPES] = {
    [GG_DT_F16] = 1,
    [GG_DT_Q4_0] = 8,
    [GG_DT_Q4_1] = 15 + 1, /* the last: the least element, an F16 as well */
    [GG_DT_Q5_0] = 16,
    [GG_DT_Q5_1] = 31 + 1,
    [GG_DT_Q8_0] = 128,
    [GG_DT_Q8_1] = 128,
    [GG_DT_Q2_K] = 15 * 3,
    [GG_DT_Q3_K] = 32 * 4,
    [GG_DT_Q4_K] = 63 * 15,
    [GG_DT_Q5_K] = 63 * 31,
    [GG_DT_Q6_K] = 128 * 32,
    [GG_DT_IQ1_S] = 15 * 1.125f,
    [GG_DT_IQ1_M] = 15 * 1.125f,
    [GG_DT_IQ2_XXS] = 15.5f * 0.25f * 43,
    [GG_DT_IQ2_XS] = 15.5f * 0.25f * 43,
    [GG_DT_IQ2_S] = 15.5f * 0.25f * 43,
    [GG_DT_IQ3_XXS] = 15.5f * 0.5f * 62,
    [GG_DT_IQ3_S] = 31 * 15,
    [GG_DT_IQ4_NL] = 127,
    [GG_DT_IQ4_XS] = 32 * 127,
    [GG_DT_TQ1_0] = 1,
    [GG_DT_TQ2_0] = 1,
    [GG_DT_Q1_0] = 128, /* the scale is the mean of 128 magnitudes */
    [GG_DT_Q2_0] = 2,
    [GG_DT_IQ1_BN] = 1,
};

/* Limits of types whose encoders square sums of third powers: below 2^17,
 * (2^51 * 127 * 32)^2 is a float. */
#define CUBES 0x1p17f
static const float limit[GG_N_DTYPES] = {
    [GG_DT_Q6_0] = CUBES,   [GG_DT_IQ2_K] = CUBES,   [GG_DT_IQ3_K] = CUBES,
    [GG_DT_IQ4_K] = CUBES,  [GG_DT_IQ5_K] = CUBES,   [GG_DT_IQ6_K] = CUBES,
    [GG_DT_IQ2_KS] = CUBES, [GG_DT_IQ3_KS] = CUBES,  [GG_DT_IQ4_KS] = CUBES,
    [GG_DT_IQ5_KS] = CUBES, [GG_DT_IQ4_KSS] = CUBES, [GG_DT_IQ2_KL] = CUBES,
    [GG_DT_IQ1_KT] = CUBES, [GG_DT_IQ2_KT] = CUBES,  [GG_DT_IQ3_KT] = CUBES,
    [GG_DT_IQ4_KT] = CUBES,
};

float gg_codec_max_magnitude(int dtype)
{
    /* The least number that becomes infinity as an F16. */
    static const float f16_end = 65520;
    /* NVFP4: 6 times the middle between 448, the largest scale (E4M3), and the
     * next that it would have. */
    if (dtype == GG_DT_NVFP4)
        return 6 * 464;
    /* The middle between 448 and the next number that it would have. */
    if (dtype == GG_DT_F8_E4M3)
        return 464;
    if (dtype == GG_DT_BF16) /* the least number that becomes infinity */
        return 0x1.ffp127f;
    if (limit[dtype] > 0)
        return limit[dtype];
    return factor[dtype] > 0 ? f16_end * factor[dtype] : INFINITY;
}
