/* SPDX-License-Identifier: MIT */
/* deq_256.c - decoders of blocks */
#include "config.h"
#include "kern/simd/floats.h"
#include "kern/simd/blocks_fork.h"
#include "kern/simd/blocks_iq.h"
#include "kern/simd/blocks_low.h"
#include "kern/simd/row_256.h"

DECODER(q4_0)
DECODER(q4_1)
DECODER(q5_0)
DECODER(q5_1)
DECODER(q8_0)
DECODER(q8_1)
DECODER(iq4_nl)
DECODER(q2_k)
DECODER(q3_k)
DECODER(q4_k)
DECODER(q5_k)
DECODER(q6_k)
DECODER(q8_k)
DECODER(iq4_xs)
DECODER(tq2_0)
DECODER(tq1_0)
DECODER(q1_0)
DECODER(q2_0)
DECODER(mxfp4)
DECODER(nvfp4)
DECODER(iq1_s)
DECODER(iq1_m)
DECODER(iq2_xxs)
DECODER(iq2_xs)
DECODER(iq2_s)
DECODER(iq3_xxs)
DECODER(iq3_s)
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
