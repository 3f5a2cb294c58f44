/* SPDX-License-Identifier: MIT */
/* block_io.h - the small things that all reference codecs need
 *
 * Blocks of a file have no alignment: a codec copies a block in and out with
 * memcpy (compilers make plain loads of it) and reads its two-byte fields in
 * little-endian order.
 */
#ifndef GG_KERN_C_BLOCK_IO_H
#define GG_KERN_C_BLOCK_IO_H

#include "base/bytes.h"
#include "dtype/block.h"
#include "dtype/f16.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Copy block i of src. */
#define GG_GET_BLOCK(b, src, i)                                               \
    memcpy(&(b), (const uint8_t *)(src) + (i) * sizeof(b), sizeof(b))
#define GG_PUT_BLOCK(b, dst, i)                                               \
    memcpy((uint8_t *)(dst) + (i) * sizeof(b), &(b), sizeof(b))

/* Define the decoder of a type with 256 elements a block in sub-blocks of SUB
 * elements. HEADER bytes precede the first block b of a row; an element is
 *
 *     (D * (float)SCALE) * (float)VALUE
 *
 * where SCALE is an expression of sub-block s and VALUE one of s and element e.
 */
#define GG_DECODER_256(NAME, SUB, HEADER, D, SCALE, VALUE)                    \
    void gg_kern_decode_##NAME##_c(const void *src, float *dst, size_t n)     \
    {                                                                         \
        for (size_t i = 0; i < n / 256; i++, dst += 256) {                    \
            struct gg_block_##NAME b;                                         \
            GG_GET_BLOCK(b, (const uint8_t *)src + (HEADER), i);              \
            const float d = D;                                                \
            for (unsigned s = 0; s < 256 / (SUB); s++) {                      \
                const float scale = d * (float)(SCALE);                       \
                for (unsigned e = (SUB)*s; e < (SUB) * (s + 1); e++)          \
                    dst[e] = scale * (float)(VALUE);                          \
            }                                                                 \
        }                                                                     \
    }

/* Define the decoder of a type with 32 elements a block, whose codes are 16
 * bytes of nibbles: low ones are elements 0 to 15, high ones 16 to 31. After
 * SETUP, WEIGHT is an expression of the block b, element e and its nibble q.
 */
#define GG_DECODER_NIBBLES(NAME, SETUP, WEIGHT)                               \
    void gg_kern_decode_##NAME##_c(const void *src, float *dst, size_t n)     \
    {                                                                         \
        for (size_t i = 0; i < n / 32; i++, dst += 32) {                      \
            struct gg_block_##NAME b;                                         \
            GG_GET_BLOCK(b, src, i);                                          \
            SETUP;                                                            \
            for (int j = 0; j < 16; j++) {                                    \
                int q = b.qs[j] & 15, e = j;                                  \
                dst[j] = WEIGHT;                                              \
                q = b.qs[j] >> 4, e = j + 16;                                 \
                dst[j + 16] = WEIGHT;                                         \
                (void)e;                                                      \
            }                                                                 \
        }                                                                     \
    }

/* The f16 field at p, and back. A NaN is written as 0xfe00 (what x86
 * makes of an invalid operation, and ggml of that): which of a NaN's
 * bits survive arithmetic is the compiler's choice. */
static inline float gg_kern_get_half(const void *p)
{
    return gg_dtype_f16_to_f32(gg_bytes_load16le(p));
}

static inline uint16_t gg_kern_half_of(float v)
{
    return v == v ? gg_dtype_f32_to_f16(v) : 0xfe00;
}

static inline void gg_kern_put_half(void *p, float v)
{
    gg_bytes_store16le(p, gg_kern_half_of(v));
}

/* Scale and minimum j (0..7) of the 12 bytes of Q4_K and Q5_K: eight of six
 * bits each. Bytes 0-3: scales 0-3, bytes 4-7: minima 0-3, with the upper two
 * bits of scales and minima 4-7 on top; bytes 8-11: low nibble scales 4-7,
 * high nibble minima 4-7. */
static inline unsigned gg_kern_k4_scale(const uint8_t s[12], unsigned j)
{
    return j < 4 ? s[j] & 63u : (s[j + 4] & 15u) | (s[j - 4] & 0xc0u) >> 2;
}

static inline unsigned gg_kern_k4_min(const uint8_t s[12], unsigned j)
{
    return j < 4 ? s[j + 4] & 63u : s[j + 4] >> 4 | (s[j] & 0xc0u) >> 2;
}

/* Scale j (0..15) of the 12 bytes of Q3_K, -32 .. 31: low nibbles of scales 0-7
 * and, on top, 8-15 in bytes 0-7; upper pairs of scales j, j+4, j+8, j+12 in
 * byte 8 + j. */
static inline int gg_kern_k3_scale(const uint8_t s[12], unsigned j)
{
    int lo = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
    return (lo | (s[8 + j % 4] >> 2 * (j / 4) & 3) << 4) - 32;
}

/* Scale s (0..15) of IQ4_K and IQ5_K, -32 .. 31: nibbles of low, upper pairs of
 * bits in high. */
static inline int gg_kern_iq4k_scale(const uint8_t low[8],
                                     const uint8_t high[4], unsigned s)
{
    int lo = low[s / 2] >> 4 * (s & 1) & 15;
    return (lo | (high[s / 4] >> 2 * (s % 4) & 3) << 4) - 32;
}

static inline void gg_kern_k4_pack(uint8_t s[12], const uint8_t scale[8],
                                   const uint8_t min[8])
{
    for (unsigned j = 0; j < 4; j++) {
        s[j] = (uint8_t)(scale[j] | scale[j + 4] >> 4 << 6);
        s[j + 4] = (uint8_t)(min[j] | min[j + 4] >> 4 << 6);
        s[j + 8] = (uint8_t)((scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
    }
}

/* Pair of bits of element e (0..255) of the types that have four codes in a
 * byte, 32 apart. */
static inline unsigned gg_kern_pair_of(const uint8_t *qs, unsigned e)
{
    return qs[e / 128 * 32 + e % 32] >> 2 * (e / 32 % 4) & 3u;
}

/* Lowest pairs of bits of 256 codes: four codes a byte, 32 apart. */
static inline void gg_kern_pack_pairs(uint8_t qs[64], const uint8_t q[256])
{
    for (int h = 0; h < 2; h++, q += 128, qs += 32)
        for (int j = 0; j < 32; j++)
            qs[j] = (uint8_t)((q[j] & 3) | (q[j + 32] & 3) << 2 |
                              (q[j + 64] & 3) << 4 | (q[j + 96] & 3) << 6);
}

#endif
