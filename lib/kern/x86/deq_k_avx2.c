/* SPDX-License-Identifier: MIT */
/* deq_k_avx2.c - decoders of 256-element blocks in sub-blocks */
#include "config.h"
#include "kern/x86/floats.h"
#include "kern/x86/blocks_k.h"

DECODER(q2_k)
DECODER(q3_k)
DECODER(q4_k)
DECODER(q5_k)
DECODER(q6_k)
DECODER(q8_k)
DECODER(iq4_xs)
DECODER(tq2_0)
