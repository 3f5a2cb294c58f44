/* SPDX-License-Identifier: MIT */
/* deq_iq.c - reference decoders of the codebook types
 *
 * Groups of 8 or 4 elements are an entry of a codebook (dtype/iq_code.h),
 * signs, and a scale that is the block's f16 times a small odd number.
 */
#include "config.h"
#include "kern/codec.h"
#include "dtype/iq_code.h"
#include "kern/c/block_io.h"

static const float iq1_level[4] = GG_IQ1_LEVELS;
static const float iq2_level[4] = GG_IQ2_LEVELS;
static const float iq3_xxs_level[8] = GG_IQ3_XXS_LEVELS;
static const float iq3_s_level[8] = GG_IQ3_S_LEVELS;

/* Eight elements of IQ2: bit j of signs set: negative. */
static void put8(float *dst, unsigned code, unsigned signs, float scale)
{
    for (int j = 0; j < 8; j++) {
        float v = scale * iq2_level[code >> 2 * j & 3];
        dst[j] = signs >> j & 1 ? -v : v;
    }
}

static void put4(float *dst, const float level[8], unsigned code,
                 unsigned signs, float scale)
{
    for (int j = 0; j < 4; j++) {
        float v = scale * level[code >> 3 * j & 7];
        dst[j] = signs >> j & 1 ? -v : v;
    }
}

void gg_kern_decode_iq2_xxs_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq2_xxs b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        /* per 32 elements: four indices, then four times 7 signs and a scale */
        for (int g = 0; g < 8; g++) {
            const uint8_t *index = (const uint8_t *)b.qs + 8 * g;
            uint32_t rest = gg_bytes_load32le(index + 4);
            float scale = d * (0.5f + (float)(rest >> 28)) * 0.25f;
            for (int l = 0; l < 4; l++, dst += 8)
                put8(dst, gg_dtype_iq2_xxs_code[index[l]],
                     gg_dtype_iq_signs(rest >> 7 * l), scale);
        }
    }
}

void gg_kern_decode_iq2_xs_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq2_xs b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        /* 9 bits of index and 7 signs per 8 elements, a scale per 16 */
        for (int l = 0; l < 32; l++, dst += 8) {
            unsigned q = gg_bytes_load16le(&b.qs[l]);
            unsigned sc = b.scales[l / 4] >> 4 * (l / 2 & 1) & 15u;
            put8(dst, gg_dtype_iq2_xs_code[q & 511], gg_dtype_iq_signs(q >> 9),
                 d * (0.5f + (float)sc) * 0.25f);
        }
    }
}

void gg_kern_decode_iq2_s_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq2_s b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        /* 8 bits of index in qs, two in qh; all eight signs after qs */
        for (int l = 0; l < 32; l++, dst += 8) {
            unsigned hi = b.qh[l / 4] >> 2 * (l % 4) & 3u;
            unsigned sc = b.scales[l / 4] >> 4 * (l / 2 & 1) & 15u;
            put8(dst, gg_dtype_iq2_s_code[b.qs[l] | hi << 8], b.qs[32 + l],
                 d * (0.5f + (float)sc) * 0.25f);
        }
    }
}

void gg_kern_decode_iq3_xxs_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq3_xxs b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (int g = 0; g < 8; g++) {
            const uint8_t *index = b.qs + 8 * g;
            uint32_t rest = gg_bytes_load32le(b.qs + 64 + 4 * g);
            float scale = d * (0.5f + (float)(rest >> 28)) * 0.5f;
            for (int l = 0; l < 8; l++, dst += 4)
                put4(dst, iq3_xxs_level, gg_dtype_iq3_xxs_code[index[l]],
                     gg_dtype_iq_signs(rest >> 7 * (l / 2)) >> 4 * (l & 1),
                     scale);
        }
    }
}

void gg_kern_decode_iq3_s_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq3_s b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        for (int l = 0; l < 64; l++, dst += 4) {
            unsigned hi = b.qh[l / 8] >> l % 8 & 1u;
            int sc = b.scales[l / 16] >> 4 * (l / 8 & 1) & 15;
            put4(dst, iq3_s_level, gg_dtype_iq3_s_code[b.qs[l] | hi << 8],
                 (unsigned)b.signs[l / 2] >> 4 * (l & 1),
                 d * (float)(1 + 2 * sc));
        }
    }
}

/* Eight elements of IQ1, all moved by delta. */
static void put8_shifted(float *dst, unsigned code, float delta, float scale)
{
    for (int j = 0; j < 8; j++)
        dst[j] = scale * (iq1_level[code >> 2 * j & 3] + delta);
}

void gg_kern_decode_iq1_s_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq1_s b;
        GG_GET_BLOCK(b, src, i);
        float d = gg_kern_get_half(&b.d);
        /* qh per 32: four times 3 bits of index, the scale, the shift's sign */
        for (int l = 0; l < 32; l++, dst += 8) {
            unsigned h = gg_bytes_load16le(&b.qh[l / 4]);
            float delta = h & 0x8000 ? -GG_IQ1_DELTA : GG_IQ1_DELTA;
            unsigned hi = h >> 3 * (l % 4) & 7;
            put8_shifted(dst, gg_dtype_iq1_code[b.qs[l] | hi << 8], delta,
                         d * (float)(2 * (h >> 12 & 7) + 1));
        }
    }
}

void gg_kern_decode_iq1_m_c(const void *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n / 256; i++) {
        struct gg_block_iq1_m b;
        GG_GET_BLOCK(b, src, i);
        /* The upper nibbles of the four words of scales are the block's f16;
         * below them four times 3 bits, one per 16 elements. */
        unsigned sc[4], half = 0;
        for (int k = 0; k < 4; k++) {
            sc[k] = gg_bytes_load16le(b.scales + 2 * k);
            half |= sc[k] >> 12 << 4 * k;
        }
        float d = gg_dtype_f16_to_f32((uint16_t)half);
        for (int l = 0; l < 32; l++, dst += 8) {
            unsigned h = b.qh[l / 2] >> 4 * (l & 1);
            float delta = h & 8 ? -GG_IQ1_DELTA : GG_IQ1_DELTA;
            unsigned s = sc[l / 8] >> 3 * (l / 2 % 4) & 7;
            put8_shifted(dst, gg_dtype_iq1_code[b.qs[l] | (h & 7) << 8], delta,
                         d * (float)(2 * s + 1));
        }
    }
}

/* Rows of IQ1_S_R4 and IQ1_M_R4 outside of their groups: the scale is in the
 * row's header. */
void gg_kern_decode_iq1_s_r4_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(uint16_t);
    const float d = gg_kern_get_half(src);
    for (size_t i = 0; i < n / 32; i++) {
        struct gg_block_iq1_s_r4 b;
        GG_GET_BLOCK(b, blocks, i);
        const unsigned h = gg_bytes_load16le(&b.qh);
        const float delta = h & 0x8000 ? -GG_IQ1_DELTA : GG_IQ1_DELTA;
        for (unsigned g = 0; g < 4; g++, dst += 8)
            put8_shifted(dst,
                         gg_dtype_iq1_code[b.qs[g] | (h >> 3 * g & 7) << 8],
                         delta, d * (float)(2 * (h >> 12 & 7) + 1));
    }
}

void gg_kern_decode_iq1_m_r4_c(const void *src, float *dst, size_t n)
{
    const uint8_t *blocks = (const uint8_t *)src + sizeof(uint16_t);
    const float d = gg_kern_get_half(src);
    for (size_t i = 0; i < n / 32; i++) {
        struct gg_block_iq1_m_r4 b;
        GG_GET_BLOCK(b, blocks, i);
        for (unsigned g = 0; g < 4; g++, dst += 8) {
            const unsigned h = b.qh[g / 2] >> 4 * (g & 1);
            const float delta = h & 8 ? -GG_IQ1_DELTA : GG_IQ1_DELTA;
            put8_shifted(dst, gg_dtype_iq1_code[b.qs[g] | (h & 7) << 8], delta,
                         d * (float)(b.scales >> 4 * (g / 2) & 15));
        }
    }
}
