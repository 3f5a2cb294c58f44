/* SPDX-License-Identifier: MIT */
/* deq_trellis.c - reference decoders of IQ1_KT to IQ4_KT
 *
 * A code is the first state of a sequence of pseudo-random integers, the
 * elements of its group (dtype/iq_code.h). The scale of a sub-block of 32
 * elements is the row's d times a level of IQ4_NL, or times a small integer.
 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"

static const int8_t level4[16] = GG_IQ4_LEVELS;

static float row_scale(const void *src)
{
    return gg_bytes_f32_from_bits(gg_bytes_load32le(src));
}

/* Scale s (0..7): low nibbles belong to sub-blocks 0-3, high ones to 4-7. */
static unsigned scale_of(const uint8_t scales[4], unsigned s)
{
    return scales[s % 4] >> 4 * (s / 4) & 15u;
}

static void put_group(float *dst, unsigned n, float scale, uint32_t state)
{
    for (unsigned k = 0; k < n; k++)
        dst[k] = scale * (float)gg_dtype_trellis_next(&state);
}

void gg_kern_decode_iq1_kt_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(float);
    const float d = row_scale(src);
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq1_kt b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned s = 0; s < 8; s++) {
            const float scale = d * (float)level4[b.sh[s] & 15];
            for (unsigned g = 0; g < 4; g++, dst += 8) {
                uint32_t q = b.ql[4 * s + g];
                q |= (b.qh[s % 4 * 4 + g] >> 4 * (s / 4) & 15u) << 8;
                q |= (b.sh[s] >> (4 + g) & 1u) << 12;
                put_group(dst, 8, scale, q + GG_TRELLIS_OFFSET);
            }
        }
    }
}

void gg_kern_decode_iq2_kt_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(float);
    const float d = row_scale(src);
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq2_kt b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned g = 0; g < 32; g++, dst += 8) {
            const float scale = d * (float)level4[scale_of(b.scales, g / 4)];
            const uint32_t q = gg_bytes_load16le(&b.ql[g]);
            put_group(dst, 8, scale, q + GG_TRELLIS_OFFSET);
        }
    }
}

/* Magnitudes from the trellis; signs apart. */
void gg_kern_decode_iq3_kt_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(float);
    const float d = row_scale(src);
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq3_kt b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned g = 0; g < 32; g++) {
            const unsigned s = g / 4;
            const float scale = d * (float)scale_of(b.scales, s);
            uint32_t q = gg_bytes_load16le(&b.ql[g]) + GG_TRELLIS_OFFSET;
            for (unsigned k = 0; k < 8; k++) {
                const int v = gg_dtype_trellis_next(&q);
                const float y = scale * (float)(v < 0 ? -v : v);
                *dst++ = b.qh[g % 4 * 8 + k] >> s & 1 ? -y : y;
            }
        }
    }
}

void gg_kern_decode_iq4_kt_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(float);
    const float d = row_scale(src);
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq4_kt b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned g = 0; g < 64; g++, dst += 4) {
            const uint32_t sh = gg_bytes_load32le(&b.sh[g / 8]);
            const float scale = d * (float)((int)(sh >> 1 & 127) - 64);
            uint32_t q = b.ql[g];
            q |= (b.qh[g % 32] >> 4 * (g / 32) & 15u) << 8;
            q |= (sh >> (8 + g % 8 * 3) & 7) << 12;
            put_group(
                dst, 4, scale,
                q + (sh & 1 ? GG_TRELLIS_OTHER_OFFSET : GG_TRELLIS_OFFSET));
        }
    }
}
