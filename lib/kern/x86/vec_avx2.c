/* SPDX-License-Identifier: MIT */
/* vec_avx2.c - rows of f32 for AVX2 and FMA */
#include "config.h"
#include "base/compiler.h"
#include "kern/codec.h"
#include "kern/vec.h"
#include "kern/x86/vf_avx2.h"

#define FN(name) name##_avx2

#include "kern/x86/vec_impl.h"

/* Vectors of a row that a scan keeps in registers. */
enum { SCAN_VECS = 2 };

#include "kern/x86/recur_impl.h"
