/* SPDX-License-Identifier: MIT */
/* m256.h - the intrinsics in which kernels for 256 bits are written
 *
 * These are AVX2's. AArch64 has them from kern/arm/neon.h. Operations that each
 * processor does best by its own instructions are in kern/x86/avx2_ops.h.
 */
#ifndef GG_KERN_SIMD_M256_H
#define GG_KERN_SIMD_M256_H

#ifdef __aarch64__
#include "kern/arm/neon.h"
#else
#include "kern/x86/avx2_ops.h"
#endif

#endif
