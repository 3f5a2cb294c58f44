/* SPDX-License-Identifier: MIT */
/* gemm_int_512.h - tiles of 32 rows by 6 columns in vectors of 512 bits
 *
 * Included once by the file of a level and a width of integers. 12 integer
 * sums, 12 f32 sums, two vectors of weights, a broadcast and, without VNNI, a
 * product are in registers. 12 columns, whose f32 sums are in memory, are a
 * tenth slower.
 */
#include "kern/x86/vi_512.h"

/* clang-format off */
#define CASES CASE(2) CASE(4) CASE(6)
/* clang-format on */

enum {
    MR = GG_GEMM_MR_INT512,
    NR = GG_GEMM_NR_INT512,
    LANES = 16,
    AT_ONCE = NR,
    ROUND_TO = 2
};
