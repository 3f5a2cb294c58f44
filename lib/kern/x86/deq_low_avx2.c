/* SPDX-License-Identifier: MIT */
/* deq_low_avx2.c - decoders of TQ1_0, Q1_0, Q2_0, MXFP4 and NVFP4 */
#include "config.h"
#include "kern/x86/floats.h"
#include "kern/x86/blocks_low.h"

DECODER(tq1_0)
DECODER(q1_0)
DECODER(q2_0)
DECODER(mxfp4)
DECODER(nvfp4)
