/* SPDX-License-Identifier: MIT */
/* pair_c.h - 16 floats in C: the functions of kern/simd/pair_256.h that the
 * kernels of feedback use, with the same results. Included once by a file. */
#ifndef GG_FIT_PAIR_C_H
#define GG_FIT_PAIR_C_H

#include "base/compiler.h"

#include <math.h>
#include <string.h>

/* With checks of each access, inlined functions take minutes to compile. */
#if defined(__SANITIZE_ADDRESS__)
#define PAIR_FUNCTION static GG_NOINLINE
#else
#define PAIR_FUNCTION static inline
#endif

struct pair {
    float v[16];
};
typedef struct {
    unsigned char m[16]; /* 1 where it holds */
} pair_mask;

#define FOR_LANES for (int l_ = 0; l_ < 16; l_++)

PAIR_FUNCTION struct pair pair_load(const float *p)
{
    struct pair r;
    memcpy(r.v, p, sizeof r.v);
    return r;
}

static inline void pair_store(float *p, struct pair v)
{
    memcpy(p, v.v, sizeof v.v);
}

PAIR_FUNCTION struct pair pair_set(float v)
{
    struct pair r;
    FOR_LANES r.v[l_] = v;
    return r;
}

#define PAIR_OF_TWO(NAME, EXPRESSION)                                         \
    PAIR_FUNCTION struct pair NAME(struct pair u, struct pair v) {            \
        FOR_LANES                                                             \
        {                                                                     \
            const float a = u.v[l_], b = v.v[l_];                             \
            u.v[l_] = EXPRESSION;                                             \
        }                                                                     \
        return u;                                                             \
    }
PAIR_OF_TWO(add_pairs, a + b)
PAIR_OF_TWO(sub_pairs, a - b)
PAIR_OF_TWO(mul_pairs, a *b)
PAIR_OF_TWO(quot_pairs, a / b)
PAIR_OF_TWO(lesser_of, a < b ? a : b)
PAIR_OF_TWO(greater_of, a > b ? a : b)

/* Nearest integer, ties to even, for magnitudes up to 2^22. */
PAIR_FUNCTION struct pair nearest_pair(struct pair v)
{
    FOR_LANES v.v[l_] = v.v[l_] + 12582912.0f - 12582912.0f;
    return v;
}

PAIR_FUNCTION struct pair magnitude_of(struct pair v)
{
    FOR_LANES v.v[l_] = fabsf(v.v[l_]);
    return v;
}

PAIR_FUNCTION pair_mask less_pairs(struct pair u, struct pair v)
{
    pair_mask r;
    FOR_LANES r.m[l_] = u.v[l_] < v.v[l_];
    return r;
}

PAIR_FUNCTION pair_mask equal_pairs(struct pair u, struct pair v)
{
    pair_mask r;
    FOR_LANES r.m[l_] = u.v[l_] == v.v[l_];
    return r;
}

PAIR_FUNCTION pair_mask both_masks(pair_mask u, pair_mask v)
{
    FOR_LANES u.m[l_] &= v.m[l_];
    return u;
}

PAIR_FUNCTION struct pair keep_without(struct pair v, pair_mask m)
{
    FOR_LANES v.v[l_] = m.m[l_] ? 0.0f : v.v[l_];
    return v;
}

PAIR_FUNCTION struct pair choose_pair(pair_mask m, struct pair u,
                                      struct pair v)
{
    FOR_LANES v.v[l_] = m.m[l_] ? u.v[l_] : v.v[l_];
    return v;
}

#endif
