/* SPDX-License-Identifier: MIT */
/* enc_iq4_256.c - encoders of IQ4_NL and IQ4_XS for 256 bits */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/enc_iq4.h"
#include "kern/simd/enc_search.h"
#include "kern/simd/pair_256.h"

#include <string.h>

#define FN(name) name##_256
#include "kern/simd/enc_iq4_impl.h"

static inline __m256 level_of(__m256 v)
{
    static const float level[16] = GG_IQ4_LEVELS;
    __m256 upper;
    __m256i i = level_index(v, &upper);
    return m256_select_ps(_mm256_permutevar8x32_ps(load_eight(level), i),
                          _mm256_permutevar8x32_ps(load_eight(level + 8), i),
                          upper);
}

static inline struct pair levels_of(struct pair v)
{
    return (struct pair){ level_of(v.a), level_of(v.b) };
}
