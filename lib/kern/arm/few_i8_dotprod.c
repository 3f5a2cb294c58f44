/* SPDX-License-Identifier: MIT */
/* few_i8_dotprod.c - few columns of bytes by SDOT */
#include "config.h"
#include "base/compiler.h"
#include "kern/few_columns.h"
#include "kern/simd/rows_256.h"

enum { NR = GG_GEMM_NR_DOTPROD };

#define LEVEL  dotprod
#define SIGNED 1
/* c += products of the quads a and b of 8 rows with two quads of a column. */
#define VI_DP_TWO(c, a, b, x)                                                 \
    do {                                                                      \
        const int8x8_t two_ = vld1_s8((const int8_t *)(const void *)(x));     \
        (c).lo = dot(dot((c).lo, (a).lo, two_, 0), (b).lo, two_, 1);          \
        (c).hi = dot(dot((c).hi, (a).hi, two_, 0), (b).hi, two_, 1);          \
    } while (0)
#define dot(c, a, b, lane)                                                    \
    m128_of_s32(vdotq_lane_s32(m128_s32(c), m128_s8(a), b, lane))
#define VI_SCALE(c, a, b) ((c) = _mm256_add_epi32(c, _mm256_mullo_epi32(a, b)))
#include "kern/simd/few_i8_impl.h"
