/* SPDX-License-Identifier: MIT */
/* neon.h - vectors of 256 bits as x86 has them, of two NEON registers each
 *
 * Kernels for 256 bits are written in the intrinsics of AVX2. On AArch64 the
 * same names are functions of neon_ints.h and neon_floats.h, so that the same
 * sources compile. Each function gives the bits that x86 gives, also for zeros
 * of both signs and numbers out of range; only a NaN that an operation creates
 * may have another sign. tests/kern/check-m256 compares. Only names that
 * kernels use are there.
 * Sources: Intel Intrinsics Guide; Arm C Language Extensions (ACLE).
 */
#ifndef GG_KERN_ARM_NEON_H
#define GG_KERN_ARM_NEON_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef uint8x16_t __m128i;
typedef float32x4_t __m128;
typedef float64x2_t __m128d;
typedef struct {
    uint8x16_t lo, hi;
} __m256i;
typedef struct {
    float32x4_t lo, hi;
} __m256;
typedef struct {
    float64x2_t lo, hi;
} __m256d;

#define M256_INLINE                                                           \
    static inline __attribute__((__always_inline__, __unused__))

#include "kern/arm/neon_ints.h"

#include "kern/arm/neon_floats.h"

#include "kern/arm/neon_ops.h"

#endif
