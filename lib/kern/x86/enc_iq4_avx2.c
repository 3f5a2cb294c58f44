/* SPDX-License-Identifier: MIT */
/* enc_iq4_avx2.c - encoders of IQ4_NL and IQ4_XS for AVX2 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/enc_iq4.h"
#include "kern/x86/enc_search.h"
#include "kern/x86/pair_avx2.h"

#include <string.h>

#define FN(name) name##_avx2
#include "kern/x86/enc_iq4_impl.h"

static inline __m256 level_of(__m256 v)
{
    static const float level[16] = GG_IQ4_LEVELS;
    __m256 upper;
    __m256i i = level_index(v, &upper);
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(load_eight(level), i),
                            _mm256_permutevar8x32_ps(load_eight(level + 8), i),
                            upper);
}

static inline struct pair levels_of(struct pair v)
{
    return (struct pair){ level_of(v.a), level_of(v.b) };
}
