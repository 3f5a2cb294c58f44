/* SPDX-License-Identifier: MIT */
/* pairs_256.h - tiles of pairs of 16 rows by 6 columns, vectors of 256 bits
 *
 * Included once by the file of a level, which has defined VI_DP and TILE.
 */
#include "kern/pairs.h"
#include "kern/x86/vi_256.h"

/* clang-format off */
#define CASES CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
/* clang-format on */

enum { MR = GG_PAIRS_MR_AVX2, NR = GG_PAIRS_NR_AVX2, LANES = 8 };

#include "kern/x86/pairs_tile_impl.h"
