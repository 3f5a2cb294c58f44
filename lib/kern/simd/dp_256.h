/* SPDX-License-Identifier: MIT */
/* dp_256.h - operations that multiply integers and add to sums, in vectors of
 * 256 bits: GG_DP_MADDWD_256 and kin */
#ifndef GG_KERN_SIMD_DP_256_H
#define GG_KERN_SIMD_DP_256_H

#ifdef __aarch64__
#include "kern/arm/neon_dp.h"
#else
#include "kern/x86/dp.h"
#endif

#endif
