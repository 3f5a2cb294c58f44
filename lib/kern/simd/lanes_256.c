/* SPDX-License-Identifier: MIT */
/* lanes_256.c - blocks of rows to lanes of 256 bits */
#include "config.h"
#include "base/compiler.h"
#include "kern/simd/rows_256.h"

#include "kern/simd/lanes_impl.h"
