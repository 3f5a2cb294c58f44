/* SPDX-License-Identifier: MIT */
/* vec_256.c - rows of f32 for 256 bits */
#include "config.h"
#include "base/compiler.h"
#include "kern/codec.h"
#include "kern/vec.h"
#include "kern/simd/vf_256.h"

#define FN(name) name##_256

#include "kern/simd/vec_impl.h"

/* Vectors of a row that a scan keeps in registers. */
enum { SCAN_VECS = 2 };

#include "kern/simd/recur_impl.h"
