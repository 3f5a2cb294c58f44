/* SPDX-License-Identifier: MIT */
/* deq_fp4.c - reference decoders of MXFP4 and NVFP4 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"
#include "kern/c/fp4.h"

static const int8_t level[16] = GG_FP4_LEVELS;

GG_DECODER_NIBBLES(mxfp4, const float d = gg_kern_e8m0_half(b.e),
                   (float)level[q] * d)

void gg_kern_decode_nvfp4_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 64; i++, dst += 64) {
        struct gg_block_nvfp4 b;
        GG_GET_BLOCK(b, src, i);
        for (int s = 0; s < 4; s++) {
            float d = gg_kern_ue4m3_half(b.d[s]);
            const uint8_t *q = b.qs + 8 * s;
            for (int j = 0; j < 8; j++) {
                dst[16 * s + j] = (float)level[q[j] & 15] * d;
                dst[16 * s + j + 8] = (float)level[q[j] >> 4] * d;
            }
        }
    }
}
