/* SPDX-License-Identifier: MIT */
/* attn_i16_512.h - tiles of 32 rows by 12 columns for attention
 *
 * Included once by the file of a level, which has defined VI_DP and TILE.
 */
#include "kern/attn_i16.h"
#include "kern/x86/vi_512.h"

/* clang-format off */
#define CASES                                                                 \
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9)   \
    CASE(10) CASE(11) CASE(12)
/* clang-format on */

enum { MR = GG_ATTN_I16_MR_AVX512, NR = GG_ATTN_I16_NR_AVX512, LANES = 16 };

#include "kern/simd/attn_i16_tile_impl.h"
