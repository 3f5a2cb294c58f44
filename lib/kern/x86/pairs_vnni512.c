/* SPDX-License-Identifier: MIT */
/* pairs_vnni512.c - products of pairs for AVX-512 with VNNI */
#include "config.h"
#include "base/compiler.h"
#include "kern/x86/dp.h"

#define TILE           gg_kern_pairs_tile_vnni512
#define VI_DP(c, a, b) GG_X86_DPWSSD_512(c, a, b)
#include "kern/x86/pairs_512.h"
