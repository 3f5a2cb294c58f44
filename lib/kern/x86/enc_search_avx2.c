/* SPDX-License-Identifier: MIT */
/* enc_search_avx2.c - the searches of enc_search.h for AVX2 */
#include "config.h"
#include "kern/x86/enc_search.h"
#include "kern/x86/pair_avx2.h"

#define FN(name) name##_avx2
#include "kern/x86/enc_search_impl.h"
