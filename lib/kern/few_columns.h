/* SPDX-License-Identifier: MIT */
/* few_columns.h - products of few columns, straight from rows of blocks
 *
 * What tiles of integers give (gemm_int.h, gemm_i8.h), bit for bit, without
 * panels of weights: bytes are made of blocks in registers, whose lanes are
 * rows, and what is computed in f32 is the same in the same order.
 *
 * Activations of 8 bits are read from their panels. Of 16 bits, pairs are put
 * into another order first: bytes of weights lie four steps to a lane, which
 * become two pairs, the even ones and the odd ones, by a mask and a shift. So a
 * block of 256 steps of nr columns is
 *
 *     int16_t i[64][2][nr][2], int32_t begin[16][nr], float s[nr],
 *         float sum[n_mins][nr]
 *
 * where i[t][h] has the steps 4 t + h and 4 t + h + 2, and begin what a sum of
 * 16 steps begins with: minus the sum of i times what weights have added to
 * have no sign (GG_KERN_FEW).
 *
 * Sub-scales are not multiplied into weights: the sum of a run is multiplied
 * by them, in 32 bits. What is added up so is a number that fits into these
 * (gemm_int.h), and all steps are exact modulo 2^32: they may wrap around on
 * the way.
 */
#ifndef GG_KERN_FEW_COLUMNS_H
#define GG_KERN_FEW_COLUMNS_H

#include "kern/gemm_i8.h"

/* Steps of GG_GEMM_PANEL_ROWS rows by one panel of activations. */
struct gg_kern_few {
    const void *w; /* the first row's first block */
    size_t w_stride;
    const void *next; /* the same number of bytes, of what will be multiplied
                       * next: they are asked for; or w */
    const void *x;    /* a panel of k steps */
    size_t k;         /* at most kc, a multiple of the type's block */
    unsigned n_cols;  /* 1 to nr */
    float *y;         /* column j at y + j * y_stride floats */
    size_t y_stride;
    int add; /* 0: y = sum; else y = y + sum */
};

/* X(level, type, its name, kind (x86/lanes.h), blocks of 256 steps, scales and
 * minima of those in products of 8 bits, what is added to its integers, bits
 * that they have then, most columns (MOST_16, MOST_8 of few_columns.c): of 16
 * bits with AVX2, with AVX-VNNI, of 8 likewise; with AVX-512) */
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

/* gg_kern_few8_q4_0_avx2 and so on: of 8 bits, without VNNI for types that use
 * up to 7; and of 16. */
#define X(level, type, name, ...) gg_kern_few_fn gg_kern_few8_##name##_##level;
GG_KERN_FEW_LOW(X, avx2)
GG_KERN_FEW_LOW(X, avx512)
GG_KERN_FEW_ALL(X, avxvnni)
GG_KERN_FEW_ALL(X, vnni512)
#undef X
#define X(level, type, name, ...)                                             \
    gg_kern_few_fn gg_kern_few16_##name##_##level;
GG_KERN_FEW_ALL(X, avx2)
GG_KERN_FEW_ALL(X, avxvnni)
GG_KERN_FEW_ALL(X, avx512)
GG_KERN_FEW_ALL(X, vnni512)
#undef X

/* The kernels of a level and width, [GG_N_DTYPES]; NULL for a level without. */
const struct gg_kern_few_row *gg_kern_few_of(unsigned level, unsigned width);

/* A block of activations of 16 bits in the order of few, 32-bit words. */
enum { GG_FEW16_BEGIN = 2 * GG_GEMM_I8_QUADS, GG_FEW16_RUNS = 16 };
#define GG_FEW16_X_WORDS(width, n_mins)                                       \
    ((size_t)(width) * (GG_FEW16_BEGIN + GG_FEW16_RUNS + 1 + (n_mins)))

/* Bytes of k steps of a panel's columns as kernels of g->few read them. */
size_t gg_kern_few_x_size(const struct gg_kern_gemm *g, size_t k);

/* A panel of activations of k steps in this order, its first n columns; the
 * others are 0. Not for forms of 8 bits: those are read as they are. */
void gg_kern_few_order(const struct gg_kern_gemm *g, int dtype_index,
                       const void *panel, size_t n, size_t k, void *to);

#endif
