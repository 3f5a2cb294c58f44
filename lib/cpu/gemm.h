/* gemm.h - dense products of weights of any type with f32 activations
 *
 *     y[j][i] = sum over p of W[i][p] * x[j][p]     i < m, j < n, p < k
 *
 * Exact mode: weights are decoded to f32 (exactly, by the type's kernel), the
 * sum is taken in f32. Every thread of a team calls gg_gemm_run with the same
 * arguments; blocks of rows are handed out as threads come free. The bits of
 * y depend on the level of the kernels and on the arguments, never on the
 * number of threads: each element is the sum, in order, of blocks of
 * kern->gemm.kc steps (or, for few columns, of dot products over fixed
 * lengths), whoever computes it.
 */
#ifndef GG_CPU_GEMM_H
#define GG_CPU_GEMM_H

#include "kern/kern.h"

struct gg_barrier; /* base/barrier.h */

/* Fewer columns than this are dot products: decoding is then most of the work,
 * and transposing as much again. */
enum { GG_GEMM_NARROW = 4 };

struct gg_gemm_args {
    const struct gg_kern *kern;
    int dtype_index;  /* of w, GG_DT_...; must have a decode kernel and no row
                       * header */
    const void *w;    /* row i at w + i * w_stride; any alignment */
    size_t w_stride;  /* bytes */
    const float *x;   /* column j at x + j * x_stride */
    size_t x_stride;  /* bytes, a multiple of 4 */
    float *y;         /* column j at y + j * y_stride; overlaps no input */
    size_t y_stride;  /* bytes, a multiple of 4 */
    int64_t m, n, k;  /* each may be 0; k a multiple of the type's block */
};

/* Bytes of scratch that gg_gemm_run needs for nth threads, whatever m is. */
size_t gg_gemm_work_size(const struct gg_gemm_args *a, unsigned nth);
/* The most that it needs for any n up to a's. */
size_t gg_gemm_most_work(const struct gg_gemm_args *a, unsigned nth);

/* Member ith of nth. work: shared by the team, of gg_gemm_work_size bytes,
 * any alignment, contents ignored and lost. Returns when this member has no
 * more to do: the others may still be writing their part of y and reading
 * work, so a barrier must follow before either is used. barrier: of nth
 * threads; NULL if nth is 1. */
void gg_gemm_run(const struct gg_gemm_args *a, unsigned ith, unsigned nth,
                 void *work, struct gg_barrier *barrier);

/* Floats of the buffer that gg_gemm_pack_w decodes into. Rows lie a cache line
 * further apart than their length, so that a column of them does not fall
 * into one set of the cache. */
enum {
    GG_GEMM_BUF_ROWS = 16,
    GG_GEMM_BUF_LEN = 256, /* a multiple of every type's block */
    GG_GEMM_BUF_STRIDE = GG_GEMM_BUF_LEN + 16,
    GG_GEMM_BUF_FLOATS = GG_GEMM_BUF_ROWS * GG_GEMM_BUF_STRIDE
};

/* Decode n_rows rows of k elements each, stride bytes apart, and pack them
 * into ceil(n_rows / mr) panels of k * mr floats; rows missing in the last one
 * are 0. w: start of a block in the first row. buf: GG_GEMM_BUF_FLOATS. */
void gg_gemm_pack_w(const struct gg_kern *kern, int dtype_index,
                    const void *w, size_t w_stride, size_t n_rows, size_t k,
                    float *panels, float *buf);

#endif
