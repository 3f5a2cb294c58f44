/* SPDX-License-Identifier: MIT */
/* form_int.h - functions of the rows of forms */
#ifndef GG_FIT_FORM_INT_H
#define GG_FIT_FORM_INT_H

#include "fit/form.h"
#include "kern/c/block_io.h"

#define GG_FORM_BLOCK(NAME)                                                   \
    void gg_form_unpack_##NAME(struct gg_form_block *b, const void *block);   \
    void gg_form_pack_##NAME(void *block, const struct gg_form_block *b);
GG_FORM_BLOCK(q4_0)
GG_FORM_BLOCK(q4_1)
GG_FORM_BLOCK(q5_0)
GG_FORM_BLOCK(q5_1)
GG_FORM_BLOCK(q8_0)
GG_FORM_BLOCK(iq4_nl)
GG_FORM_BLOCK(mxfp4)
GG_FORM_BLOCK(nvfp4)
GG_FORM_BLOCK(q2_k)
GG_FORM_BLOCK(q3_k)
GG_FORM_BLOCK(q4_k)
GG_FORM_BLOCK(q5_k)
GG_FORM_BLOCK(q6_k)
GG_FORM_BLOCK(iq4_xs)
GG_FORM_BLOCK(iq2_xxs)
GG_FORM_BLOCK(iq2_xs)
GG_FORM_BLOCK(iq2_s)
GG_FORM_BLOCK(iq3_xxs)
GG_FORM_BLOCK(iq3_s)
GG_FORM_BLOCK(iq1_s)
GG_FORM_BLOCK(iq1_m)
GG_FORM_BLOCK(tq1_0)
GG_FORM_BLOCK(tq2_0)
GG_FORM_BLOCK(q1_0)
GG_FORM_BLOCK(q2_0)

/* A block before its members are filled in. */
#define GG_FORM_EMPTY ((struct gg_form_block){ .d = 1, .dmin = 1 })

/* Codes of F16 numbers, in ascending order: the bits of positive numbers, and
 * -1 less the bits of the magnitude of negative ones. */
enum { GG_FORM_F16_MAX = 0x7bff, GG_FORM_F16_MIN = -1 - 0x7bff };

static inline int32_t gg_form_f16_code(uint16_t bits)
{
    return bits & 0x8000 ? -1 - (bits & 0x7fff) : bits;
}

static inline uint16_t gg_form_f16_bits(int32_t code)
{
    return (uint16_t)(code < 0 ? 0x8000 | (-1 - code) : code);
}

static inline int32_t gg_form_get_f16(const void *p)
{
    return gg_form_f16_code(gg_bytes_load16le(p));
}

static inline void gg_form_put_f16(void *p, int32_t code)
{
    gg_bytes_store16le(p, gg_form_f16_bits(code));
}

static inline void gg_form_put_d(void *p, float d)
{
    gg_bytes_store16le(p, gg_dtype_f32_to_f16(d));
}

/* Codes of 2 n elements in n bytes: low nibbles are elements 0 to n - 1, high
 * nibbles the others. */
static inline void gg_form_get_nibbles(uint16_t *code, const uint8_t *qs,
                                       unsigned n)
{
    for (unsigned j = 0; j < n; j++) {
        code[j] = qs[j] & 15;
        code[j + n] = qs[j] >> 4;
    }
}

static inline void gg_form_put_nibbles(uint8_t *qs, const uint16_t *code,
                                       unsigned n)
{
    for (unsigned j = 0; j < n; j++)
        qs[j] = (uint8_t)((code[j] & 15) | (code[j + n] & 15) << 4);
}

#endif
