/* SPDX-License-Identifier: MIT */
/* gemm_u_avx2.c - bytes of up to 7 bits for AVX2 without VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_i8.h"
#include "kern/x86/dp.h"

#define LEVEL           avx2
#define VI_MUL(c, a, b) GG_X86_MUL_BYTES_256(c, a, b)
#define VI_ADD(c, a, b) GG_X86_ADD_BYTES_256(c, a, b)
#define VI_WIDEN(c, a)  GG_X86_WIDEN_256(c, a, _mm256_set1_epi16(1))
#define AT_ONCE         3
#include "kern/x86/gemm_int_256.h"

#include "kern/x86/gemm_u_impl.h"
