/* SPDX-License-Identifier: MIT */
/* few_i16_avx512.c - few columns of 16-bit integers for AVX-512 */
#include "config.h"
#include "base/compiler.h"
#include "kern/few_columns.h"
#include "kern/x86/dp.h"
#include "kern/x86/gemm_int_512.h"
#include "kern/x86/rows_512.h"

#define LEVEL          avx512
#define VI_DP(c, a, b) GG_DP_MADDWD_512(c, a, b)
#include "kern/simd/few_i16_impl.h"
