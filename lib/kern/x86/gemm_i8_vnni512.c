/* SPDX-License-Identifier: MIT */
/* gemm_i8_vnni512.c - products of bytes for AVX-512 with VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_i8.h"
#include "kern/x86/dp.h"

#define LEVEL          vnni512
#define VI_DP(c, a, b) GG_DP_DPBUSD_512(c, a, b)
#include "kern/x86/gemm_int_512.h"

#include "kern/simd/gemm_i8_impl.h"
