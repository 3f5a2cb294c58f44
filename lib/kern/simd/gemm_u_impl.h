/* SPDX-License-Identifier: MIT */
/* gemm_u_impl.h - tiles of bytes of up to 7 bits, without VNNI
 *
 * Included once by the file of a level, which has defined LEVEL, VI_MUL,
 * VI_ADD, VI_WIDEN and what gemm_int_impl.h wants. Panels, integers and the
 * order of sums in f32 are those of gemm_i8_impl.h.
 */
#define BYTES    1
#define X_SCALES GG_GEMM_I8_SCALES
#define W_BLOCK  GG_GEMM_I8_W_BLOCK
#define X_BLOCK  GG_GEMM_I8_X_BLOCK
#include "kern/simd/gemm_int_impl.h"

#define X(bits, scales, mins, level)                                          \
    GG_GEMM_INT_TILE(gg_kern_u##bits##_tile_##scales##_##mins##_##level,      \
                     scales, mins, GG_GEMM_I8_SUMS(bits))
GG_GEMM_U_TILES(X, LEVEL)
