/* SPDX-License-Identifier: MIT */
/* gemm_u_256.c - bytes of up to 7 bits for 256 bits without VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_i8.h"
#include "kern/simd/dp_256.h"

#define LEVEL           256
#define VI_MUL(c, a, b) GG_DP_MUL_BYTES_256(c, a, b)
#define VI_ADD(c, a, b) GG_DP_ADD_BYTES_256(c, a, b)
#define VI_WIDEN(c, a)  GG_DP_PAIRS_256(c, a)
#define AT_ONCE         3
#include "kern/simd/gemm_int_256.h"

#include "kern/simd/gemm_u_impl.h"
