/* SPDX-License-Identifier: MIT */
/* deq_k.c - reference decoders of the types with blocks of 256 in sub-blocks
 *
 * A sub-block's scale is the block's f16 times a small integer, rounded to
 * f32; an element is that times its code, less the sub-block's minimum.
 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"

/* A block of Q4_K or Q5_K: 32 bytes hold the nibbles of sub-block s, which is
 * even, and above them those of s + 1; the fifth bit of Q5_K (qh, else NULL) is
 * bit s of byte j. */
static inline void put_k4(float *dst, float d, float dmin,
                          const uint8_t scales[12], const uint8_t qs[128],
                          const uint8_t *qh)
{
    for (unsigned s = 0; s < 8; s++) {
        float scale = d * (float)gg_kern_k4_scale(scales, s);
        float min = dmin * (float)gg_kern_k4_min(scales, s);
        const uint8_t *q = qs + s / 2 * 32;
        for (int j = 0; j < 32; j++) {
            int lo = q[j] >> 4 * (s & 1) & 15, hi = qh ? qh[j] >> s & 1 : 0;
            dst[32 * s + j] = scale * (float)(lo | hi << 4) - min;
        }
    }
}

void gg_kern_decode_q4_k_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_q4_k b;
        GG_GET_BLOCK(b, src, i);
        put_k4(dst, gg_kern_get_half(&b.d), gg_kern_get_half(&b.dmin),
               b.scales, b.qs, NULL);
    }
}

void gg_kern_decode_q5_k_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_q5_k b;
        GG_GET_BLOCK(b, src, i);
        put_k4(dst, gg_kern_get_half(&b.d), gg_kern_get_half(&b.dmin),
               b.scales, b.qs, b.qh);
    }
}

/* Each half of 128 elements has 64 bytes of low nibbles and 32 of high pairs;
 * its quarter r of 32 elements is nibble r / 2 of the 32 bytes r % 2, and pair
 * r. */
static int code_q6_k(const struct gg_block_q6_k *b, unsigned e)
{
    unsigned h = e / 128, r = e / 32 % 4, j = e % 32;
    int lo = b->ql[64 * h + r % 2 * 32 + j] >> 4 * (r / 2) & 15;
    return lo | (b->qh[32 * h + j] >> 2 * r & 3) << 4;
}
GG_DECODER_256(q6_k, 16, 0, gg_kern_get_half(&b.d), b.scales[s],
               code_q6_k(&b, e) - 32)

void gg_kern_decode_q2_k_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_q2_k b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d), dmin = gg_kern_get_half(&b.dmin);
        for (unsigned s = 0; s < 16; s++) {
            float scale = d * (float)(b.scales[s] & 15);
            float min = dmin * (float)(b.scales[s] >> 4);
            for (unsigned e = 16 * s; e < 16 * s + 16; e++)
                dst[e] = scale * (float)gg_kern_pair_of(b.qs, e) - min;
        }
    }
}

/* The third bit of element e is bit e / 32 of byte e % 32. */
GG_DECODER_256(q3_k, 16, 0, gg_kern_get_half(&b.d),
               gg_kern_k3_scale(b.scales, s),
               (int)gg_kern_pair_of(b.qs, e) -
                   4 * !(b.hmask[e % 32] >> e / 32 & 1))

void gg_kern_decode_q8_k_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_q8_k b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_bytes_f32_from_bits(gg_bytes_load32le(&b.d));
        for (int j = 0; j < 256; j++)
            dst[j] = d * (float)b.qs[j];
    }
}

void gg_kern_decode_iq4_xs_c(const void *src, float *dst, size_t n)
{
    static const int8_t level[16] = GG_IQ4_LEVELS;
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq4_xs b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        unsigned high = gg_bytes_load16le(&b.scales_h);
        for (unsigned s = 0; s < 8; s++) {
            int lo = b.scales_l[s / 2] >> 4 * (s & 1) & 15;
            int hi = high >> 2 * s & 3;
            float scale = d * (float)((lo | hi << 4) - 32);
            const uint8_t *q = b.qs + 16 * s;
            for (int j = 0; j < 16; j++) {
                dst[32 * s + j] = scale * (float)level[q[j] & 15];
                dst[32 * s + j + 16] = scale * (float)level[q[j] >> 4];
            }
        }
    }
}
