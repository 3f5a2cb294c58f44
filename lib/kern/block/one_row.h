/* SPDX-License-Identifier: MIT */
/* one_row.h - scalar part of a view of one row (block_view.h)
 *
 * A WORD is a uint32_t and a FLOAT a float. The view adds what depends on its
 * vectors. It defines one_row_half(p) before, which converts the f16 at p.
 */
#ifndef GG_KERN_BLOCK_ONE_ROW_H
#define GG_KERN_BLOCK_ONE_ROW_H

#include "base/bytes.h"
#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

typedef uint32_t WORD;
typedef float FLOAT, SUB;

struct rows {
    const uint8_t *at;
};

struct bytes {
    const uint8_t *at;
};

/* sub-scales, already multiplied by the scale of the block */
struct subs {
    float by[16];
};

#define w_all(bits) ((uint32_t)(bits))
#define w_and(a, b) ((a) & (b))
#define w_or(a, b)  ((a) | (b))
#define w_srl(a, n) ((a) >> (n))
#define w_sll(a, n) ((a) << (n))
#define w_add(a, b) ((a) + (b))
#define w_sub(a, b) ((a) - (b))
#define w_max(a, b) ((int32_t)(a) > (int32_t)(b) ? (a) : (b))
#define w_float     gg_bytes_f32_from_bits

static GG_ALWAYS_INLINE void take_bytes(const struct rows *r, size_t off,
                                        struct bytes *b)
{
    b->at = r->at + off;
}

static GG_ALWAYS_INLINE uint32_t take_byte(const struct rows *r, size_t off)
{
    return r->at[off];
}

static GG_ALWAYS_INLINE float take_half(const struct rows *r, size_t off)
{
    return one_row_half(r->at + off);
}

static GG_ALWAYS_INLINE uint32_t word_at(const struct bytes *b, size_t off)
{
    return gg_bytes_load32le(b->at + off);
}

static GG_ALWAYS_INLINE float half_at(const struct bytes *b, size_t off)
{
    return one_row_half(b->at + off);
}

static GG_ALWAYS_INLINE float sub_of(const struct subs *s, size_t j, size_t b)
{
    return s->by[4 * j + b];
}
#define sub_u8   sub_of
#define sub_i8   sub_of
#define sub_low  sub_of
#define sub_high sub_of

static GG_ALWAYS_INLINE float sub_6(const struct subs *s, size_t j)
{
    return s->by[j];
}

#endif
