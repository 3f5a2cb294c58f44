/* SPDX-License-Identifier: MIT */
/* few_i16_256.c - few columns of 16-bit integers for 256 bits */
#include "config.h"
#include "base/compiler.h"
#include "kern/few_columns.h"
#include "kern/simd/dp_256.h"
#include "kern/simd/gemm_int_256.h"
#include "kern/simd/rows_256.h"

#define LEVEL          256
#define VI_DP(c, a, b) GG_DP_MADDWD_ALL_256(c, a, b)
#include "kern/simd/few_i16_impl.h"
