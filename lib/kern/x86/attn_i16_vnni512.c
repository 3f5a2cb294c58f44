/* SPDX-License-Identifier: MIT */
/* attn_i16_vnni512.c - attention in integers for AVX-512 with VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/x86/dp.h"

#define TILE           gg_kern_attn_i16_tile_vnni512
#define VI_DP(c, a, b) GG_DP_DPWSSD_512(c, a, b)
#include "kern/x86/attn_i16_512.h"
