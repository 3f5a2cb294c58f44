/* SPDX-License-Identifier: MIT */
/* gemm_int_256.h - tiles of 16 rows by 6 columns in vectors of 256 bits
 *
 * Included once by the file of a level and a width of integers. Twelve integer
 * sums, two vectors of weights, a broadcast and, without VNNI, a product are in
 * registers. Byte products are so fast that moves between runs matter: three
 * columns at a time (AT_ONCE, defined before) are up to a quarter faster, on a
 * Xeon with AVX-VNNI a tenth. 16-bit pairs would be slower with it.
 */
#include "kern/simd/vi_256.h"

/* clang-format off */
#ifdef AT_ONCE
#define CASES CASE(AT_ONCE)
enum { ROUND_TO = AT_ONCE };
#else
#define CASES CASE(2) CASE(4) CASE(6)
enum { AT_ONCE = GG_GEMM_NR_256, ROUND_TO = 2 };
#endif
/* clang-format on */

enum { MR = GG_GEMM_MR_256, NR = GG_GEMM_NR_256, LANES = 8 };
