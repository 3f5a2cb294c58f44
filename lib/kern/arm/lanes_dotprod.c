/* SPDX-License-Identifier: MIT */
/* lanes_dotprod.c - blocks of rows to lanes of signed bytes, for SDOT */
#include "config.h"
#include "base/compiler.h"
#include "kern/simd/rows_256.h"

#define LANES_SIGNED dotprod
#include "kern/simd/lanes_impl.h"
