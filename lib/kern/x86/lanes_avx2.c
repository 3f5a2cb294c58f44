/* SPDX-License-Identifier: MIT */
/* lanes_avx2.c - blocks of rows to lanes of 256 bits */
#include "config.h"
#include "base/compiler.h"
#include "kern/x86/rows_256.h"

#include "kern/x86/lanes_impl.h"
