/* SPDX-License-Identifier: MIT */
/* gemm_amx.c - products of bytes and of bf16 by the tile registers of AMX */
#include "config.h"
#include "kern/x86/amx.h"
#include "kern/x86/dp.h"
#include "kern/x86/vi_512.h"

#define NAME  amx
#define LANES 16

/* To nearest, subnormal ones to 0. */
static inline void round_steps(unsigned short *to, const float *x, size_t n)
{
    for (size_t p = 0; p < 32; p += 16) {
        const size_t some = n > p ? n - p : 0;
        const __mmask16 in =
            (__mmask16)(some < 16 ? (1u << some) - 1 : 0xffff);
        __m256i half;
        GG_DP_TO_BF16(half, _mm512_maskz_loadu_ps(in, x + p));
        _mm256_storeu_si256((__m256i *)(void *)(to + p), half);
    }
}
#define ROUND_STEPS round_steps
#define PACK_PAIRS  gg_kern_bf16_pack_w_avx512bf16
#include "kern/x86/amx_impl.h"
