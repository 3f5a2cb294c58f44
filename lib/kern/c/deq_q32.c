/* SPDX-License-Identifier: MIT */
/* deq_q32.c - reference decoders of the types with blocks of 32
 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"

GG_DECODER_NIBBLES(q4_0, const float d = gg_kern_get_half(&b.d),
                   (float)(q - 8) * d)

GG_DECODER_NIBBLES(q4_1, const float d = gg_kern_get_half(&b.d);
                   const float m = gg_kern_get_half(&b.m), ((float)q * d + m))

/* Fifth bits: bit e of the 32 is element e's. */
static int fifth_bit(uint32_t qh, int e)
{
    return (int)(qh >> e & 1) << 4;
}

GG_DECODER_NIBBLES(q5_0, const float d = gg_kern_get_half(&b.d);
                   const uint32_t qh = gg_bytes_load32le(b.qh),
                   (float)((q | fifth_bit(qh, e)) - 16) * d)

GG_DECODER_NIBBLES(q5_1, const float d = gg_kern_get_half(&b.d);
                   const float m = gg_kern_get_half(&b.m);
                   const uint32_t qh = gg_bytes_load32le(b.qh),
                   (float)(q | fifth_bit(qh, e)) * d + m)

static const int8_t level4[16] = GG_IQ4_LEVELS;
GG_DECODER_NIBBLES(iq4_nl, const float d = gg_kern_get_half(&b.d),
                   (d * (float)level4[q]))

#define DECODER_BYTES(NAME)                                                   \
    void gg_kern_decode_##NAME##_c(const void *src, float *dst, size_t n)     \
    {                                                                         \
        for (size_t i = 0; i < n / 32; i++, dst += 32) {                      \
            struct gg_block_##NAME b;                                         \
            GG_GET_BLOCK(b, src, i);                                          \
            const float d = gg_kern_get_half(&b.d);                           \
            for (int j = 0; j < 32; j++)                                      \
                dst[j] = (float)b.qs[j] * d;                                  \
        }                                                                     \
    }
DECODER_BYTES(q8_0)
DECODER_BYTES(q8_1)
