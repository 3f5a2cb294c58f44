/* SPDX-License-Identifier: MIT */
/* few_i8_vnni512.c - few columns of bytes for AVX-512 with VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/few_columns.h"
#include "kern/x86/dp.h"
#include "kern/x86/gemm_int_512.h"
#include "kern/x86/rows_512.h"

#define LEVEL             vnni512
#define VI_DP(c, a, b)    GG_DP_DPBUSD_512(c, a, b)
#define VI_SCALE(c, a, b) GG_DP_DPWSSD_512(c, a, b)
#include "kern/simd/few_i8_impl.h"
