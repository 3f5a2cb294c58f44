/* SPDX-License-Identifier: MIT */
/* iq_near.h - codebook entries near a point
 *
 * A point is one level number per element; only some points are entries. For
 * each point there is a list of the codes of the entries at the smallest few
 * squared distances in level numbers (1 distance for IQ2_S, 3 for IQ1 and
 * IQ3_S, 2 for the others). Nearer entries come first, entries at one distance
 * by index. The list of a point that is an entry has just its index. An encoder
 * chooses the best of a list by importance. Source of the rule: iq2xs_init_impl
 * and iq3xs_init_impl of ggml-quants.c (ggml commit d99724f).
 *
 * The number of a point has base 3 (IQ1, IQ2) or 8 (IQ3), element 0 lowest. The
 * list of point p begins at start[p] >> 1 and ends at start[p + 1] >> 1;
 * start[p] & 1 says that the point is an entry. After the last list are eight
 * more numbers, for loads of whole vectors.
 */
#ifndef GG_KERN_C_IQ_NEAR_H
#define GG_KERN_C_IQ_NEAR_H

#include "dtype/iq_code.h"

extern const uint32_t gg_kern_near_iq1_start[], gg_kern_near_iq2_xxs_start[],
    gg_kern_near_iq2_xs_start[], gg_kern_near_iq2_s_start[],
    gg_kern_near_iq3_xxs_start[], gg_kern_near_iq3_s_start[];
extern const uint16_t gg_kern_near_iq1[], gg_kern_near_iq2_xxs[],
    gg_kern_near_iq2_xs[], gg_kern_near_iq2_s[], gg_kern_near_iq3_xxs[],
    gg_kern_near_iq3_s[];

/* Codebook for an encoder. */
struct gg_kern_iq_book {
    const uint16_t *code;
    const uint32_t *start;
    const uint16_t *near;
    int group;     /* elements of an entry: 8 or 4 */
    int bits, top; /* bits of a level number, the largest one */
};

#define GG_IQ_BOOK(name, group, bits, top)                                    \
    {                                                                         \
        gg_dtype_##name##_code, gg_kern_near_##name##_start,                  \
            gg_kern_near_##name, group, bits, top                             \
    }

static inline unsigned gg_kern_iq_level(const struct gg_kern_iq_book *b,
                                        unsigned code, int i)
{
    return code >> b->bits * i & ((1u << b->bits) - 1);
}

/* Point of a code; and index of the entry that has a code. */
static inline unsigned gg_kern_iq_point(const struct gg_kern_iq_book *b,
                                        unsigned code)
{
    unsigned p = 0;
    for (int i = b->group - 1; i >= 0; i--)
        p = p * (unsigned)(b->top + 1) + gg_kern_iq_level(b, code, i);
    return p;
}

static inline unsigned gg_kern_iq_entry(const struct gg_kern_iq_book *b,
                                        unsigned code)
{
    return b->near[b->start[gg_kern_iq_point(b, code)] >> 1];
}

#endif
