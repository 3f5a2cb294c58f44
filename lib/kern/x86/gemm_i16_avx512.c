/* SPDX-License-Identifier: MIT */
/* gemm_i16_avx512.c - products of 16-bit integers for AVX-512 without VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_int.h"
#include "kern/x86/dp.h"

#include <stdbool.h>

#include <immintrin.h>

#define LEVEL          avx512
#define VI_DP(c, a, b) GG_DP_MADDWD_512(c, a, b)
#include "kern/x86/gemm_int_512.h"

#include "kern/simd/gemm_i16_impl.h"
