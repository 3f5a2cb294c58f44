/* SPDX-License-Identifier: MIT */
/* few_i8_avx512.c - few columns of bytes of up to 7 bits for AVX-512 */
#include "config.h"
#include "base/compiler.h"
#include "kern/few_columns.h"
#include "kern/x86/dp.h"
#include "kern/x86/gemm_int_512.h"
#include "kern/x86/rows_512.h"

#define LEVEL             avx512
#define VI_MUL(c, a, b)   GG_DP_MUL_BYTES_512(c, a, b)
#define VI_ADD(c, a, b)   GG_DP_ADD_BYTES_512(c, a, b)
#define VI_WIDEN(c, a)    GG_DP_WIDEN_512(c, a, _mm512_set1_epi16(1))
#define VI_SCALE(c, a, b) GG_DP_WIDEN_512(c, a, b)
#include "kern/simd/few_i8_impl.h"
