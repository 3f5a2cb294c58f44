/* SPDX-License-Identifier: MIT */
/* matmul.h - dense products of weights of any type with f32 activations
 *
 *     y[j][i] = sum over p of W[i][p] * x[j][p]     i < m, j < n, p < k
 *
 * in a form of kern/gemm.h: the row of kernels that is asked for says
 * what panels hold, how many bytes they are, and how few columns go another
 * way. Every thread of a team calls gg_cpu_gemm_run with the same arguments;
 * blocks of rows are handed out as threads come free. The bits of y depend on
 * the form, the level of the kernels and the arguments, never on the
 * number of threads: each element is the sum, in order, of blocks of kc steps
 * (or, for few columns, of dot products over fixed lengths, where the form has
 * no kernel that gives the blocks' sums), whichever thread computes it.
 */
#ifndef GG_CPU_MATMUL_H
#define GG_CPU_MATMUL_H

#include "kern/kern.h"

struct gg_barrier; /* base/barrier.h */

/* Panels of a matrix of weights, kept from one product to the next: all of the
 * first kc steps, one after the other, then those of the next. */
struct gg_cpu_gemm_packed {
    unsigned char *at;    /* aligned to 64; NULL: none are kept */
    unsigned char *ready; /* of each panel: whether it is there. The products
                             that find it is not pack it */
};

struct gg_cpu_gemm_args {
    const struct gg_kern *kern;
    enum gg_kern_gemm_form form;
    int dtype_index; /* of w, GG_DT_...; must have a decode kernel and no row
                       * header */
    const void *w;   /* row i at w + i * w_stride; any alignment */
    size_t w_stride; /* bytes */
    const float *x;  /* column j at x + j * x_stride */
    size_t x_stride; /* bytes, a multiple of 4 */
    float *y;        /* column j at y + j * y_stride; overlaps no input */
    size_t y_stride; /* bytes, a multiple of 4 */
    /* Or each column lies anywhere: j at x_at[j], and its part of y at y_at[j],
     * in place of x and y: aligned as floats are, borrowed until the team is
     * done, n of each, more than gg_cpu_gemm_max_strided_cols. Both or none
     * (NULL). The bits are the same. */
    const float *const *x_at;
    float *const *y_at;
    int64_t m, n, k; /* each may be 0; k a multiple of the type's block */
    struct gg_cpu_gemm_packed
        kept; /* of w in this form; the bits are the same */
};

/* The largest number of columns that must lie x_stride apart: products of so
 * few read them as they are. It follows from a's form and type, not from n. */
int64_t gg_cpu_gemm_max_strided_cols(const struct gg_cpu_gemm_args *a);

/* Bytes of scratch that gg_cpu_gemm_run needs for nth threads, whatever m
 * is. */
size_t gg_cpu_gemm_work_size(const struct gg_cpu_gemm_args *a, unsigned nth);
/* The most that it needs for any n up to a's. */
size_t gg_cpu_gemm_max_work_size(const struct gg_cpu_gemm_args *a,
                                 unsigned nth);

/* Panels that w has for such a product, each of *size bytes; 0: it is computed
 * without. */
size_t gg_cpu_gemm_count_panels(const struct gg_cpu_gemm_args *a,
                                size_t *size);

/* Member ith of nth. work: shared by the team, of gg_cpu_gemm_work_size bytes,
 * any alignment, contents ignored and lost. Returns when this member has no
 * more to do: the others may still be writing their part of y and reading
 * work, so a barrier must follow before either is used. barrier: of nth
 * threads; NULL if nth is 1. */
void gg_cpu_gemm_run(const struct gg_cpu_gemm_args *a, unsigned ith,
                     unsigned nth, void *work, struct gg_barrier *barrier);

#endif
