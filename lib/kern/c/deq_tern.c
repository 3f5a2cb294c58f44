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

/* Digit k of a byte that holds five ternary digits, the first the lowest power
 * of three to multiply by: 81. (u + u / 2) / 128 is the digit of the fraction
 * u / 256. */
static float bitnet_digit(uint8_t v, unsigned k, float d)
{
    static const uint8_t pow3[5] = { 81, 27, 9, 3, 1 };
    unsigned u = (uint8_t)(v * pow3[k]);
    return d * (float)((int)((u + (u >> 1)) >> 7) - 1);
}

/* Each group of 16 elements: five digits in each of three bytes, and one in
 * extra. ik_llama.cpp's decoder takes the row's header for codes and multiplies
 * by no scale; its products do, as here. */
void gg_kern_decode_iq1_bn_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(uint16_t);
    const float d = gg_kern_get_half(src);
    for (size_t i = 0; i < n / 64; i++) {
        struct gg_block_iq1_bn b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned g = 0; g < 4; g++) {
            for (unsigned e = 0; e < 15; e++)
                *dst++ = bitnet_digit(b.ql[3 * g + e / 5], e % 5, d);
            *dst++ = bitnet_digit(b.extra, g, d);
        }
    }
}

void gg_kern_decode_iq2_bn_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(float);
    const float d = gg_bytes_f32_from_bits(gg_bytes_load32le(src));
    for (size_t i = 0; i < n / 64; i++, dst += 64) {
        struct gg_block_iq2_bn b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned e = 0; e < 64; e++)
            dst[e] = d * (float)((b.qs[e % 16] >> 2 * (e / 16) & 3) - 1);
    }
}
