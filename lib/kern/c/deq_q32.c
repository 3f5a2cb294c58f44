/* SPDX-License-Identifier: MIT */
/* deq_q32.c - reference decoders of the types with blocks of 32
 *
 * A byte holds element j in its low and element j + 16 in its high nibble.
 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"

void gg_kern_decode_q4_0_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        struct gg_block_q4_0 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (int j = 0; j < 16; j++) {
            dst[j] = (float)((b.qs[j] & 15) - 8) * d;
            dst[j + 16] = (float)((b.qs[j] >> 4) - 8) * d;
        }
    }
}

void gg_kern_decode_q8_0_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        struct gg_block_q8_0 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (int j = 0; j < 32; j++)
            dst[j] = (float)b.qs[j] * d;
    }
}

/* w = d * q + m */
void gg_kern_decode_q4_1_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        struct gg_block_q4_1 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d), m = gg_kern_get_half(&b.m);
        for (int j = 0; j < 16; j++) {
            dst[j] = (float)(b.qs[j] & 15) * d + m;
            dst[j + 16] = (float)(b.qs[j] >> 4) * d + m;
        }
    }
}

/* Fifth bits: bit e of the 32 is element e's. */
static int fifth_bit(uint32_t qh, int e)
{
    return (int)(qh >> e & 1) << 4;
}

void gg_kern_decode_q5_0_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        struct gg_block_q5_0 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        uint32_t qh = gg_bytes_load32le(b.qh);
        for (int j = 0; j < 16; j++) {
            int lo = (b.qs[j] & 15) | fifth_bit(qh, j);
            int hi = b.qs[j] >> 4 | fifth_bit(qh, j + 16);
            dst[j] = (float)(lo - 16) * d;
            dst[j + 16] = (float)(hi - 16) * d;
        }
    }
}

void gg_kern_decode_q5_1_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        struct gg_block_q5_1 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d), m = gg_kern_get_half(&b.m);
        uint32_t qh = gg_bytes_load32le(b.qh);
        for (int j = 0; j < 16; j++) {
            int lo = (b.qs[j] & 15) | fifth_bit(qh, j);
            int hi = b.qs[j] >> 4 | fifth_bit(qh, j + 16);
            dst[j] = (float)lo * d + m;
            dst[j + 16] = (float)hi * d + m;
        }
    }
}

void gg_kern_decode_q8_1_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        struct gg_block_q8_1 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (int j = 0; j < 32; j++)
            dst[j] = (float)b.qs[j] * d;
    }
}

void gg_kern_decode_iq4_nl_c(const void *src, float *dst, size_t n)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        struct gg_block_iq4_nl b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (int j = 0; j < 16; j++) {
            dst[j] = d * (float)level[b.qs[j] & 15];
            dst[j + 16] = d * (float)level[b.qs[j] >> 4];
        }
    }
}
