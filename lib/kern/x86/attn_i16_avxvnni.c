/* SPDX-License-Identifier: MIT */
/* attn_i16_avxvnni.c - attention in integers for AVX2 with AVX-VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/x86/dp.h"

#define TILE           gg_kern_attn_i16_tile_avxvnni
#define VI_DP(c, a, b) GG_DP_DPWSSD_256(c, a, b)
#include "kern/simd/attn_i16_256.h"
