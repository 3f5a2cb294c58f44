/* deq_q32.c - reference decoders of the types with blocks of 32
 *
 * A byte holds element j in its low and element j + 16 in its high nibble.
 */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"

void gg_decode_q4_0_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        struct gg_block_q4_0 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_get_half(&b.d);
        for (int j = 0; j < 16; j++) {
            dst[j] = (float)((b.qs[j] & 15) - 8) * d;
            dst[j + 16] = (float)((b.qs[j] >> 4) - 8) * d;
        }
    }
}

void gg_decode_q8_0_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        struct gg_block_q8_0 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_get_half(&b.d);
        for (int j = 0; j < 32; j++)
            dst[j] = (float)b.qs[j] * d;
    }
}
