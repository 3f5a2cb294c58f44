/* SPDX-License-Identifier: MIT */
/* gemm_i16_impl.h - tiles of 16-bit integers, in terms of a level's vectors
 *
 * Included once by the file of a level, which has defined LEVEL, VI_DP and what
 * gemm_int_impl.h wants.
 */
#define BYTES                            2
#define X_SCALES                         1
#define W_BLOCK                          GG_GEMM_INT_W_BLOCK
#define X_BLOCK(width, n_scales, n_mins) GG_GEMM_INT_X_BLOCK(width, n_mins)
#include "kern/simd/gemm_int_impl.h"

#define X(scales, mins, most, level)                                          \
    GG_GEMM_INT_TILE(gg_kern_i16_tile_##scales##_##mins##_##level, scales,    \
                     mins, 0)
GG_GEMM_I16_FORMS(X, LEVEL)
