/* SPDX-License-Identifier: MIT */
/* deq_q32_avx2.c - decoders of the types with blocks of 32 */
#include "config.h"
#include "kern/x86/floats.h"
#include "kern/x86/blocks_q32.h"

DECODER(q4_0)
DECODER(q4_1)
DECODER(q5_0)
DECODER(q5_1)
DECODER(q8_0)
DECODER(q8_1)
DECODER(iq4_nl)
