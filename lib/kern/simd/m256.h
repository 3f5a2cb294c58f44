/* SPDX-License-Identifier: MIT */
/* m256.h - the intrinsics in which kernels for 256 bits are written
 *
 * These are AVX2's. AArch64 has them from kern/arm/neon.h.
 */
#ifndef GG_KERN_SIMD_M256_H
#define GG_KERN_SIMD_M256_H

#ifdef __aarch64__
#include "kern/arm/neon.h"
#else
#include <immintrin.h>
#endif

#endif
