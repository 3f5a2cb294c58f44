/* SPDX-License-Identifier: MIT */
/* enc_k.h - parts of the encoders of 256-element blocks for all levels
 *
 * Only functions that take little time or compile well as they stand. They are
 * static inline, so that each instruction set level has its own copy.
 */
#ifndef GG_KERN_C_ENC_K_H
#define GG_KERN_C_ENC_K_H

#include "kern/c/block_io.h"
#include "kern/c/enc_search_ref.h"
#include "kern/c/round.h"

/* Parameters of a type with a scale and a minimum per sub-block. */
struct gg_kern_affine_type {
    int sub;       /* elements in a sub-block */
    int n_sub;     /* sub-blocks, sub * n_sub = 256 */
    int scale_max; /* largest code of a sub-block's scale and minimum */
    /* largest code that is stored, without and with importances */
    uint8_t top[2];
    struct gg_kern_affine_search plain, weighted;
};

#define GG_AFFINE_Q2_K                                                        \
    {                                                                         \
        16, 16, 15, { 255, 255 }, GG_AFFINE_Q2, GG_AFFINE_W(3)                \
    }
#define GG_AFFINE_Q4_K                                                        \
    {                                                                         \
        32, 8, 63, { 63, 255 }, GG_AFFINE_Q4, GG_AFFINE_W(15)                 \
    }
#define GG_AFFINE_Q5_K                                                        \
    {                                                                         \
        32, 8, 63, { 63, 63 }, GG_AFFINE_Q5, GG_AFFINE_W(31)                  \
    }

/* Block during encoding: results of the fits, then the numbers to store. */
struct gg_kern_affine_block {
    uint8_t scale[16], min[16]; /* codes of sub-blocks */
    uint8_t q[256];             /* codes of elements */
    uint16_t d, dmin;           /* f16 bits */
};

/* Compute codes of scales without importances: the largest scale gets the
 * largest code. Codes are cut to a byte. Returns the scale of the block. */
static inline float gg_kern_plain_scale_codes(const float *v, int n,
                                              int code_max, uint8_t *code)
{
    float max = 0;
    for (int j = 0; j < n; j++)
        max = v[j] > max ? v[j] : max;
    float inv = max > 0 ? (float)code_max / max : 0;
    for (int j = 0; j < n; j++)
        code[j] = (uint8_t)gg_kern_nearest(inv * v[j]);
    return max / (float)code_max;
}

/* Replace the codes of scales and minima by those that a decoder will read.
 * Codes too large for their bits (rounding can make a scale negative, which is
 * then cut to a byte) overwrite bits of their neighbours, as in ggml. */
static inline void gg_kern_affine_store(const struct gg_kern_affine_type *t,
                                        int weighted,
                                        struct gg_kern_affine_block *b)
{
    uint8_t s[12], top = t->top[weighted];
    for (int j = 0; j < t->n_sub; j++) {
        b->scale[j] = b->scale[j] < top ? b->scale[j] : top;
        b->min[j] = b->min[j] < top ? b->min[j] : top;
        if (t->sub == 16) {
            b->min[j] = (uint8_t)((b->min[j] | b->scale[j] >> 4) & 15);
            b->scale[j] &= 15;
        }
    }
    if (t->sub == 16)
        return;
    gg_kern_k4_pack(s, b->scale, b->min);
    for (unsigned j = 0; j < 8; j++) {
        b->scale[j] = (uint8_t)gg_kern_k4_scale(s, j);
        b->min[j] = (uint8_t)gg_kern_k4_min(s, j);
    }
}

/* Store the sub-blocks' scales of Q6_K as 8-bit integers. The scale of largest
 * magnitude becomes -128. Returns 0 if all are zero. */
static inline int gg_kern_q6_k_scales(const float scale[16],
                                      struct gg_block_q6_k *b)
{
    float max = gg_kern_max_abs_signed(scale, 16);
    if (fabsf(max) < GG_ENC_ZERO)
        return 0;
    float inv = -128.0f / max;
    gg_kern_put_half(&b->d, 1 / inv);
    for (int j = 0; j < 16; j++) {
        int s = gg_kern_nearest(inv * scale[j]);
        b->scales[j] = (int8_t)(s < 127 ? s : 127);
    }
    return 1;
}

/* Pack 16 scale codes of six bits of Q3_K (gg_kern_k3_scale). */
static inline void gg_kern_k3_pack(uint8_t s[12], const uint8_t code[16])
{
    for (int j = 0; j < 8; j++)
        s[j] = (uint8_t)((code[j] & 15) | (code[j + 8] & 15) << 4);
    for (int j = 0; j < 4; j++)
        s[8 + j] = (uint8_t)(code[j] >> 4 | code[j + 4] >> 4 << 2 |
                             code[j + 8] >> 4 << 4 | code[j + 12] >> 4 << 6);
}

/* Compute scale codes of Q3_K without importances: the scale of largest
 * magnitude gets code 0, which stands for -32. Returns the block's scale. */
static inline float gg_kern_q3_k_scale_codes(const float scale[16],
                                             uint8_t code[16])
{
    float max = gg_kern_max_abs_signed(scale, 16);
    memset(code, 0, 16);
    if (max == 0)
        return 0;
    float inv = -32.0f / max;
    for (int j = 0; j < 16; j++)
        code[j] =
            (uint8_t)(gg_kern_clamp((int8_t)gg_kern_nearest(inv * scale[j]),
                                    -32, 31) +
                      32);
    return 1 / inv;
}

#endif
