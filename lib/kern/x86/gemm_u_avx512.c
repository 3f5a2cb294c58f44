/* SPDX-License-Identifier: MIT */
/* gemm_u_avx512.c - bytes of up to 7 bits for AVX-512 without VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_i8.h"
#include "kern/x86/dp.h"

#define LEVEL           avx512
#define VI_MUL(c, a, b) GG_DP_MUL_BYTES_512(c, a, b)
#define VI_ADD(c, a, b) GG_DP_ADD_BYTES_512(c, a, b)
#define VI_WIDEN(c, a)  GG_DP_WIDEN_512(c, a, _mm512_set1_epi16(1))
#include "kern/x86/gemm_int_512.h"

#include "kern/simd/gemm_u_impl.h"
