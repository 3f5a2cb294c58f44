/* SPDX-License-Identifier: MIT */
/* enc_search_avx512.c - the searches of enc_search.h for AVX-512 */
#include "config.h"
#include "kern/simd/enc_search.h"
#include "kern/x86/pair_avx512.h"

#define FN(name) name##_avx512
#include "kern/simd/enc_search_impl.h"
