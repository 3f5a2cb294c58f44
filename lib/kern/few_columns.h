/* SPDX-License-Identifier: MIT */
/* few_columns.h - products of few columns, straight from rows of blocks
 *
 * These kernels give the bits of the integer tiles (gemm_int.h, gemm_i8.h)
 * without panels of weights: blocks become bytes in registers whose lanes are
 * rows, and the f32 part has the same order.
 *
 * 8-bit activations are read from their panels. 16-bit activations are first
 * put into another order: a lane holds the weights of four steps as bytes,
 * which a mask and a shift turn into two pairs, the even and the odd steps. So
 * a block of 256 steps of nr columns is
 *
 *     int16_t i[64][2][nr][2], int32_t begin[16][nr], float s[nr],
 *         float sum[n_mins][nr]
 *
 * where i[t][h] has the steps 4 t + h and 4 t + h + 2, and begin is the initial
 * value of each sum of 16 steps: minus the sum of i times the bias that makes
 * weights unsigned (GG_KERN_FEW).
 *
 * Sub-scales are not multiplied into weights. They multiply the 32-bit sum of a
 * run. The total fits into 32 bits (gemm_int.h), so intermediate values may
 * wrap around.
 */
#ifndef GG_KERN_FEW_COLUMNS_H
#define GG_KERN_FEW_COLUMNS_H

#include "kern/gemm_i8.h"

/* Product of GG_GEMM_PANEL_ROWS rows and one panel of activations. */
struct gg_kern_few {
    const void *w; /* first block of the first row */
    size_t w_stride;
    /* Bytes that will be multiplied next, of the same size as those at w: they
     * are prefetched. No prefetch: equal to w. */
    const void *next;
    const void *x;   /* panel of activations of k steps */
    size_t k;        /* steps: a multiple of the type's block, at most kc */
    unsigned n_cols; /* 1 to nr */
    float *y;        /* column j at y + j * y_stride floats */
    size_t y_stride;
    int add; /* 0: y = sum; else y = y + sum */
};

/* X(level, TYPE, name, KIND, N, SCALES, MINS, BIAS, BITS, MOST...): a kernel.
 *
 * KIND     how the type stores its scales (x86/lanes.h)
 * N        blocks in 256 steps
 * SCALES   scales of 256 steps in 8-bit products
 * MINS     minima of 256 steps in 8-bit products
 * BIAS     added to the type's integers to make them unsigned
 * BITS     bits of the integers with the bias
 * MOST...  most columns: 16-bit products with AVX2, with AVX-VNNI; 8-bit
 *          products with AVX2, with AVX-VNNI; all products with AVX-512
 *          (MOST_16, MOST_8 of few_columns.c) */
#define GG_KERN_FEW_LOW(X, level)                                             \
    X(level, Q4_0, q4_0, own, 8, 8, 0, 8, 4, 8, 8, 8, 8, 8)                   \
    X(level, Q4_1, q4_1, own, 8, 8, 8, 0, 4, 8, 6, 8, 6, 8)                   \
    X(level, Q5_0, q5_0, own, 8, 8, 0, 16, 5, 8, 8, 8, 8, 8)                  \
    X(level, Q5_1, q5_1, own, 8, 8, 8, 0, 5, 8, 8, 8, 8, 8)                   \
    X(level, MXFP4, mxfp4, own, 8, 8, 0, 16, 5, 8, 8, 8, 8, 8)                \
    X(level, Q2_K, q2_k, two, 1, 1, 16, 0, 2, 8, 7, 8, 8, 8)                  \
    X(level, Q4_K, q4_k, sub, 1, 8, 8, 0, 4, 8, 8, 8, 8, 8)                   \
    X(level, Q5_K, q5_k, sub, 1, 8, 8, 0, 5, 8, 8, 8, 8, 8)                   \
    X(level, Q6_K, q6_k, half, 1, 16, 0, 32, 6, 8, 6, 8, 8, 8)                \
    X(level, TQ2_0, tq2_0, one, 1, 1, 0, 8, 4, 8, 7, 8, 8, 8)                 \
    X(level, TQ1_0, tq1_0, one, 1, 1, 0, 8, 4, 8, 8, 8, 8, 8)                 \
    X(level, Q1_0, q1_0, own, 2, 8, 0, 8, 4, 8, 8, 8, 8, 8)                   \
    X(level, Q2_0, q2_0, own, 4, 8, 0, 8, 4, 8, 8, 8, 8, 8)                   \
    X(level, Q6_0, q6_0, own, 8, 8, 0, 64, 7, 8, 8, 8, 8, 8)                  \
    X(level, IQ1_S, iq1_s, sub, 1, 8, 0, 16, 5, 8, 8, 8, 8, 8)                \
    X(level, IQ1_M, iq1_m, half, 1, 16, 0, 32, 6, 8, 8, 8, 8, 8)              \
    X(level, IQ2_XXS, iq2_xxs, sub, 1, 8, 0, 64, 7, 8, 6, 7, 6, 7)            \
    X(level, IQ2_XS, iq2_xs, half, 1, 16, 0, 64, 7, 8, 6, 8, 6, 8)            \
    X(level, IQ2_S, iq2_s, half, 1, 16, 0, 64, 7, 8, 8, 8, 8, 8)              \
    X(level, IQ3_XXS, iq3_xxs, sub, 1, 8, 0, 64, 7, 6, 6, 6, 6, 6)            \
    X(level, IQ3_S, iq3_s, sub, 1, 8, 0, 16, 5, 8, 8, 8, 8, 6)
#define GG_KERN_FEW_ALL(X, level)                                             \
    GG_KERN_FEW_LOW(X, level)                                                 \
    X(level, IQ4_NL, iq4_nl, own, 8, 8, 0, 128, 8, 8, 8, 8, 8, 8)             \
    X(level, Q8_0, q8_0, own, 8, 8, 0, 128, 8, 8, 8, 8, 8, 8)                 \
    X(level, Q8_1, q8_1, own, 8, 8, 0, 128, 8, 8, 8, 8, 8, 8)                 \
    X(level, Q8_K, q8_k, one, 1, 1, 0, 128, 8, 8, 8, 8, 8, 8)                 \
    X(level, Q3_K, q3_k, fold, 1, 1, 0, 4, 3, 8, 6, 8, 7, 8)                  \
    X(level, IQ4_XS, iq4_xs, sub, 1, 8, 0, 128, 8, 8, 8, 8, 8, 8)

/* Kernels of the levels. gg_kern_few8_q4_0_256 and so on have 8-bit
 * activations; without VNNI only types of up to 7 bits have one.
 * gg_kern_few16_... have 16-bit activations. */
#define X(level, type, name, ...) gg_kern_few_fn gg_kern_few8_##name##_##level;
GG_KERN_FEW_LOW(X, 256)
GG_KERN_FEW_LOW(X, avx512)
GG_KERN_FEW_ALL(X, avxvnni)
GG_KERN_FEW_ALL(X, vnni512)
GG_KERN_FEW_ALL(X, dotprod)
#undef X
#define X(level, type, name, ...)                                             \
    gg_kern_few_fn gg_kern_few16_##name##_##level;
GG_KERN_FEW_ALL(X, 256)
GG_KERN_FEW_ALL(X, avxvnni)
GG_KERN_FEW_ALL(X, avx512)
GG_KERN_FEW_ALL(X, vnni512)
#undef X

/* Table of kernels of a level and a width in bytes (1 or 2), [GG_N_DTYPES];
 * NULL: no kernels. */
const struct gg_kern_few_row *gg_kern_few_table(unsigned level,
                                                unsigned width);

/* Number of 32-bit words of a block of 16-bit activations in this order. */
enum { GG_FEW16_BEGIN = 2 * GG_GEMM_I8_QUADS, GG_FEW16_RUNS = 16 };
#define GG_FEW16_X_WORDS(width, n_mins)                                       \
    ((size_t)(width) * (GG_FEW16_BEGIN + GG_FEW16_RUNS + 1 + (n_mins)))

/* Size in bytes of k steps of a panel's columns in the order that g->few
 * reads. */
size_t gg_kern_few_x_size(const struct gg_kern_gemm *g, size_t k);

/* Convert a panel of 16-bit activations of k steps into this order: its first n
 * columns; the other columns become 0. 8-bit panels need no conversion. */
void gg_kern_few_order_columns(const struct gg_kern_gemm *g, int dtype_index,
                               const void *panel, size_t n, size_t k,
                               void *to);

#endif
