/* SPDX-License-Identifier: MIT */
/* attn_i16_256.h - tiles of 16 rows by 6 columns for attention
 *
 * Included once by the file of a level, which has defined VI_DP and TILE.
 */
#include "kern/attn_i16.h"
#include "kern/simd/vi_256.h"

/* clang-format off */
#define CASES CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
/* clang-format on */

enum { MR = GG_ATTN_I16_MR_256, NR = GG_ATTN_I16_NR_256, LANES = 8 };

#include "kern/simd/attn_i16_tile_impl.h"
