/* SPDX-License-Identifier: MIT */
/* gemm.h - kernels of dense products: pack panels, multiply tiles
 *
 * A product y[col][row] = sum over p of w[row][p] * x[col][p] is cut into tiles
 * of mr rows by nr columns. Both sides are first packed into panels, which hold
 * the numbers of a block of steps p side by side. Rows are the vector side: the
 * rows of a tile of y are contiguous in memory, so that it is stored without
 * shuffles. Columns are broadcast.
 *
 * Inputs are weights of any type and f32 activations; results are f32. The
 * format of panels is private to a form: its packers write it and its tile
 * reads it. The driver of a product counts blocks and bytes only. A form has a
 * row of struct gg_kern_gemm for each level:
 *
 *     exact   w panel [k][mr] f32, x panel [k][nr] f32; a block is one step.
 *             Weights are decoded by their type's kernel, then transposed.
 *     i16...  16-bit integers with scales: gemm_int.h
 *     i8...   8-bit integers with scales: gemm_i8.h
 *     bf16    pairs of bf16: gemm_bf16.h
 *
 * gemm_tiles.h has the panels of 8-bit integers and of bf16 for processors that
 * multiply matrices.
 *
 * gg_kern_gemm_form_of() gives the form for a type of weights and a precision.
 */
#ifndef GG_KERN_GEMM_H
#define GG_KERN_GEMM_H

#include <stdbool.h>
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

/* Pack floats as rows (or columns) first to first + n - 1 of a panel.
 *
 * g        form of the panel
 * panel    k steps from the start of its first block. Other rows of these
 *          blocks keep their values; steps of the last block beyond k become 0.
 * src      element (r, p) is src[r * stride + p]; in functions that take steps
 *          (pack_wt) it is src[p * stride + r]
 * stride   floats
 *
 * A panel of zero bytes is a panel of zeros. Contract of the exact packers:
 * EXACT.
 */
typedef void gg_kern_gemm_pack_fn(const struct gg_kern_gemm *g, void *panel,
                                  size_t first, const float *src,
                                  size_t stride, size_t n, size_t k);

/* Pack one block whose numbers are integers already. src[r * stride + i] is
 * 32-bit group i of row r as the panel stores it; a row has n_groups groups. */
typedef void gg_kern_gemm_pack_groups_fn(const struct gg_kern_gemm *g,
                                         void *block, size_t first,
                                         const int32_t *src, size_t stride,
                                         size_t n, size_t n_groups);

/* Pack k steps of n_rows rows into ceil(n_rows / mr) consecutive panels of
 * weights. Rows missing in the last panel become 0.
 *
 * g     row of kern->gemm for the form of the panels
 * buf   g->buf_size bytes, aligned to 64
 */
typedef void gg_kern_gemm_pack_rows_fn(const struct gg_kern *kern,
                                       const struct gg_kern_gemm *g,
                                       const struct gg_kern_gemm_rows *w,
                                       size_t n_rows, size_t k, void *panels,
                                       void *buf);

/* Decode n steps of GG_GEMM_PANEL_ROWS rows into an exact panel. The result is
 * that of packing the decoded floats, bit for bit except for a NaN's payload.
 *
 * src    block of the first row; others are stride bytes further on; any
 *        alignment
 * dst    step p of row r goes to dst[p * width + r]
 * n      a multiple of the type's block
 */
enum { GG_GEMM_PANEL_ROWS = 16 };
typedef void gg_kern_panel_fn(const void *src, size_t stride, float *dst,
                              size_t width, size_t n);
/* X(TYPE, name): types with such a kernel, for AVX-512. */
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
    gg_kern_few_fn *run; /* NULL: panels are used for any number of columns */
    /* Largest number of columns for which this is faster than panels; at most
     * GG_GEMM_FEW. */
    unsigned most;
};

/* Prepare the calling thread for the tile() of g, and undo that. */
typedef void gg_kern_gemm_enter_fn(const struct gg_kern_gemm *g);
typedef void gg_kern_gemm_leave_fn(void);

/* Contents of integer panels (gemm_int.h, gemm_i8.h). All 0 for other forms. */
struct gg_kern_gemm_ints {
    unsigned width; /* bytes of an integer */
    /* Scales of a row in a block: one per run of steps. An integer sum covers
     * one run. */
    unsigned n_scales;
    unsigned n_mins; /* minima of a row in a block */
    int bias;        /* 8-bit forms: bias of weights */
    int top;         /* 8-bit forms: largest weight with the bias */
    /* 16-bit forms: limit of the sum of magnitudes of a column in a run */
    uint32_t most;
    bool tiles;    /* 8-bit forms: panels are those of gemm_tiles.h */
    uint8_t order; /* other 8-bit forms: enum gg_gemm_i8_order */
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
    gg_kern_gemm_pack_fn *pack_w; /* rows of weights */
    /* packs rows of weights that are stored step by step; NULL in forms that
     * attention does not use */
    gg_kern_gemm_pack_fn *pack_wt;
    gg_kern_gemm_pack_fn *pack_x; /* columns of activations */
    gg_kern_gemm_tile_fn *tile;
    gg_kern_gemm_dot_fn *dot;                 /* NULL if narrow is 0 */
    gg_kern_gemm_pack_groups_fn *pack_groups; /* NULL: only pack_w */
    /* [GG_N_DTYPES], kernels that decode into panels; an entry may be NULL.
     * NULL: no such kernels. */
    gg_kern_panel_fn *const *panel;
    /* [GG_N_DTYPES], kernels for few columns, which give the bits of the tiles;
     * an entry may be NULL. NULL: no such kernels. */
    const struct gg_kern_few_row *few;
    /* Form with the same bits whose panels `few' reads. NULL: this form. */
    const struct gg_kern_gemm *few_form;
    /* Called before the first tile() of a thread and after its last one. The
     * thread computes nothing but tiles and panels in between. NULL: tiles need
     * no preparation. */
    gg_kern_gemm_enter_fn *enter;
    gg_kern_gemm_leave_fn *leave;
    struct gg_kern_gemm_ints ints;
};

/* Forms. In names of integer forms: number of scales, then number of minima. U4
 * to U7: bytes that use 4 to 7 bits. */
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
    GG_GEMM_I8_1_127, /* its bias is 127 instead of 128 */
    GG_GEMM_U6_1_16,
    GG_GEMM_N_FORMS
};

/* Precision of products with weights (gguf/cpu.h): exact, or with activations
 * rounded to 16 or 8 bits if the type of the weights has such a form. INT8
 * falls back to 16 bits if the type or the processor has no 8-bit form. With
 * INT8, F16 and BF16 weights are multiplied as pairs of bf16 if the processor
 * has instructions for them. */
enum gg_kern_precision {
    GG_PRECISION_EXACT,
    GG_PRECISION_INT16,
    GG_PRECISION_INT8,
    GG_N_PRECISIONS
};

/* Form for a type of weights in kern->precision. */
enum gg_kern_gemm_form gg_kern_gemm_form_of(const struct gg_kern *kern,
                                            int dtype_index);

/* Fill k[GG_GEMM_N_FORMS] for the levels in cpu. 8-bit forms have no tile where
 * it would not be faster than the 16-bit form: forms that use all 8 bits,
 * without VNNI. The bf16 form needs AVX-512 BF16, BF16 of AArch64, or C (the
 * reference). With amx, gg_kern_cpu_request() has returned cpu before a tile
 * runs. */
void gg_kern_gemm_init(struct gg_kern_gemm *k, uint32_t cpu);

/* Number of blocks in k steps, and size in bytes of a panel of k steps. */
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

/* Generic packing: decode some rows at a time and pass them to pack_w, or
 * multiply them as f32. Rows in the buffer lie a cache line further apart than
 * their length, so that elements of a column fall into different sets of the
 * cache. */
enum {
    GG_GEMM_BUF_ROWS = 16,
    GG_GEMM_BUF_LEN = 256, /* a multiple of every type's block */
    GG_GEMM_BUF_STRIDE = GG_GEMM_BUF_LEN + 16,
    GG_GEMM_BUF_SIZE =
        GG_GEMM_BUF_ROWS * GG_GEMM_BUF_STRIDE * (int)sizeof(float),
    /* Fewest columns for which panels pay. With fewer, decoding is most of the
     * work and transposing would double it: rows are multiplied where they lie
     * if the type has a kernel for that, with the bits that decoding first
     * would give (codec.h, dots). */
    GG_GEMM_NARROW = 4,
    GG_GEMM_FEW = 8
};
gg_kern_gemm_pack_rows_fn gg_kern_gemm_pack_decoded;
/* Pack n rows, at most GG_GEMM_BUF_ROWS, as rows first and up of one panel. */
typedef void gg_kern_gemm_pack_some_fn(const struct gg_kern *kern,
                                       const struct gg_kern_gemm *g,
                                       const struct gg_kern_gemm_rows *w,
                                       size_t first, size_t n, size_t k,
                                       void *panel, float *buf);
/* Pack rows as pack_rows does, calling some() for groups of rows. */
void gg_kern_gemm_pack_panels(const struct gg_kern *kern,
                              const struct gg_kern_gemm *g,
                              const struct gg_kern_gemm_rows *w, size_t n_rows,
                              size_t k, void *panels, void *buf,
                              gg_kern_gemm_pack_some_fn *some);
/* Prefetch the n bytes after the n bytes at p. Rows are far apart and read in
 * short parts, which the hardware prefetcher does not predict. */
void gg_kern_gemm_prefetch(const void *p, size_t n);
gg_kern_gemm_dot_fn gg_kern_gemm_dot_decoded; /* n < GG_GEMM_NARROW */

gg_kern_gemm_tile_fn gg_kern_gemm_tile_c, gg_kern_gemm_tile_256,
    gg_kern_gemm_tile_avx512;
gg_kern_gemm_pack_fn gg_kern_gemm_pack_w_c, gg_kern_gemm_pack_w_256,
    gg_kern_gemm_pack_w_avx512;
gg_kern_gemm_pack_fn gg_kern_gemm_pack_wt_c, gg_kern_gemm_pack_wt_256,
    gg_kern_gemm_pack_wt_avx512;
gg_kern_gemm_pack_fn gg_kern_gemm_pack_x_c, gg_kern_gemm_pack_x_256,
    gg_kern_gemm_pack_x_avx512;

/* Shapes of tiles and blocks. KC belongs to the exact panels. */
enum {
    GG_GEMM_MR_C = 8,
    GG_GEMM_NR_C = 4,
    GG_GEMM_KC_C = 512,
    GG_GEMM_MC_C = 64,
    GG_GEMM_ROUND_C = GG_GEMM_NR_C,
    GG_GEMM_MR_256 = 16,
    GG_GEMM_NR_256 = 6,
    GG_GEMM_KC_256 = 256,
    GG_GEMM_MC_256 = 128,
    GG_GEMM_ROUND_256 = 16 * GG_GEMM_NR_256,
    GG_GEMM_MR_AVX512 = 32,
    GG_GEMM_NR_AVX512 = 12,
    GG_GEMM_KC_AVX512 = 512,
    GG_GEMM_MC_AVX512 = 128,
    GG_GEMM_ROUND_AVX512 = GG_GEMM_NR_AVX512,
    GG_GEMM_MR_INT512 = 32, /* integer tiles with 512-bit vectors */
    GG_GEMM_NR_INT512 = 6,
    GG_GEMM_KC_INT512 = GG_GEMM_KC_AVX512,
    GG_GEMM_MC_INT512 = GG_GEMM_MC_AVX512,
    GG_GEMM_ROUND_INT512 = GG_GEMM_NR_INT512,
    GG_GEMM_MR_DOTPROD = 16, /* tiles of bytes with dot products, and I8MM */
    GG_GEMM_NR_DOTPROD = 12,
    GG_GEMM_KC_DOTPROD = GG_GEMM_KC_256,
    GG_GEMM_MC_DOTPROD = GG_GEMM_MC_256,
    GG_GEMM_ROUND_DOTPROD = 8 * GG_GEMM_NR_DOTPROD
};

#endif
