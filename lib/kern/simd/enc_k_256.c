/* SPDX-License-Identifier: MIT */
/* enc_k_256.c - encoders of Q2_K to Q6_K for 256 bits */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/enc_k.h"
#include "kern/simd/enc_search.h"
#include "kern/simd/v256.h"

#define FN(name) name##_256
#include "kern/simd/enc_k_impl.h"
#include "kern/simd/enc_ksym_impl.h"
