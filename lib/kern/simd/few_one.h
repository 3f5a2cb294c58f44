/* SPDX-License-Identifier: MIT */
/* few_one.h - one column: bytes of blocks are multiplied as they are produced
 *
 * Included by few_impl.h.
 */
enum kind { KIND_own, KIND_sub, KIND_half, KIND_fold, KIND_two, KIND_one };

struct to {
    struct out *o;
    size_t n;
    /* arrays outside the struct, for the reason in few_sums.h */
    VF d, *min;
    /* constants once this is inlined: */
    int bias, apart, min_first;
    enum kind kind;
};
#define TO struct to

static GG_ALWAYS_INLINE void put_own(struct to *to, const VI q[PARTS],
                                     size_t i, VF d)
{
    own_run(to->o, q, i, d);
}

static GG_ALWAYS_INLINE void put_d(struct to *to, VF d)
{
    to->d = d;
}

static GG_ALWAYS_INLINE void put_sub(struct to *to, const VI q[PARTS],
                                     size_t i, VI by)
{
    sub_run(to->o, q, i, scale_of(to->d, by));
}

static GG_ALWAYS_INLINE void put_half(struct to *to, const VI q[4], size_t i,
                                      VI by)
{
    if (to->kind == KIND_half)
        half_run(to->o, q, i, scale_of(to->d, by));
    else
        fold_run(to->o, q, i, by, to->kind == KIND_two ? two_shift(i) : 0);
}

static GG_ALWAYS_INLINE void put_run(struct to *to, const VI q[PARTS],
                                     size_t i)
{
    one_run(to->o, q, i);
}

static GG_ALWAYS_INLINE void put_min(struct to *to, size_t i, VF m)
{
    to->min[i] = m;
}

#include "kern/simd/lanes_blocks.h"
#include "kern/simd/lanes_codes.h"

static GG_ALWAYS_INLINE void end_block(struct to *to)
{
    if (to->kind == KIND_own)
        own_end(to->o);
    else if (to->kind == KIND_sub || to->kind == KIND_half)
        sub_end(to->o, to->d);
    else
        one_end(to->o, to->d);
}

#define ONE_OF(NAME)      NAME##_one
#define ONE_DECLARE(NAME) static cols_fn NAME##_one;
#define ONE_DEFINE(NAME, N, KIND, BITS)                                       \
    static GG_ALWAYS_INLINE void NAME##_one_block(                            \
        struct out *o, const struct type *t, const struct rows *r, size_t n)  \
    {                                                                         \
        const uintptr_t end = *r->ahead + ROWS * t->size;                     \
        VF min[16];                                                           \
        struct to to = { .o = o,                                              \
                         .min = min,                                          \
                         .n = n,                                              \
                         .bias = o->bias,                                     \
                         .apart = TWO_APART,                                  \
                         .kind = KIND_##KIND };                               \
        if (to.kind == KIND_fold)                                             \
            fold_begin(o);                                                    \
        BLOCKS_##N(NAME, &to, r);                                             \
        prefetch_rest(r, end);                                                \
        end_block(&to);                                                       \
        add_mins(o, min, t->n_mins *n / GG_GEMM_INT_STEPS);                   \
    }                                                                         \
    static void NAME##_one(const struct gg_kern_few *f, const struct type *t) \
    {                                                                         \
        (void)t; /* read by the compiler only */                              \
        some_cols(f, &type_##NAME, NAME##_one_block, 1, BITS);                \
    }
