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

void gg_kern_decode_iq2_k_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq2_k b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (unsigned s = 0; s < 16; s++) {
            int sc = (b.scales[s / 2] >> 4 * (s & 1) & 15) - 8;
            int shift = shift_of(&b.extra, s, GG_IQ2K_SHIFT);
            float scale = d * (float)sc;
            for (unsigned e = 16 * s; e < 16 * s + 16; e++)
                dst[e] =
                    scale * (float)(level2[gg_kern_pair_of(b.qs, e)] + shift);
        }
    }
}

void gg_kern_decode_iq3_k_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq3_k b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        unsigned minus = gg_bytes_load16le(&b.scales_h);
        for (unsigned s = 0; s < 16; s++) {
            int sc = 2 * (b.scales_l[s / 2] >> 4 * (s & 1) & 15) + 1;
            int shift = shift_of(&b.extra, s, GG_IQ3K_SHIFT);
            float scale = d * (float)(minus >> s & 1 ? -sc : sc);
            for (unsigned e = 16 * s; e < 16 * s + 16; e++) {
                unsigned q = gg_kern_pair_of(b.qs, e) | bit_of(b.qh, e) << 2;
                dst[e] = scale * (float)(level3[q] + shift);
            }
        }
    }
}

void gg_kern_decode_iq4_k_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq4_k b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (unsigned s = 0; s < 16; s++) {
            int shift = shift_of(&b.extra, s, GG_IQ4K_SHIFT);
            float scale =
                d * (float)gg_kern_iq4k_scale(b.scales_l, b.scales_h, s);
            for (unsigned e = 16 * s; e < 16 * s + 16; e++)
                dst[e] =
                    scale * (float)(level4[short_nibble_of(b.qs, e)] + shift);
        }
    }
}

void gg_kern_decode_iq5_k_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq5_k b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (unsigned s = 0; s < 16; s++) {
            int shift = shift_of(&b.extra, s, GG_IQ5K_SHIFT);
            float scale =
                d * (float)gg_kern_iq4k_scale(b.scales_l, b.scales_h, s);
            for (unsigned e = 16 * s; e < 16 * s + 16; e++) {
                unsigned q = nibble_of(b.qs, e) | bit_of(b.qh, e) << 4;
                dst[e] = scale * (float)(level5[q] + shift);
            }
        }
    }
}

/* The levels are not rounded: ik_llama.cpp's products use the nearest
 * integers of them, its decoder the cubic itself. */
void gg_kern_decode_iq6_k_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq6_k b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (unsigned s = 0; s < 16; s++) {
            float shift = (float)shift_of(&b.extra, s, GG_IQ6K_SHIFT);
            float scale = d * (float)b.scales[s];
            for (unsigned e = 16 * s; e < 16 * s + 16; e++) {
                float q = (float)(nibble_of(b.qs, e) | gg_kern_pair_of(b.qh, e)
                                                           << 4);
                dst[e] = scale * (GG_IQ6K_CUBIC(q) + shift);
            }
        }
    }
}

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

void gg_kern_decode_iq4_ks_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(float);
    float d = row_scale(src);
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq4_ks b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned s = 0; s < 8; s++) {
            float scale = d * (float)odd_scale(b.scales[s]);
            int shift = b.scales[s] & 1 ? GG_IQ4K_SHIFT : 0;
            for (unsigned e = 32 * s; e < 32 * s + 32; e++)
                dst[e] =
                    scale * (float)(level4[short_nibble_of(b.qs, e)] + shift);
        }
    }
}

void gg_kern_decode_iq5_ks_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(float);
    float d = row_scale(src);
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq5_ks b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned s = 0; s < 8; s++) {
            float scale = d * (float)odd_scale(b.scales[s]);
            int shift = b.scales[s] & 1 ? GG_IQ5K_SHIFT : 0;
            for (unsigned e = 32 * s; e < 32 * s + 32; e++) {
                unsigned q = nibble_of(b.qs, e) | bit_of(b.qh, e) << 4;
                dst[e] = scale * (float)(level5[q] + shift);
            }
        }
    }
}

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

void gg_kern_decode_iq2_ks_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(uint16_t);
    float d = gg_kern_get_half(src);
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq2_ks b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned s = 0; s < 8; s++) {
            int sc = b.scales[s / 2] >> 4 * (s & 1) & 15;
            sc |= shift_of(&b.extra, 8 + s, 16);
            int shift = shift_of(&b.extra, s, GG_IQ2K_SHIFT);
            float scale = d * (float)(sc - 16);
            for (unsigned e = 32 * s; e < 32 * s + 32; e++)
                dst[e] =
                    scale * (float)(level2[gg_kern_pair_of(b.qs, e)] + shift);
        }
    }
}

void gg_kern_decode_iq3_ks_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(uint16_t);
    float d = gg_kern_get_half(src);
    for (size_t i = 0; i < n / 256; i++, dst += 256) {
        struct gg_block_iq3_ks b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned s = 0; s < 8; s++) {
            /* unlike IQ2_KS: low nibbles 0-3, high ones 4-7 */
            int sc = b.scales[s % 4] >> 4 * (s / 4) & 15;
            sc |= shift_of(&b.extra, s, 16);
            int shift = shift_of(&b.extra, 8 + s, GG_IQ3K_SHIFT);
            float scale = d * (float)(sc - 16);
            for (unsigned e = 32 * s; e < 32 * s + 32; e++) {
                unsigned q = gg_kern_pair_of(b.qs, e) | bit_of(b.qh, e) << 2;
                dst[e] = scale * (float)(level3[q] + shift);
            }
        }
    }
}
