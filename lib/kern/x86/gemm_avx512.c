/* SPDX-License-Identifier: MIT */
/* gemm_avx512.c - products for AVX-512 */
#include "config.h"
#include "base/compiler.h"
#include "kern/gemm_exact.h"

#include <immintrin.h>

#define vf_fma _mm512_fmadd_ps
#define TILE   gg_kern_gemm_tile_avx512
#include "kern/x86/gemm_512.h"

GG_GEMM_EXACT_PACKERS(avx512)
