/* SPDX-License-Identifier: MIT */
/* gemm.h - kernels of dense products: pack panels, multiply tiles
 *
 * A product y[col][row] = sum over p of w[row][p] * x[col][p] is cut into
 * tiles of mr rows by nr columns. Both sides are first packed into panels, in
 * which the numbers that a block of steps p needs lie side by side. Rows are
 * the vector side (a row of y's tile is contiguous in memory, which is why a
 * tile is stored without shuffles), columns are broadcast.
 *
 * What goes in and comes out is weights of any type, activations in f32, sums
 * in f32. What lies in panels is the business of a form: its packers write
 * what its tile reads. The code that drives a product counts blocks and bytes
 * and names no type of a number. A form is a row of struct gg_kern_gemm for
 * each level:
 *
 *     exact   w panel [k][mr] f32, x panel [k][nr] f32; a block is one step.
 *             Weights are decoded by their type's kernel, then transposed.
 *     i16...  integers of 16 bits with scales: gemm_int.h
 *     i8...   of 8 bits: gemm_i8.h
 *     bf16    pairs of bf16: gemm_bf16.h
 *
 * Which form multiplies a type of weights in a precision:
 * gg_kern_gemm_form_of().
 */
#ifndef GG_KERN_GEMM_H
#define GG_KERN_GEMM_H

#include <stddef.h>
#include <stdint.h>

struct gg_kern; /* kern/kern.h */
struct gg_kern_gemm;

/* A matrix of weights as it lies in memory: rows of blocks of a type. */
struct gg_kern_gemm_rows {
    int dtype_index; /* GG_DT_...; must decode */
    const void *at;  /* the first row */
    size_t stride;   /* bytes from row to row; any alignment */
    size_t first;    /* element of each row with which it begins: a multiple of
                      * the type's block */
};

/* Multiply one tile.
 *
 * w         panel of weights, aligned to 64 bytes and to its block
 * x         panel of activations
 * n_blocks  blocks of steps in both; 0 is a sum of nothing
 * n_cols    columns wanted, 1..nr: the others are neither computed nor stored
 * y         column j at y + j * y_stride floats, mr floats each
 * add       0: y = sum; else y = y + sum
 *
 * The result does not depend on where in a tile an element lies nor on n_cols.
 * In the exact tiles each element is one chain of multiply-adds in order of p,
 * from 0, and then the addition to y; vector levels fuse multiply and add, C
 * does not. Contract: SUM.
 */
typedef void gg_kern_gemm_tile_fn(const void *w, const void *x,
                                  size_t n_blocks, unsigned n_cols, float *y,
                                  size_t y_stride, int add);

/* Put floats into a panel as its rows (or columns) first to first + n - 1, for
 * k steps from the start of its first block; other rows of these blocks are
 * not touched. What a last block has beyond k becomes 0.
 *
 * g        the form whose panel it is
 * src      element (r, p) at src[r * stride + p]; in the functions for steps
 *          (pack_wt) at src[p * stride + r]
 * stride   floats
 *
 * A panel of zero bytes is one of zeros. Contract of the exact ones: EXACT.
 */
typedef void gg_kern_gemm_pack_fn(const struct gg_kern_gemm *g, void *panel,
                                  size_t first, const float *src,
                                  size_t stride, size_t n, size_t k);

/* The same of a block that is integers already: src[r * stride + i] is what
 * 32 bits of row r have in the panel, n_groups of them. */
typedef void gg_kern_gemm_pack_groups_fn(const struct gg_kern_gemm *g,
                                         void *block, size_t first,
                                         const int32_t *src, size_t stride,
                                         size_t n, size_t n_groups);

/* Pack k steps of n_rows rows into ceil(n_rows / mr) panels of weights, one
 * after the other; rows missing in the last one are 0.
 *
 * g     the row of kern->gemm whose panels are wanted
 * buf   g->buf_size bytes, aligned to 64
 */
typedef void gg_kern_gemm_pack_rows_fn(const struct gg_kern *kern,
                                       const struct gg_kern_gemm *g,
                                       const struct gg_kern_gemm_rows *w,
                                       size_t n_rows, size_t k, void *panels,
                                       void *buf);

/* Decode n steps of GG_GEMM_PANEL_ROWS rows into an exact panel: what packing
 * their decoded floats would put there, bit for bit, but for a NaN's payload.
 *
 * src    the first row's block, others stride bytes further on; any alignment
 * dst    step p of row r goes to dst[p * width + r]
 * n      a multiple of the type's block
 */
enum { GG_GEMM_PANEL_ROWS = 16 };
typedef void gg_kern_panel_fn(const void *src, size_t stride, float *dst,
                              size_t width, size_t n);
/* X(type, its name): those that have one, for AVX-512. */
#define GG_KERN_PANELS(X)                                                     \
    X(F32, f32)                                                               \
    X(F16, f16)                                                               \
    X(BF16, bf16)                                                             \
    X(Q4_0, q4_0)                                                             \
    X(Q8_0, q8_0)                                                             \
    X(Q2_K, q2_k)                                                             \
    X(Q3_K, q3_k)                                                             \
    X(Q4_K, q4_k)                                                             \
    X(Q5_K, q5_k)                                                             \
    X(Q6_K, q6_k)                                                             \
    X(IQ4_XS, iq4_xs)
#define X(type, name) gg_kern_panel_fn gg_kern_panel_##name##_avx512;
GG_KERN_PANELS(X)
#undef X

/* Multiply m rows of w with n columns, fewer than narrow: y[j * y_stride + i] =
 * sum over p < k of w[i][p] * x[j * x_stride + p]; strides are in floats. */
typedef void gg_kern_gemm_dot_fn(const struct gg_kern *kern,
                                 const struct gg_kern_gemm_rows *w, size_t m,
                                 const float *x, size_t x_stride, size_t n,
                                 size_t k, float *y, size_t y_stride);

/* Products of a type with few columns, without panels of weights:
 * few_columns.h. */
struct gg_kern_few;
typedef void gg_kern_few_fn(const struct gg_kern_few *f);
struct gg_kern_few_row {
    gg_kern_few_fn *run; /* or NULL */
    unsigned most;       /* columns, at most GG_GEMM_FEW: with more, panels are
                    * faster */
};

/* What panels of integers hold (gemm_int.h, gemm_i8.h); 0 in others. */
struct gg_kern_gemm_ints {
    unsigned width;    /* bytes of an integer */
    unsigned n_scales; /* of a row in a block, which has as many runs of steps:
                        * an integer sum is of one run */
    unsigned n_mins;   /* likewise minima */
    unsigned bias;     /* of 8 bits: what weights have added, */
    unsigned top;      /* and the largest that they become */
    uint32_t
        most; /* of 16: that magnitudes of a column's integers in a run may
                        * sum up to */
};

/* A form at a level. */
struct gg_kern_gemm {
    unsigned mr, nr;         /* tile: rows, columns */
    unsigned k_block;        /* steps of a block; divides GG_GEMM_BUF_LEN */
    size_t w_block, x_block; /* bytes of a panel's block */
    unsigned kc;     /* steps per round, a multiple of 256 and of k_block */
    unsigned mc;     /* rows per block of rows, a multiple of mr: their panels
                        stay in L2 */
    unsigned round;  /* columns per round, of nr each. nr: their x panel stays
                        in L1, w panels pass by. More: x panels stay in L2, a
                        w panel meets them all before the next */
    unsigned narrow; /* fewer columns go through dot; 0: none do */
    size_t buf_size; /* bytes that pack_rows needs */
    gg_kern_gemm_pack_rows_fn *pack_rows;
    gg_kern_gemm_pack_fn *pack_w;  /* rows of weights */
    gg_kern_gemm_pack_fn *pack_wt; /* the same from a matrix of steps; NULL in
                                    * forms that attention does not use */
    gg_kern_gemm_pack_fn *pack_x;  /* columns of activations */
    gg_kern_gemm_tile_fn *tile;
    gg_kern_gemm_dot_fn *dot;                 /* NULL if narrow is 0 */
    gg_kern_gemm_pack_groups_fn *pack_groups; /* or NULL: pack_w alone */
    gg_kern_panel_fn *const *panel; /* [GG_N_DTYPES], each NULL where there is
                                     * none; or NULL */
    const struct gg_kern_few_row *few; /* likewise; multiply few columns as
                                        * tiles do */
    struct gg_kern_gemm_ints ints;
};

/* Of integers: the number of scales, then that of minima. U4 to U7: bytes that
 * have as many bits. */
enum gg_kern_gemm_form {
    GG_GEMM_EXACT,
    GG_GEMM_BF16,
    GG_GEMM_I16_8,
    GG_GEMM_I16_8_8,
    GG_GEMM_I16_1,
    GG_GEMM_I16_1_8,
    GG_GEMM_I16_1_16,
    GG_GEMM_U4_8,
    GG_GEMM_U5_8,
    GG_GEMM_U7_8,
    GG_GEMM_I8_8,
    GG_GEMM_U4_8_8,
    GG_GEMM_U5_8_8,
    GG_GEMM_U6_16,
    GG_GEMM_U7_16,
    GG_GEMM_U4_1,
    GG_GEMM_I8_1,
    GG_GEMM_I8_1_127, /* with a bias of 127, not 128 */
    GG_GEMM_U6_1_16,
    GG_GEMM_N_FORMS
};

/* How products of weights are computed (gguf/cpu.h): exact, or with
 * activations rounded, where the type of weights has a form for it. To 8 bits:
 * where the type or the processor has none, to 16; F16 and BF16, where the
 * processor multiplies pairs of bf16, by these. */
enum gg_kern_precision {
    GG_PRECISION_EXACT,
    GG_PRECISION_INT16,
    GG_PRECISION_INT8,
    GG_N_PRECISIONS
};

/* In kern->precision. */
enum gg_kern_gemm_form gg_kern_gemm_form_of(const struct gg_kern *kern,
                                            int dtype_index);

/* Fill k[GG_GEMM_N_FORMS]. Where they would not be faster than those of 16 bits
 * forms of 8 have no tile: those that use all bits, without VNNI; that of bf16
 * is for AVX-512 BF16 (and C: the reference). */
void gg_kern_gemm_init(struct gg_kern_gemm *k, uint32_t cpu);

/* Blocks of k steps, and bytes of a panel of so many. */
static inline size_t gg_kern_gemm_n_blocks(const struct gg_kern_gemm *g,
                                           size_t k)
{
    return (k + g->k_block - 1) / g->k_block;
}

static inline size_t gg_kern_gemm_w_size(const struct gg_kern_gemm *g,
                                         size_t k)
{
    return gg_kern_gemm_n_blocks(g, k) * g->w_block;
}

static inline size_t gg_kern_gemm_x_size(const struct gg_kern_gemm *g,
                                         size_t k)
{
    return gg_kern_gemm_n_blocks(g, k) * g->x_block;
}

/* For forms that have nothing better: rows are decoded and handed on to
 * pack_w some at a time, or multiplied as f32. Rows lie a cache line further
 * apart than their length in the buffer, so that a column of them does not fall
 * into one set of the cache. */
enum {
    GG_GEMM_BUF_ROWS = 16,
    GG_GEMM_BUF_LEN = 256, /* a multiple of every type's block */
    GG_GEMM_BUF_STRIDE = GG_GEMM_BUF_LEN + 16,
    GG_GEMM_BUF_SIZE =
        GG_GEMM_BUF_ROWS * GG_GEMM_BUF_STRIDE * (int)sizeof(float),
    /* Of as few columns decoding is most of the work, and transposing would be
     * as much again. What has a kernel for it is multiplied where it lies, with
     * the bits that decoding it first would give (codec.h, dots). */
    GG_GEMM_NARROW = 4,
    GG_GEMM_FEW = 8
};
gg_kern_gemm_pack_rows_fn gg_kern_gemm_pack_decoded;
/* n rows of one panel, at most GG_GEMM_BUF_ROWS, as its rows first and up. */
typedef void gg_kern_gemm_pack_some_fn(const struct gg_kern *kern,
                                       const struct gg_kern_gemm *g,
                                       const struct gg_kern_gemm_rows *w,
                                       size_t first, size_t n, size_t k,
                                       void *panel, float *buf);
/* What pack_rows does, by some. */
void gg_kern_gemm_pack_panels(const struct gg_kern *kern,
                              const struct gg_kern_gemm *g,
                              const struct gg_kern_gemm_rows *w, size_t n_rows,
                              size_t k, void *panels, void *buf,
                              gg_kern_gemm_pack_some_fn *some);
/* Ask for the n bytes after the n bytes at p: rows are far apart, and a short
 * part of each is read at a time, which hardware does not foresee. */
void gg_kern_gemm_prefetch(const void *p, size_t n);
gg_kern_gemm_dot_fn gg_kern_gemm_dot_decoded; /* n < GG_GEMM_NARROW */

gg_kern_gemm_tile_fn gg_kern_gemm_tile_c, gg_kern_gemm_tile_avx2,
    gg_kern_gemm_tile_avx512;
gg_kern_gemm_pack_fn gg_kern_gemm_pack_w_c, gg_kern_gemm_pack_w_avx2,
    gg_kern_gemm_pack_w_avx512;
gg_kern_gemm_pack_fn gg_kern_gemm_pack_wt_c, gg_kern_gemm_pack_wt_avx2,
    gg_kern_gemm_pack_wt_avx512;
gg_kern_gemm_pack_fn gg_kern_gemm_pack_x_c, gg_kern_gemm_pack_x_avx2,
    gg_kern_gemm_pack_x_avx512;

/* Shapes of tiles and blocks of a vector's length: for kernels and rows. KC is
 * of exact panels. */
enum {
    GG_GEMM_MR_C = 8,
    GG_GEMM_NR_C = 4,
    GG_GEMM_KC_C = 512,
    GG_GEMM_MC_C = 64,
    GG_GEMM_ROUND_C = GG_GEMM_NR_C,
    GG_GEMM_MR_AVX2 = 16,
    GG_GEMM_NR_AVX2 = 6,
    GG_GEMM_KC_AVX2 = 256,
    GG_GEMM_MC_AVX2 = 128,
    GG_GEMM_ROUND_AVX2 = 16 * GG_GEMM_NR_AVX2,
    GG_GEMM_MR_AVX512 = 32,
    GG_GEMM_NR_AVX512 = 12,
    GG_GEMM_KC_AVX512 = 512,
    GG_GEMM_MC_AVX512 = 128,
    GG_GEMM_ROUND_AVX512 = GG_GEMM_NR_AVX512,
    GG_GEMM_MR_INT512 = 32, /* of integers in as long vectors */
    GG_GEMM_NR_INT512 = 6,
    GG_GEMM_KC_INT512 = GG_GEMM_KC_AVX512,
    GG_GEMM_MC_INT512 = GG_GEMM_MC_AVX512,
    GG_GEMM_ROUND_INT512 = GG_GEMM_NR_INT512
};

#endif
