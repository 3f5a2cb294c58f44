/* SPDX-License-Identifier: MIT */
/* few_i8_avxvnni.c - few columns of bytes for AVX2 with AVX-VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/few_columns.h"
#include "kern/x86/dp.h"
#include "kern/simd/gemm_int_256.h"
#include "kern/simd/rows_256.h"

#define LEVEL             avxvnni
#define VI_DP(c, a, b)    GG_DP_DPBUSD_256(c, a, b)
#define VI_SCALE(c, a, b) GG_DP_DPWSSD_256(c, a, b)
#include "kern/simd/few_i8_impl.h"
