/* SPDX-License-Identifier: MIT */
/* few_i8_256.c - few columns of bytes of up to 7 bits for 256 bits */
#include "config.h"
#include "base/compiler.h"
#include "kern/few_columns.h"
#include "kern/simd/dp_256.h"
#include "kern/simd/gemm_int_256.h"
#include "kern/simd/rows_256.h"

#define LEVEL             256
#define VI_MUL(c, a, b)   GG_DP_MUL_BYTES_256(c, a, b)
#define VI_ADD(c, a, b)   GG_DP_ADD_BYTES_256(c, a, b)
#define VI_WIDEN(c, a)    GG_DP_PAIRS_256(c, a)
#define VI_SCALE(c, a, b) GG_DP_MADDWD_256(c, a, b)
#include "kern/simd/few_i8_impl.h"
