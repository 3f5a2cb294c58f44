/* SPDX-License-Identifier: MIT */
/* pairs_avxvnni.c - products of pairs for AVX2 with AVX-VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/x86/dp.h"

#define TILE           gg_kern_pairs_tile_avxvnni
#define VI_DP(c, a, b) GG_X86_DPWSSD_256(c, a, b)
#include "kern/x86/pairs_256.h"
