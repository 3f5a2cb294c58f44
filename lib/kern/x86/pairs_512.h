/* SPDX-License-Identifier: MIT */
/* pairs_512.h - tiles of pairs of 32 rows by 12 columns, vectors of 512 bits
 *
 * Included once by the file of a level, which has defined VI_DP and TILE.
 */
#include "kern/pairs.h"
#include "kern/x86/vi_512.h"

/* clang-format off */
#define CASES                                                                 \
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9)   \
    CASE(10) CASE(11) CASE(12)
/* clang-format on */

enum { MR = GG_PAIRS_MR_AVX512, NR = GG_PAIRS_NR_AVX512, LANES = 16 };

#include "kern/x86/pairs_tile_impl.h"
