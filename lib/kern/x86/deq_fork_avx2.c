/* SPDX-License-Identifier: MIT */
/* deq_fork_avx2.c - decoders of ik_llama.cpp's types */
#include "config.h"
#include "kern/x86/floats.h"
#include "kern/x86/blocks_fork.h"

DECODER(q6_0)
DECODER(iq2_k)
DECODER(iq3_k)
DECODER(iq4_k)
DECODER(iq5_k)
DECODER(iq6_k)
DECODER(iq4_ks)
DECODER(iq5_ks)
DECODER(iq4_kss)
DECODER(iq2_ks)
DECODER(iq3_ks)
