/* SPDX-License-Identifier: MIT */
/* enc_search_256.c - the searches of enc_search.h for 256 bits */
#include "config.h"
#include "kern/simd/enc_search.h"
#include "kern/simd/pair_256.h"

#define FN(name) name##_256
#include "kern/simd/enc_search_impl.h"
