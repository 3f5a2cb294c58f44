/* SPDX-License-Identifier: MIT */
/* few_i16_avx2.c - few columns of 16-bit integers for AVX2 */
#include "config.h"
#include "base/compiler.h"
#include "kern/few_columns.h"
#include "kern/x86/dp.h"
#include "kern/x86/gemm_int_256.h"
#include "kern/x86/rows_256.h"

#define LEVEL          avx2
#define VI_DP(c, a, b) GG_X86_MADDWD_256(c, a, b)
#include "kern/x86/few_i16_impl.h"
