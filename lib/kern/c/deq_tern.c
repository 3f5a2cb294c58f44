/* SPDX-License-Identifier: MIT */
/* deq_tern.c - reference decoders of one and two bits and ternary digits */
#include "config.h"
#include "kern/codec.h"
#include "kern/c/block_io.h"

/* Digit k of a byte that holds five ternary digits: the byte is the number
 * 0.ddddd in base 3, times 256 and rounded up, so multiplying by three brings
 * out one digit after the other. */
static float ternary_digit(uint8_t v, int k, float d)
{
    static const uint8_t pow3[5] = { 1, 3, 9, 27, 81 };
    int digit = (uint8_t)(v * pow3[k]) * 3 >> 8;
    return (float)(digit - 1) * d;
}

void gg_kern_decode_tq1_0_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_tq1_0 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (int k = 0; k < 5; k++)
            for (int j = 0; j < 32; j++)
                *dst++ = ternary_digit(b.qs[j], k, d);
        for (int k = 0; k < 5; k++)
            for (int j = 32; j < 48; j++)
                *dst++ = ternary_digit(b.qs[j], k, d);
        for (int k = 0; k < 4; k++)
            for (int j = 0; j < 4; j++)
                *dst++ = ternary_digit(b.qh[j], k, d);
    }
}

void gg_kern_decode_tq2_0_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_tq2_0 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (unsigned e = 0; e < 256; e++)
            dst[e] = (float)((int)gg_kern_pair_of(b.qs, e) - 1) * d;
    }
}

void gg_kern_decode_q1_0_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 128; i++, dst += 128) {
        struct gg_block_q1_0 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (int e = 0; e < 128; e++)
            dst[e] = b.qs[e / 8] >> e % 8 & 1 ? d : -d;
    }
}

void gg_kern_decode_q2_0_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 64; i++, dst += 64) {
        struct gg_block_q2_0 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (int e = 0; e < 64; e++)
            dst[e] = (float)((b.qs[e / 4] >> 2 * (e % 4) & 3) - 1) * d;
    }
}
