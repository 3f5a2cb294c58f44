/* SPDX-License-Identifier: MIT */
/* gemm_int.h - products of integers: integers as types store them, with scales
 *
 * Weights of most types are integers times a scale, less a minimum: w = d * q -
 * m. Activations of a block of 256 steps are rounded to 16-bit integers, x = s
 * * i, relative to the largest one of the block. Then
 *
 *     sum of w * x = s * (sum over runs of d * sum of q * i
 *                         - sum over groups of m * sum of i)
 *
 * A run is the steps that share d, a group the steps that share m. Sums of q *
 * i and of i are integers and exact; the rest is f32. So the result differs
 * from an exact product only by the rounding of x and of f32.
 *
 * The sum of a run has to fit into 32 bits. With |q| <= Q it fits if the
 * magnitudes of i add up to at most (2^31 - 1) / Q. Where they would exceed
 * that, the packer takes a coarser s. So no product can overflow, whatever the
 * weights and activations are, and long runs cost only the precision that the
 * activations require: the largest of 256 normally distributed numbers still
 * gets 7000 or more if Q is 4096.
 *
 * A block of a weights panel has 256 steps of mr rows,
 *
 *     int16_t q[128][mr][2], float d[n_scales][mr], float m[n_mins][mr]
 *
 * where m is negated. A block of an activations panel has 256 steps of nr
 * columns,
 *
 *     int16_t i[128][nr][2], float s[nr], float sum[n_mins][nr]
 *
 * where sum is already multiplied by s. Pair t of each 32 steps has the steps t
 * and t + 16.
 */
#ifndef GG_KERN_GEMM_INT_H
#define GG_KERN_GEMM_INT_H

#include "kern/gemm.h"

#include <limits.h>

enum {
    GG_GEMM_INT_STEPS = 256,
    GG_GEMM_INT_PAIRS = GG_GEMM_INT_STEPS / 2,
    GG_GEMM_INT_MOST = 32767 /* magnitude of an activation */
};

/* Size in bytes of a block of a panel of width rows or columns. */
#define GG_GEMM_INT_W_BLOCK(width, n_scales, n_mins)                          \
    ((width)*4 * (GG_GEMM_INT_PAIRS + (n_scales) + (n_mins)))
#define GG_GEMM_INT_X_BLOCK(width, n_mins)                                    \
    ((width)*4 * (GG_GEMM_INT_PAIRS + 1 + (n_mins)))

/* Parts of a block of weights, of any width of integers. */
struct gg_gemm_int_w {
    /* pair p of row r is q[(p * mr + r) * 2] and the next; in 8-bit forms the
     * bytes of gemm_i8.h */
    int16_t *q;
    float *d, *m;
};
struct gg_gemm_int_x {
    int16_t *i;
    float *s, *sum;
};

static inline struct gg_gemm_int_w
gg_gemm_int_w_at(const struct gg_kern_gemm *g, void *panel, size_t block)
{
    unsigned char *p = (unsigned char *)panel + block * g->w_block;
    float *d = (float *)(void *)(p + (size_t)GG_GEMM_INT_STEPS * g->mr *
                                         g->ints.width);
    return (struct gg_gemm_int_w){ (int16_t *)(void *)p, d,
                                   d + (size_t)g->ints.n_scales * g->mr };
}

static inline struct gg_gemm_int_x
gg_gemm_int_x_at(const struct gg_kern_gemm *g, void *panel, size_t block)
{
    unsigned char *p = (unsigned char *)panel + block * g->x_block;
    float *s = (float *)(void *)(p + (size_t)GG_GEMM_INT_PAIRS * g->nr * 4);
    return (struct gg_gemm_int_x){ (int16_t *)(void *)p, s, s + g->nr };
}

/* Limit of the sum of magnitudes of a column in a run, for weights of magnitude
 * up to q. A run of 32 steps adds up to at most 32 * 32767, which times 128 is
 * below 2^31. */
#define GG_GEMM_INT_LIMIT(q) (INT32_MAX / (q))

/* Factor by which a scale has to grow so that no run's magnitudes add up to
 * more than most.
 *
 * sum       largest sum of magnitudes of a run, whose largest integer is 32767
 * n_steps   steps of a run
 *
 * With f = (sum + n + 8) / (most - n - 8) and n = n_steps / 2: |x / s| <= |i| +
 * 1/2, so after dividing by f and rounding again the sum is at most (sum + n) /
 * f + n < most - 8 + the errors of a few f32 roundings. Those are 2^-22 of
 * most: less than 8 for most < 2^23, as all callers have it. */
static inline float gg_gemm_int_coarsen_scale(int32_t sum, uint32_t most,
                                              unsigned n_steps)
{
    const int32_t n = (int32_t)n_steps / 2 + 8;
    if ((uint32_t)sum <= most)
        return 1;
    return (float)(sum + n) / (float)((int32_t)most - n);
}

/* A block whose largest activation is below this counts as 0, so that 32767 /
 * largest is finite. */
#define GG_GEMM_INT_LEAST 0x1p-110f

/* Pack rows through floats: blocks are decoded with the scale 1 (or the one
 * that gives integers). w->dtype_index must be a type of the form. */
gg_kern_gemm_pack_rows_fn gg_kern_gemm_pack_ints;

/* Convert blocks to integers as panels hold them, and their scales.
 *
 * n     elements, at most 256 and a multiple of the type's block
 * bias  added to each integer in 8-bit forms
 * q     n bytes, or n / 2 pairs as they lie in a panel
 * d     scale of each 32 steps, or of each 16 if the type has more scales; in
 *       forms whose integers include sub-scales (folded), of each block
 * m     negated minima of each 32 or 16 steps, for types with minima
 *
 * Integers and scales are those of the decoder, bit for bit (gemm_int.c).
 */
typedef void gg_kern_ints_fn(const void *src, size_t n, int bias, void *q,
                             float *d, float *m);
/* X(type, its name, scales of 16 steps, folded in 8 bits, in 16) */
#define GG_KERN_INTS(X)                                                       \
    X(Q4_0, q4_0, 0, 0, 0)                                                    \
    X(Q4_1, q4_1, 0, 0, 0)                                                    \
    X(Q5_0, q5_0, 0, 0, 0)                                                    \
    X(Q5_1, q5_1, 0, 0, 0)                                                    \
    X(Q6_0, q6_0, 0, 0, 0)                                                    \
    X(Q8_0, q8_0, 0, 0, 0)                                                    \
    X(Q8_1, q8_1, 0, 0, 0)                                                    \
    X(IQ4_NL, iq4_nl, 0, 0, 0)                                                \
    X(MXFP4, mxfp4, 0, 0, 0)                                                  \
    X(Q2_K, q2_k, 1, 1, 1)                                                    \
    X(Q3_K, q3_k, 1, 1, 1)                                                    \
    X(Q4_K, q4_k, 0, 0, 1)                                                    \
    X(Q5_K, q5_k, 0, 0, 1)                                                    \
    X(Q6_K, q6_k, 1, 0, 1)                                                    \
    X(IQ4_XS, iq4_xs, 0, 0, 1)                                                \
    X(IQ1_S, iq1_s, 0, 0, 1)                                                  \
    X(IQ1_M, iq1_m, 1, 0, 1)                                                  \
    X(IQ2_XXS, iq2_xxs, 0, 0, 1)                                              \
    X(IQ2_XS, iq2_xs, 1, 0, 1)                                                \
    X(IQ2_S, iq2_s, 1, 0, 1)                                                  \
    X(IQ3_XXS, iq3_xxs, 0, 0, 1)                                              \
    X(IQ3_S, iq3_s, 0, 0, 1)                                                  \
    X(Q8_K, q8_k, 0, 0, 0)                                                    \
    X(Q1_0, q1_0, 0, 0, 0)                                                    \
    X(Q2_0, q2_0, 0, 0, 0)                                                    \
    X(TQ1_0, tq1_0, 0, 0, 0)                                                  \
    X(TQ2_0, tq2_0, 0, 0, 0)
#define X(type, name, halves, folded_8, folded_16)                            \
    gg_kern_ints_fn gg_kern_ints8_##name##_256, gg_kern_ints16_##name##_256;
GG_KERN_INTS(X)
#undef X

/* Function that all x86 levels use. */
gg_kern_gemm_pack_groups_fn gg_kern_int_pack_groups_256;

/* pack_w takes floats that are integers and leaves scales and minima alone. A
 * block of less than 256 steps is padded with 0. */
gg_kern_gemm_pack_fn gg_kern_i16_pack_w_c;
/* Round to nearest, ties to even. A block with an infinity or a NaN becomes 0
 * times NaN. Contract: EXACT. */
gg_kern_gemm_pack_fn gg_kern_i16_pack_x_c, gg_kern_i16_pack_x_256;

/* Tiles: gg_kern_i16_tile_SCALES_MINS_LEVEL. They have the shapes of the exact
 * tiles. Integer sums are exact; in f32 each element is a chain over the runs
 * and groups of a block, added to those of the blocks before. A tile reads all
 * columns of a panel, which pack_x or zeros fill. */
#define GG_GEMM_I16_FORMS(X, level)                                           \
    X(8, 0, 128, level)                                                       \
    X(8, 8, 128, level)                                                       \
    X(1, 0, 4096, level)                                                      \
    X(1, 8, 1953, level)                                                      \
    X(1, 16, 45, level)
#define X(scales, mins, most, level)                                          \
    gg_kern_gemm_tile_fn gg_kern_i16_tile_##scales##_##mins##_##level;
GG_GEMM_I16_FORMS(X, c)
GG_GEMM_I16_FORMS(X, 256)
GG_GEMM_I16_FORMS(X, avxvnni)
GG_GEMM_I16_FORMS(X, avx512)
GG_GEMM_I16_FORMS(X, vnni512)
#undef X

/* Define a tile of the table: multiply_tile() with constants, which may be more
 * than the numbers of scales and minima. */
#define GG_GEMM_INT_TILE(name, ...)                                           \
    void name(const void *w, const void *x, size_t n_blocks, unsigned n_cols, \
              float *y, size_t y_stride, int add)                             \
    {                                                                         \
        multiply_tile(w, x, n_blocks, n_cols, y, y_stride, add, __VA_ARGS__); \
    }

#endif
