/* SPDX-License-Identifier: MIT */
/* gemm_i8_avxvnni.c - products of bytes for AVX2 with AVX-VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_i8.h"
#include "kern/x86/dp.h"

#define LEVEL          avxvnni
#define VI_DP(c, a, b) GG_DP_DPBUSD_256(c, a, b)
#define AT_ONCE        3
#include "kern/simd/gemm_int_256.h"

#include "kern/simd/gemm_i8_impl.h"
