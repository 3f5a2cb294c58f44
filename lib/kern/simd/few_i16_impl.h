/* SPDX-License-Identifier: MIT */
/* few_i16_impl.h - few columns of 16-bit integers straight from blocks
 *
 * Included once by the file of a level, which first includes gemm_int_256.h and
 * rows_256.h, or gemm_int_512.h and rows_512.h, and defines LEVEL and VI_DP
 * (gemm_int_impl.h).
 *
 * lanes_blocks.h turns blocks into bytes; this file turns bytes into sums.
 */
#include "kern/simd/few_sums.h"

#define FEW_X_WORDS(n_scales, n_mins) GG_FEW16_X_WORDS(NR, n_mins)
#define TWO_APART                     0

/* A block of activations, in the order of few_columns.h. */
struct acts {
    const int32_t *pairs, *begin;
    const float *s, *sum;
};

static GG_ALWAYS_INLINE void acts_at(struct acts *x, const int32_t *at,
                                     unsigned n_scales)
{
    (void)n_scales;
    x->pairs = at;
    x->begin = at + GG_FEW16_BEGIN * NR;
    x->s = (const float *)(const void *)(x->begin + GG_FEW16_RUNS * NR);
    x->sum = x->s + NR;
}

/* acc += products of 16 steps, the i-th of the block. */
static GG_ALWAYS_INLINE void multiply_16(VI acc[COLS], const VI q[4],
                                         const struct acts *x, size_t i,
                                         int n_cols)
{
    const int32_t *at = x->pairs + i * 8 * NR;
    GG_UNROLL
    for (size_t t = 0; t < 4; t++) {
        const VI even = vi_and(q[t], vi_words(0x00ff00ff));
        const VI odd = vi_srl16(q[t], 8);
        GG_UNROLL
        for (int j = 0; j < n_cols; j++) {
            const int32_t *b = at + 2 * t * NR + j;
            const VI b0 = vi_words(b[0]), b1 = vi_words(b[NR]);
            VI_DP(acc[j], even, b0);
            VI_DP(acc[j], odd, b1);
        }
    }
}

/* The integer sums of n times 16 steps, from the i-th on. */
static GG_ALWAYS_INLINE void multiply_run(const struct out *o, VI acc[COLS],
                                          const VI *q, size_t i, size_t n)
{
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++) {
        const int32_t *begin = o->x->begin + i * NR + j;
        acc[j] = vi_zero();
        if (o->bias)
            acc[j] = vi_words(begin[0]);
        if (o->bias && n == 2)
            acc[j] = vi_add(acc[j], vi_words(begin[NR]));
    }
    GG_UNROLL
    for (size_t h = 0; h < n; h++)
        multiply_16(acc, q + 4 * h, o->x, i + h, o->n_cols);
}

/* ---- functions that few_impl.h calls ---- */

/* A scale that is d times a small integer: the integer. */
typedef VI scale_of_run;
static GG_ALWAYS_INLINE scale_of_run scale_of(VF d, VI sub)
{
    (void)d;
    return sub;
}

static GG_ALWAYS_INLINE void own_run(struct out *o, const VI q[PARTS],
                                     size_t i, VF d)
{
    VI acc[COLS];
    multiply_run(o, acc, q, 2 * i, 2);
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        o->part[j] = vf_fma(vf_of(acc[j]), d, o->part[j]);
}

/* n times 16 steps that share an integer. */
static GG_ALWAYS_INLINE void add_times(struct out *o, const VI *q, size_t i,
                                       size_t n, VI sub)
{
    VI acc[COLS];
    multiply_run(o, acc, q, i, n);
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        o->total[j] = vi_add(o->total[j], vi_mul(acc[j], sub));
}

static GG_ALWAYS_INLINE void sub_run(struct out *o, const VI q[PARTS],
                                     size_t i, VI sub)
{
    add_times(o, q, 2 * i, 2, sub);
}

static GG_ALWAYS_INLINE void half_run(struct out *o, const VI q[4], size_t i,
                                      VI sub)
{
    add_times(o, q, i, 1, sub);
}

static GG_ALWAYS_INLINE void fold_begin(struct out *o)
{
    (void)o;
}

static GG_ALWAYS_INLINE void fold_run(struct out *o, const VI q[4], size_t i,
                                      VI sub, unsigned n)
{
    (void)n;
    add_times(o, q, i, 1, sub);
}

static GG_ALWAYS_INLINE void one_run(struct out *o, const VI q[PARTS],
                                     size_t i)
{
    VI acc[COLS];
    multiply_run(o, acc, q, 2 * i, 2);
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        o->total[j] = vi_add(o->total[j], acc[j]);
}

static GG_ALWAYS_INLINE void own_end(struct out *o)
{
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        o->sum[j] = vf_fma(o->part[j], vf_all(o->x->s + j), o->sum[j]);
}

static GG_ALWAYS_INLINE void one_end(struct out *o, VF d)
{
    GG_UNROLL
    for (int j = 0; j < o->n_cols; j++)
        o->sum[j] = vf_fma(vf_of(o->total[j]), vf_mul(d, vf_all(o->x->s + j)),
                           o->sum[j]);
}

static GG_ALWAYS_INLINE void sub_end(struct out *o, VF d)
{
    one_end(o, d);
}

/* 32 bits hold any sum. */
#define fold_16 half_16
#define two_16  half_16

#define KINDS(X) X(own, 16) X(sub, 16) X(half, 16) X(one, 16)
#include "kern/simd/few_impl.h"

#define X(LEV, ID, NAME, KIND, N, SCALES, MINS, BIAS, BITS, ...)              \
    FEW(gg_kern_few16_##NAME##_##LEV, NAME, KIND, KIND##_16, N, SCALES, MINS, \
        BIAS, BITS)
GG_KERN_FEW_ALL(X, LEVEL)
