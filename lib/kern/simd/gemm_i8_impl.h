/* SPDX-License-Identifier: MIT */
/* gemm_i8_impl.h - tiles of bytes, in terms of a level's vectors
 *
 * Included once by the file of a level, which has defined LEVEL, VI_DP and what
 * gemm_int_impl.h wants.
 */
#define BYTES    1
#define X_SCALES GG_GEMM_I8_SCALES
#define W_BLOCK  GG_GEMM_I8_W_BLOCK
#define X_BLOCK  GG_GEMM_I8_X_BLOCK
#include "kern/simd/gemm_int_impl.h"

#define X(scales, mins, level)                                                \
    GG_GEMM_INT_TILE(gg_kern_i8_tile_##scales##_##mins##_##level, scales,     \
                     mins, 0)
GG_GEMM_I8_TILES(X, LEVEL)
