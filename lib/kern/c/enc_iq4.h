/* SPDX-License-Identifier: MIT */
/* enc_iq4.h - scales of IQ4_XS, for encoders of all levels */
#ifndef GG_KERN_C_ENC_IQ4_H
#define GG_KERN_C_ENC_IQ4_H

#include "kern/c/block_io.h"
#include "kern/c/round.h"

/* Scale of part s of a block, -32 .. 31. */
static inline int gg_kern_iq4_xs_scale(const struct gg_block_iq4_xs *b, int s)
{
    int lo = b->scales_l[s / 2] >> 4 * (s & 1) & 15;
    return (lo | (gg_bytes_load16le(&b->scales_h) >> 2 * s & 3) << 4) - 32;
}

/* The scales of eight parts as integers of six bits, the one of largest
 * magnitude -32; b is zero before. Returns the block's scale before it was
 * rounded to f16: elements are rounded by that one, as in ggml. */
static inline float gg_kern_iq4_xs_scales(const float scale[8],
                                          struct gg_block_iq4_xs *b)
{
    float max = gg_kern_max_abs_signed(scale, 8);
    unsigned high = 0;
    float d = -max / 32, inv = d != 0 ? 1 / d : 0;
    for (int s = 0; s < 8; s++) {
        int l = gg_kern_clamp(gg_kern_nearest(inv * scale[s]), -32, 31) + 32;
        b->scales_l[s / 2] |= (uint8_t)((l & 15) << 4 * (s & 1));
        high |= (unsigned)l >> 4 << 2 * s;
    }
    gg_bytes_store16le(&b->scales_h, (uint16_t)high);
    gg_kern_put_half(&b->d, d);
    return d;
}

#endif
