/* SPDX-License-Identifier: MIT */
/* enc_iq.h - parts that the IQ2 and IQ3 encoders share
 *
 * A part of 16 or 32 elements has a scale. Groups of 8 or 4 of its elements
 * have a codebook entry of odd numbers 2 * level + 1, and signs. The five types
 * differ in numbers only.
 */
#ifndef GG_KERN_C_ENC_IQ_H
#define GG_KERN_C_ENC_IQ_H

#include "kern/c/iq_near.h"

/* Importances used when none are given. */
enum gg_kern_iq_plain {
    GG_IQ_NONE,   /* the type requires importances */
    GG_IQ_SQUARE, /* x^2 */
    GG_IQ_SHIFTED /* x^2 + sigma2 / 4 */
};

struct gg_kern_iq_type {
    struct gg_kern_iq_book book;
    int n;       /* elements of a part */
    int n_try;   /* scales tried: 2 * n_try + 1 ... */
    float step;  /* ... this far apart, in odd numbers */
    float zero;  /* smaller parts count as zero */
    float sigma; /* sigma2 is the mean square times this */
    enum gg_kern_iq_plain plain;
    int even;       /* signs: seven bits, their number even */
    int fit_start;  /* the scales tried are round a fit, not the largest */
    int refine_all; /* fit again all groups, not just those off the book */
    float fudge;    /* factor on the block's scale */
};

#define GG_IQ2_XXS_TYPE                                                       \
    {                                                                         \
        GG_IQ_BOOK(iq2_xxs, 8, 2, 2), 32, 6, 0.1f, 1e-15f, 1, GG_IQ_NONE, 1,  \
            1, 1, 1                                                           \
    }
#define GG_IQ2_XS_TYPE                                                        \
    {                                                                         \
        GG_IQ_BOOK(iq2_xs, 8, 2, 2), 16, 9, 0.1f, 1e-15f, 1, GG_IQ_NONE, 1,   \
            0, 0, 1                                                           \
    }
#define GG_IQ2_S_TYPE                                                         \
    {                                                                         \
        GG_IQ_BOOK(iq2_s, 8, 2, 2), 16, 9, 0.1f, 1e-8f, 2, GG_IQ_SHIFTED, 0,  \
            0, 0, 0.9875f                                                     \
    }
#define GG_IQ3_XXS_TYPE                                                       \
    {                                                                         \
        GG_IQ_BOOK(iq3_xxs, 4, 3, 7), 32, 15, 0.2f, 1e-8f, 2, GG_IQ_SQUARE,   \
            1, 0, 0, 1.0125f                                                  \
    }
#define GG_IQ3_S_TYPE                                                         \
    {                                                                         \
        GG_IQ_BOOK(iq3_s, 4, 3, 7), 32, 9, 0.2f, 0x1p-149f, 2, GG_IQ_SQUARE,  \
            0, 0, 1, 1.033f                                                   \
    }

/* Result of fitting a block: the code of the scale of each part, the entry of
 * each group, the signs of each eight elements. A part of zeros has entries and
 * signs 0. */
struct gg_kern_iq_block {
    float scale[16], d; /* d: scale of the block before rounding to f16 */
    uint8_t code[16], zero[16]; /* zero: the part was skipped */
    uint16_t entry[64];
    uint8_t signs[32];
};

/* Compute the codes of the parts' scales, and d. */
void gg_kern_iq_scale_codes(const struct gg_kern_iq_type *t,
                            struct gg_kern_iq_block *b);

/* Write a fitted block at out. Each type has such a function. */
typedef void gg_kern_iq_put_fn(const struct gg_kern_iq_block *b, void *out);
gg_kern_iq_put_fn gg_kern_iq2_xxs_put, gg_kern_iq2_xs_put, gg_kern_iq2_s_put,
    gg_kern_iq3_xxs_put, gg_kern_iq3_s_put;

#endif
