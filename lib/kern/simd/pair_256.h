/* SPDX-License-Identifier: MIT */
/* pair_256.h - 16 floats: groups 0-7 and 8-15 of a search, one lane each */
#ifndef GG_KERN_SIMD_PAIR_256_H
#define GG_KERN_SIMD_PAIR_256_H

#include "kern/simd/v256.h"

struct pair {
    __m256 a, b;
};
typedef struct pair pair_mask; /* all ones where it holds */

#define PAIR(op, u, v) ((struct pair){ op((u).a, (v).a), op((u).b, (v).b) })

static inline struct pair pair_load(const float *p)
{
    return (struct pair){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}

static inline void pair_store(float *p, struct pair v)
{
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
}

static inline struct pair pair_set(float v)
{
    return (struct pair){ _mm256_set1_ps(v), _mm256_set1_ps(v) };
}

#define PAIR_OF_TWO(NAME, OP)                                                 \
    static inline struct pair NAME(struct pair u, struct pair v) {            \
        return PAIR(OP, u, v);                                                \
    }
PAIR_OF_TWO(add_pairs, _mm256_add_ps)
PAIR_OF_TWO(sub_pairs, _mm256_sub_ps)
PAIR_OF_TWO(mul_pairs, _mm256_mul_ps)
PAIR_OF_TWO(quot_pairs, _mm256_div_ps)

/* u < v ? u : v and u > v ? u : v; the second where that is unordered */
PAIR_OF_TWO(lesser_of, _mm256_min_ps)
PAIR_OF_TWO(greater_of, _mm256_max_ps)

static inline struct pair nearest_pair(struct pair v)
{
    return (struct pair){ gg_v256_nearest_ps(v.a), gg_v256_nearest_ps(v.b) };
}

static inline struct pair magnitude_of(struct pair v)
{
    return (struct pair){ gg_v256_abs_ps(v.a), gg_v256_abs_ps(v.b) };
}

static inline struct pair negative_of(struct pair v)
{
    return PAIR(_mm256_xor_ps, v, pair_set(-0.0f));
}

/* Where u < v, where equal, where both hold. */
static inline pair_mask less_pairs(struct pair u, struct pair v)
{
    return (struct pair){ _mm256_cmp_ps(u.a, v.a, _CMP_LT_OQ),
                          _mm256_cmp_ps(u.b, v.b, _CMP_LT_OQ) };
}

static inline pair_mask equal_pairs(struct pair u, struct pair v)
{
    return (struct pair){ _mm256_cmp_ps(u.a, v.a, _CMP_EQ_OQ),
                          _mm256_cmp_ps(u.b, v.b, _CMP_EQ_OQ) };
}

PAIR_OF_TWO(both_masks, _mm256_and_ps)

/* v where m holds, else 0; v where it does not, else 0; m ? u : v. */
PAIR_OF_TWO(keep_within, _mm256_and_ps)

static inline struct pair keep_without(struct pair v, pair_mask m)
{
    return PAIR(_mm256_andnot_ps, m, v);
}

static inline struct pair choose_pair(pair_mask m, struct pair u,
                                      struct pair v)
{
    return (struct pair){ m256_select_ps(v.a, u.a, m.a),
                          m256_select_ps(v.b, u.b, m.b) };
}

static inline int any_lane(pair_mask m)
{
    return _mm256_movemask_ps(_mm256_or_ps(m.a, m.b));
}

/* Are all lanes at most limit? Not if one is NaN. */
static inline int all_at_most(struct pair v, float limit)
{
    __m256 l = _mm256_set1_ps(limit);
    __m256 m = _mm256_and_ps(_mm256_cmp_ps(v.a, l, _CMP_LE_OQ),
                             _mm256_cmp_ps(v.b, l, _CMP_LE_OQ));
    return _mm256_movemask_ps(m) == 0xff;
}

#endif
