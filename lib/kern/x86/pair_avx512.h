/* SPDX-License-Identifier: MIT */
/* pair_avx512.h - 16 floats: the groups of a search, one lane each. What each
 * function means is said in pair_256.h. */
#ifndef GG_KERN_X86_PAIR_AVX512_H
#define GG_KERN_X86_PAIR_AVX512_H

#include "kern/simd/v256.h"

struct pair {
    __m512 v;
};
typedef __mmask16 pair_mask;

#define PAIR(op, x, y) ((struct pair){ op((x).v, (y).v) })

static inline struct pair pair_load(const float *p)
{
    return (struct pair){ _mm512_loadu_ps(p) };
}

static inline void pair_store(float *p, struct pair v)
{
    _mm512_storeu_ps(p, v.v);
}

static inline struct pair pair_set(float v)
{
    return (struct pair){ _mm512_set1_ps(v) };
}

#define PAIR_OF_TWO(NAME, OP)                                                 \
    static inline struct pair NAME(struct pair u, struct pair v) {            \
        return PAIR(OP, u, v);                                                \
    }
PAIR_OF_TWO(add_pairs, _mm512_add_ps)
PAIR_OF_TWO(sub_pairs, _mm512_sub_ps)
PAIR_OF_TWO(mul_pairs, _mm512_mul_ps)
PAIR_OF_TWO(quot_pairs, _mm512_div_ps)
PAIR_OF_TWO(lesser_of, _mm512_min_ps)
PAIR_OF_TWO(greater_of, _mm512_max_ps)

static inline struct pair nearest_pair(struct pair v)
{
    return (struct pair){ _mm512_roundscale_ps(v.v, _MM_FROUND_TO_NEAREST_INT |
                                                        _MM_FROUND_NO_EXC) };
}

static inline struct pair magnitude_of(struct pair v)
{
    return (struct pair){ _mm512_abs_ps(v.v) };
}

static inline struct pair negative_of(struct pair v)
{
    return PAIR(_mm512_xor_ps, v, pair_set(-0.0f));
}

static inline pair_mask less_pairs(struct pair u, struct pair v)
{
    return _mm512_cmp_ps_mask(u.v, v.v, _CMP_LT_OQ);
}

static inline pair_mask equal_pairs(struct pair u, struct pair v)
{
    return _mm512_cmp_ps_mask(u.v, v.v, _CMP_EQ_OQ);
}

static inline pair_mask both_masks(pair_mask u, pair_mask v)
{
    return _kand_mask16(u, v);
}

static inline struct pair keep_within(struct pair v, pair_mask m)
{
    return (struct pair){ _mm512_maskz_mov_ps(m, v.v) };
}

static inline struct pair keep_without(struct pair v, pair_mask m)
{
    return keep_within(v, _knot_mask16(m));
}

static inline struct pair choose_pair(pair_mask m, struct pair u,
                                      struct pair v)
{
    return (struct pair){ _mm512_mask_mov_ps(v.v, m, u.v) };
}

static inline int any_lane(pair_mask m)
{
    return m != 0;
}

static inline int all_at_most(struct pair v, float limit)
{
    return _mm512_cmp_ps_mask(v.v, _mm512_set1_ps(limit), _CMP_LE_OQ) ==
           0xffff;
}

#endif
