/* SPDX-License-Identifier: MIT */
/* vec_avx512.c - rows of f32 for AVX-512 */
#include "config.h"
#include "base/compiler.h"
#include "kern/codec.h"
#include "kern/vec.h"
#include "kern/x86/vf_avx512.h"

#define FN(name) name##_avx512

#include "kern/simd/vec_impl.h"

/* Vectors of a row that a scan keeps in registers. */
enum { SCAN_VECS = 4 };

#include "kern/simd/recur_impl.h"
