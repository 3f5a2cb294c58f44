/* SPDX-License-Identifier: MIT */
/* gemm_i16_avxvnni.c - products of 16-bit integers for AVX2 with AVX-VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_int.h"
#include "kern/x86/dp.h"

#include <stdbool.h>

#define LEVEL          avxvnni
#define VI_DP(c, a, b) GG_DP_DPWSSD_256(c, a, b)
#include "kern/simd/gemm_int_256.h"

#include "kern/simd/gemm_i16_impl.h"
