/* SPDX-License-Identifier: MIT */
/* gemm_i8.h - products of bytes: panels with 8-bit activations
 *
 * These panels differ from those of gemm_int.h as follows. Activations are
 * rounded to 8-bit integers, up to 127, with a scale for each 32 steps. Weights
 * are unsigned bytes, q + bias; the bias belongs to the form and is 0 for types
 * without a sign. The bias adds the same amount to the sum of a run for all
 * rows, so sums begin with that amount negated.
 *
 * A run has 32 or 16 steps. Its sum is at most 32 * 255 * 127 and begins at
 * most 32 * 128 * 127 from 0: below 2^21.
 *
 * Without VNNI bytes are multiplied by vpmaddubsw, which adds two products in
 * 16 bits and saturates above 32767. That pays where weights have less than 8
 * bits, so that n vectors of such sums, each at most 2 * top * 127, can be
 * added in 16 bits (GG_GEMM_I8_SUMS):
 *
 *     bits  types                                         top   n   sum
 *     4     Q4_0, Q4_1, Q4_K, Q1_0, Q2_0, TQ              15    8   30480
 *     5     Q5_0, Q5_1, Q5_K, MXFP4, IQ3_S, IQ1_S         31    4   31496
 *     6     Q6_K, IQ1_M, Q2_K (whose largest is 45)       63    2   32004
 *     7     Q6_0, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS         127   1   32258
 *
 * Types that use 8 bits are multiplied as 16-bit pairs there: splitting weights
 * into high and low parts, or moving signs from weights to activations, takes
 * the same number of instructions.
 *
 * A block of a weights panel has 256 steps of mr rows, a block of an
 * activations panel 256 steps of nr columns:
 *
 *     uint8_t q[64][mr][4], float d[n_scales][mr], float m[n_mins][mr]
 *     int8_t i[64][nr][4], int32_t begin[n_runs][nr], float s[8][nr],
 *         float sum[n_mins][nr]
 *
 * where sum is already multiplied by s.
 *
 * With dot products of AArch64, which multiply signed bytes, weights of types
 * that use 7 or 8 bits are signed, with a bias of 0 (of -1 in the form whose
 * bias is 127). Activations of two columns lie together, so that two loads get
 * their 32 steps:
 *
 *     int8_t i[8][nr / 2][4][2][8]
 *
 * where i[r][c][t][h] has 8 steps from 32 r + 8 t on of column 2 c + h. With
 * I8MM, which multiplies matrices of two rows by 8 steps, weights are
 *
 *     int8_t q[32][mr][8]
 */
#ifndef GG_KERN_GEMM_I8_H
#define GG_KERN_GEMM_I8_H

#include "kern/gemm_int.h"

#include <assert.h>

enum {
    GG_GEMM_I8_QUADS = GG_GEMM_INT_STEPS / 4,
    /* scales of activations in a block */
    GG_GEMM_I8_SCALES = GG_GEMM_INT_STEPS / 32,
    GG_GEMM_I8_MOST = 127
};

/* Runs in a block: the steps of a run share the scale of weights and that of
 * activations. */
#define GG_GEMM_I8_RUNS(n_scales)                                             \
    ((n_scales) > GG_GEMM_I8_SCALES ? (n_scales) : GG_GEMM_I8_SCALES)

#define GG_GEMM_I8_W_BLOCK(width, n_scales, n_mins)                           \
    ((width)*4 * (GG_GEMM_I8_QUADS + (n_scales) + (n_mins)))
#define GG_GEMM_I8_X_BLOCK(width, n_scales, n_mins)                           \
    ((width)*4 * (GG_GEMM_I8_QUADS + GG_GEMM_I8_RUNS(n_scales) +              \
                  GG_GEMM_I8_SCALES + (n_mins)))

/* Order of bytes in panels. */
enum gg_gemm_i8_order {
    GG_GEMM_I8_BY_QUADS,   /* four steps lie together on both sides */
    GG_GEMM_I8_BY_PAIRS,   /* pairs of columns, four steps of weights */
    GG_GEMM_I8_BY_MATRICES /* pairs of columns, eight steps of weights */
};

/* Where step p of row r, or of column c, is in a block. */
static inline size_t gg_gemm_i8_w_index(const struct gg_kern_gemm *g, size_t p,
                                        size_t r)
{
    const size_t n = g->ints.order == GG_GEMM_I8_BY_MATRICES ? 8 : 4;
    return (p / n * g->mr + r) * n + p % n;
}

static inline size_t gg_gemm_i8_x_index(const struct gg_kern_gemm *g, size_t p,
                                        size_t c)
{
    if (g->ints.order == GG_GEMM_I8_BY_QUADS)
        return (p / 4 * g->nr + c) * 4 + p % 4;
    return p / 32 * 32 * g->nr + c / 2 * 64 + p % 32 / 8 * 16 + c % 2 * 8 +
           p % 8;
}

struct gg_gemm_i8_x {
    int8_t *i; /* gg_gemm_i8_x_index() */
    int32_t *begin;
    float *s, *sum;
};

static inline struct gg_gemm_i8_x gg_gemm_i8_x_at(const struct gg_kern_gemm *g,
                                                  void *panel, size_t block)
{
    unsigned char *p = (unsigned char *)panel + block * g->x_block;
    int32_t *begin =
        (int32_t *)(void *)(p + (size_t)GG_GEMM_I8_QUADS * g->nr * 4);
    float *s =
        (float *)(void *)(begin +
                          (size_t)GG_GEMM_I8_RUNS(g->ints.n_scales) * g->nr);
    return (struct gg_gemm_i8_x){ (int8_t *)p, begin, s,
                                  s + (size_t)GG_GEMM_I8_SCALES * g->nr };
}

/* As those of 16 bits. */
gg_kern_gemm_pack_fn gg_kern_i8_pack_w_c;
gg_kern_gemm_pack_fn gg_kern_i8_pack_x_c, gg_kern_i8_pack_x_256,
    gg_kern_i8_pack_pairs_256;
gg_kern_gemm_pack_groups_fn gg_kern_i8_pack_groups_i8mm;

/* gg_kern_i8_tile_8_8_avxvnni and so on: of scales, of minima, level. */
#define GG_GEMM_I8_TILES(X, level)                                            \
    X(8, 0, level)                                                            \
    X(8, 8, level) X(16, 0, level) X(1, 0, level) X(1, 16, level)
#define X(scales, mins, level)                                                \
    gg_kern_gemm_tile_fn gg_kern_i8_tile_##scales##_##mins##_##level;
GG_GEMM_I8_TILES(X, c)
GG_GEMM_I8_TILES(X, avxvnni)
GG_GEMM_I8_TILES(X, vnni512)
GG_GEMM_I8_TILES(X, dotprod)
GG_GEMM_I8_TILES(X, i8mm)
#undef X

/* gg_kern_u4_tile_8_0_256 and so on: of bits, of scales, of minima, level
 * without VNNI. */
#define GG_GEMM_U_TILES(X, level)                                             \
    X(4, 8, 0, level)                                                         \
    X(5, 8, 0, level)                                                         \
    X(7, 8, 0, level)                                                         \
    X(4, 8, 8, level)                                                         \
    X(5, 8, 8, level)                                                         \
    X(6, 16, 0, level)                                                        \
    X(7, 16, 0, level) X(4, 1, 0, level) X(6, 1, 16, level)
#define X(bits, scales, mins, level)                                          \
    gg_kern_gemm_tile_fn gg_kern_u##bits##_tile_##scales##_##mins##_##level;
GG_GEMM_U_TILES(X, 256)
GG_GEMM_U_TILES(X, avx512)
#undef X

/* Vectors of two products each that fit into 16 bits when they are added. */
#define GG_GEMM_I8_SUMS(bits) (32767 / (2 * ((1 << (bits)) - 1) * 127))
static_assert(GG_GEMM_I8_SUMS(4) == 8 && GG_GEMM_I8_SUMS(5) == 4 &&
                  GG_GEMM_I8_SUMS(6) == 2 && GG_GEMM_I8_SUMS(7) == 1,
              "divisors of a run's quads");

#endif
