/* SPDX-License-Identifier: MIT */
/* lanes_avx512.c - blocks of rows to lanes of 512 bits */
#include "config.h"
#include "base/compiler.h"
#include "kern/x86/rows_512.h"

#include "kern/simd/lanes_impl.h"
