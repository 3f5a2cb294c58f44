/* SPDX-License-Identifier: MIT */
/* form.h - blocks of a quantized type as numbers that an encoder can change
 *
 * A form describes the blocks of a type: levels or codebook, ranges of scales
 * and minima, and two functions between the block's bytes and struct
 * gg_form_block. One encoder serves all types by it. An element decodes to
 *
 *     scale * (level + shift) - min
 *     scale = d * scale_value(scale code), min = dmin * min_value(min code)
 *
 * where level is level[code], or in a type with a codebook the element of a
 * codeword, times the element's sign. gg_form_values() defines the order of
 * the products.
 *
 * A sub-block of sub_len elements shares a scale code and a min code. Scales
 * and minima that are floats of their own (Q4_0, Q4_1, MXFP4, NVFP4) are codes
 * as well: their values ascend with the code, and d and dmin are 1.
 *
 * Usual sequence: gg_form_of(), unpack a block, change its codes, pack it.
 * Threads: forms are constants; blocks belong to the caller.
 */
#ifndef GG_FIT_FORM_H
#define GG_FIT_FORM_H

#include "dtype/dtype_int.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    GG_FORM_MAX_LEN = 256, /* elements in a block, and in a sub-block */
    GG_FORM_MAX_SUBS = 16, /* sub-blocks in a block */
    GG_FORM_MAX_GROUP = 8  /* elements of a codeword */
};

/* A block. Members that the form does not have are zero, d and dmin are 1. */
struct gg_form_block {
    float d, dmin; /* F16 numbers if the form has them */
    int32_t scale[GG_FORM_MAX_SUBS], min[GG_FORM_MAX_SUBS];
    uint8_t shift[32];  /* index of the form's shift, per shift_len elements */
    uint16_t code[256]; /* per element: index of its level; per group: index
                         * of its codeword */
    uint8_t sign[32];   /* bit i of sign[k]: element 8 k + i is negative */
};

struct gg_form {
    int dtype;           /* GG_DT_... */
    uint16_t block_len;  /* elements: 32, 64, 128 or 256 */
    uint16_t sub_len;    /* elements that share a scale: 16 to block_len */
    uint16_t block_size; /* bytes */

    /* Levels of one element; n_levels 0: the type has a codebook. A block
     * may hold any of n_levels codes. Encoders choose from code_lo to code_hi:
     * the plain encoder does not write -128 in Q8_0 and 2 in TQ2_0. */
    uint16_t n_levels, code_lo, code_hi;
    const float *level; /* [n_levels], strictly ascending */
    bool even;          /* level[k] is level[0] + k */

    /* Codebook: n_words codewords of `group` elements. A codeword is stored as
     * indices of word_level, word_bits each, element 0 in the lowest bits. */
    uint16_t group, n_words; /* 8 or 4; 256 to 2048 */
    const uint16_t *word;    /* [n_words] */
    const float *word_level; /* [1 << word_bits] */
    uint8_t word_bits;
    bool has_signs;  /* word_level are magnitudes, each element has a sign */
    bool even_signs; /* the number of signs in each 8 elements must be even */

    /* Shift of the levels: shift[code] for each shift_len elements; shift_len
     * 0: none */
    uint16_t shift_len;
    float shift[2];

    /* Scale of a sub-block: codes scale_lo to scale_hi, whose values are
     * finite and ascend. A search moves by scale_first codes, then by steps of
     * an eighth, down to scale_step. Integers have a step of 1. F16 numbers
     * have steps of 8 codes (0.4 to 0.8% of the value). */
    int32_t scale_lo, scale_hi, scale_step, scale_first;
    float (*scale_value)(int32_t code);

    /* Minimum of a sub-block. Its steps are in the same proportion. */
    bool has_min;
    int32_t min_lo, min_hi, min_step;
    float (*min_value)(int32_t code);

    bool has_d, has_dmin; /* the block has an F16 d, an F16 dmin */

    /* Read the block at `block`, of any alignment. Every pattern of bits gives
     * codes within the arrays and functions above; scale and min codes beyond
     * lo and hi are numbers that are not finite (gg_form_is_finite()). */
    void (*unpack)(struct gg_form_block *b, const void *block);

    /* Write all bytes of a block. d and dmin are rounded to F16. Codes must be
     * in range, and signs even if even_signs. */
    void (*pack)(void *block, const struct gg_form_block *b);
};

/* Form of type GG_DT_... NULL: the type has no blocks, or no encoder, or is
 * used for activations only (Q8_1, Q8_K). */
const struct gg_form *gg_form_of(int dtype);

/* Sub-blocks in a block. */
static inline unsigned gg_form_n_subs(const struct gg_form *f)
{
    return f->block_len / f->sub_len;
}

/* Signed level of element e, without its shift. */
float gg_form_level(const struct gg_form *f, const struct gg_form_block *b,
                    unsigned e);

/* Scale and minimum of sub-block s. */
float gg_form_scale(const struct gg_form *f, const struct gg_form_block *b,
                    unsigned s);
float gg_form_min(const struct gg_form *f, const struct gg_form_block *b,
                  unsigned s);

/* Decode a block: block_len floats. The bits are those of the type's decoder
 * (kern/codec.h), except of NaNs. */
void gg_form_values(const struct gg_form *f, const struct gg_form_block *b,
                    float *x);

/* The codebook as floats: n_words * group, codeword after codeword, without
 * signs and shift. */
void gg_form_words(const struct gg_form *f, float *x);

/* Code of the scale value, or min value, that is nearest to v; the lower code
 * of two. v is not NaN. */
int32_t gg_form_scale_code(const struct gg_form *f, float v);
int32_t gg_form_min_code(const struct gg_form *f, float v);

/* Are d, dmin, and the scales and minima of all sub-blocks finite? */
bool gg_form_is_finite(const struct gg_form *f, const struct gg_form_block *b);

#endif
