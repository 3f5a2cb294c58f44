/* SPDX-License-Identifier: MIT */
/* deq_iq_avx2.c - decoders of the codebook types */
#include "config.h"
#include "kern/x86/floats.h"
#include "kern/x86/blocks_iq.h"

DECODER(iq1_s)
DECODER(iq1_m)
DECODER(iq2_xxs)
DECODER(iq2_xs)
DECODER(iq2_s)
DECODER(iq3_xxs)
DECODER(iq3_s)
