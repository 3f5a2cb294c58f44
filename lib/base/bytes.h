/* SPDX-License-Identifier: MIT */
/* bytes.h - load and store numbers at any alignment, in either byte order */
#ifndef GG_BASE_BYTES_H
#define GG_BASE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Is this machine little-endian? Compilers make this a constant. */
static inline bool gg_bytes_host_is_le(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first;
}

static inline uint16_t gg_bytes_load16le(const void *p)
{
    const uint8_t *b = p;
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t gg_bytes_load32le(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
           (uint32_t)b[3] << 24;
}

static inline uint64_t gg_bytes_load64le(const void *p)
{
    const uint8_t *b = p;
    return (uint64_t)gg_bytes_load32le(b) | (uint64_t)gg_bytes_load32le(b + 4)
                                                << 32;
}

static inline void gg_bytes_store16le(void *p, uint16_t v)
{
    uint8_t *b = p;
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
}

static inline void gg_bytes_store32le(void *p, uint32_t v)
{
    uint8_t *b = p;
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
    b[2] = (uint8_t)(v >> 16);
    b[3] = (uint8_t)(v >> 24);
}

static inline void gg_bytes_store64le(void *p, uint64_t v)
{
    gg_bytes_store32le(p, (uint32_t)v);
    gg_bytes_store32le((uint8_t *)p + 4, (uint32_t)(v >> 32));
}

static inline uint16_t gg_bytes_swap16(uint16_t v)
{
    return (uint16_t)(v >> 8 | v << 8);
}

static inline uint32_t gg_bytes_swap32(uint32_t v)
{
    return v >> 24 | (v >> 8 & 0xff00u) | (v << 8 & 0xff0000u) | v << 24;
}

static inline uint64_t gg_bytes_swap64(uint64_t v)
{
    return (uint64_t)gg_bytes_swap32((uint32_t)v) << 32 |
           gg_bytes_swap32((uint32_t)(v >> 32));
}

/* Bit patterns of floats. */
static inline float gg_bytes_f32_from_bits(uint32_t v)
{
    float f;
    memcpy(&f, &v, sizeof f);
    return f;
}

static inline uint32_t gg_bytes_f32_bits(float f)
{
    uint32_t v;
    memcpy(&v, &f, sizeof v);
    return v;
}

static inline double gg_bytes_f64_from_bits(uint64_t v)
{
    double f;
    memcpy(&f, &v, sizeof f);
    return f;
}

static inline uint64_t gg_bytes_f64_bits(double f)
{
    uint64_t v;
    memcpy(&v, &f, sizeof v);
    return v;
}

#endif
