/* SPDX-License-Identifier: MIT */
/* deq_fork.c - reference decoders of the types that only ik_llama.cpp writes
 *
 * A sub-block's scale is the block's or the row's d times a small integer,
 * rounded to f32; an element is that times the level of its code, to which a
 * shifted sub-block adds a constant. Source: the decoders of iqk_quantize.cpp
 * and, for Q6_0, of ggml-quants.c (ik_llama.cpp commit 8337e4c).
 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"

static const int8_t level2[4] = GG_IQ2K_LEVELS;
static const int8_t level3[8] = GG_IQ3K_LEVELS;
static const int8_t level4[16] = GG_IQ4_LEVELS;
static const int8_t level5[32] = GG_IQ5K_LEVELS;

/* Bit e / 32 of byte e % 32: the code's highest. */
static unsigned bit_of(const uint8_t qh[32], unsigned e)
{
    return qh[e % 32] >> e / 32 & 1u;
}

/* Nibbles of 64 elements in 32 bytes, and of 32 in 16. */
static unsigned nibble_of(const uint8_t *qs, unsigned e)
{
    return qs[e / 64 * 32 + e % 32] >> 4 * (e / 32 & 1) & 15u;
}

static unsigned short_nibble_of(const uint8_t *qs, unsigned e)
{
    return qs[e / 32 * 16 + e % 16] >> 4 * (e / 16 & 1) & 15u;
}

/* Bit s of a word of flags: is the sub-block shifted? */
static int shift_of(const void *flags, unsigned s, int shift)
{
    return gg_bytes_load16le(flags) >> s & 1 ? shift : 0;
}

void gg_kern_decode_q6_0_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 32; i++, dst += 32) {
        struct gg_block_q6_0 b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (int j = 0; j < 16; j++) {
            int h = b.qh[j % 8] >> 4 * (j / 8);
            int lo = (b.qs[j] & 15) | (h & 3) << 4;
            int hi = b.qs[j] >> 4 | (h >> 2 & 3) << 4;
            dst[j] = (float)(lo - 32) * d;
            dst[j + 16] = (float)(hi - 32) * d;
        }
    }
}

/* Nibble i of a list. */
static int nibble_at(const uint8_t *p, unsigned i)
{
    return p[i / 2] >> 4 * (i & 1) & 15;
}

GG_DECODER_256(iq2_k, 16, 0, gg_kern_get_half(&b.d),
               nibble_at(b.scales, s) - 8,
               level2[gg_kern_pair_of(b.qs, e)] +
                   shift_of(&b.extra, s, GG_IQ2K_SHIFT))

/* Bit s of scales_h is the sign of a scale. */
static int scale_iq3_k(const struct gg_block_iq3_k *b, unsigned s)
{
    int sc = 2 * nibble_at(b->scales_l, s) + 1;
    return gg_bytes_load16le(&b->scales_h) >> s & 1 ? -sc : sc;
}
GG_DECODER_256(iq3_k, 16, 0, gg_kern_get_half(&b.d), scale_iq3_k(&b, s),
               level3[gg_kern_pair_of(b.qs, e) | bit_of(b.qh, e) << 2] +
                   shift_of(&b.extra, s, GG_IQ3K_SHIFT))

GG_DECODER_256(iq4_k, 16, 0, gg_kern_get_half(&b.d),
               gg_kern_iq4k_scale(b.scales_l, b.scales_h, s),
               level4[short_nibble_of(b.qs, e)] +
                   shift_of(&b.extra, s, GG_IQ4K_SHIFT))

GG_DECODER_256(iq5_k, 16, 0, gg_kern_get_half(&b.d),
               gg_kern_iq4k_scale(b.scales_l, b.scales_h, s),
               level5[nibble_of(b.qs, e) | bit_of(b.qh, e) << 4] +
                   shift_of(&b.extra, s, GG_IQ5K_SHIFT))

/* The levels are not rounded: ik_llama.cpp's products use the nearest
 * integers of them, its decoder the cubic itself. */
static float level6(unsigned q)
{
    return GG_IQ6K_CUBIC((float)q);
}
GG_DECODER_256(iq6_k, 16, 0, gg_kern_get_half(&b.d), b.scales[s],
               level6(nibble_of(b.qs, e) | gg_kern_pair_of(b.qh, e) << 4) +
                   (float)shift_of(&b.extra, s, GG_IQ6K_SHIFT))

/* --------------------------------------------- d in the row's header --- */

static float row_scale(const void *src)
{
    return gg_bytes_f32_from_bits(gg_bytes_load32le(src));
}

/* The scale of a byte, -127 .. 127 and odd, whose lowest bit is the shift. */
static int odd_scale(unsigned byte)
{
    return (int)(byte & 254) - 127;
}

GG_DECODER_256(iq4_ks, 32, sizeof(float), row_scale(src),
               odd_scale(b.scales[s]),
               level4[short_nibble_of(b.qs, e)] +
                   (b.scales[s] & 1 ? GG_IQ4K_SHIFT : 0))

GG_DECODER_256(iq5_ks, 32, sizeof(float), row_scale(src),
               odd_scale(b.scales[s]),
               level5[nibble_of(b.qs, e) | bit_of(b.qh, e) << 4] +
                   (b.scales[s] & 1 ? GG_IQ5K_SHIFT : 0))

/* Eight words of 16 bits are 32 elements. Bit 0 of word k is bit k of the
 * scale's byte; the other 15 bits, exclusive-or themselves shifted down by
 * one, are nibbles as in IQ4_KS: an even number of bits is 1 in each word. */
void gg_kern_decode_iq4_kss_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(float);
    float d = row_scale(src);
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq4_kss b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned s = 0; s < 8; s++) {
            unsigned byte = 0;
            uint8_t qs[16];
            for (unsigned k = 0; k < 8; k++) {
                unsigned w = gg_bytes_load16le(&b.qs[8 * s + k]);
                byte |= (w & 1) << k;
                w &= 0xfffe;
                gg_bytes_store16le(qs + 2 * k, (uint16_t)(w ^ w >> 1));
            }
            float scale = d * (float)odd_scale(byte);
            int shift = byte & 1 ? GG_IQ4K_SHIFT : 0;
            for (unsigned e = 0; e < 32; e++)
                dst[32 * s + e] =
                    scale * (float)(level4[short_nibble_of(qs, e)] + shift);
        }
    }
}

GG_DECODER_256(iq2_ks, 32, sizeof(uint16_t), gg_kern_get_half(src),
               (nibble_at(b.scales, s) | shift_of(&b.extra, 8 + s, 16)) - 16,
               level2[gg_kern_pair_of(b.qs, e)] +
                   shift_of(&b.extra, s, GG_IQ2K_SHIFT))

/* Low nibbles belong to sub-blocks 0-3, high nibbles to 4-7. */
GG_DECODER_256(iq3_ks, 32, sizeof(uint16_t), gg_kern_get_half(src),
               ((b.scales[s % 4] >> 4 * (s / 4) & 15) |
                shift_of(&b.extra, s, 16)) -
                   16,
               level3[gg_kern_pair_of(b.qs, e) | bit_of(b.qh, e) << 2] +
                   shift_of(&b.extra, 8 + s, GG_IQ3K_SHIFT))

/* Each code is a pair of levels. */
void gg_kern_decode_iq2_kl_c(const void *src, float *dst, size_t n)
{
    static const int8_t pair[32][2] = GG_IQ2KL_PAIRS;
    const uint8_t *blocks = (const uint8_t *)src + sizeof(uint16_t);
    const float d = gg_kern_get_half(src);
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq2_kl b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned s = 0; s < 8; s++) {
            int sc = b.scales_l[s % 4] >> 4 * (s / 4) & 15;
            sc |= (gg_bytes_load16le(&b.scales_h) >> 2 * s & 3) << 4;
            const float scale = d * (float)(sc - 32);
            for (unsigned j = 0; j < 16; j++) {
                unsigned q = b.qs[s / 2 * 16 + j] >> 4 * (s & 1) & 15u;
                q |= (b.qh[j] >> s & 1u) << 4;
                dst[32 * s + 2 * j] = scale * (float)pair[q][0];
                dst[32 * s + 2 * j + 1] = scale * (float)pair[q][1];
            }
        }
    }
}

/* The header's second number, the sum of the row's codes, serves products. */
void gg_kern_decode_q8_kv_c(const void *src, float *dst, size_t n)
{
    const uint8_t *q = (const uint8_t *)src + 2 * sizeof(float);
    const float d = row_scale(src);
    for (size_t i = 0; i < n; i++)
        dst[i] = d * (float)(int8_t)q[i];
}
