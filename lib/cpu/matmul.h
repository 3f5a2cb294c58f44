/* SPDX-License-Identifier: MIT */
/* matmul.h - dense products of weights of any type with f32 activations
 *
 *     y[j][i] = sum over p of W[i][p] * x[j][p]     i < m, j < n, p < k
 *
 * in one of the forms of kern/gemm.h. The kernels of a form define the layout
 * and size of panels, and the number of columns below which another way is
 * faster.
 *
 * All threads of a team call gg_cpu_gemm_run() with the same arguments. A
 * thread that becomes free takes the next block of rows. The bits of y depend
 * on the form, the level of the kernels and the arguments, never on the number
 * of threads: each element is the sum, in order, of blocks of kc steps. For few
 * columns, in a form without a kernel for such sums, it is the sum of dot
 * products over fixed lengths.
 */
#ifndef GG_CPU_MATMUL_H
#define GG_CPU_MATMUL_H

#include "kern/kern.h"

struct gg_barrier; /* base/barrier.h */

/* Packed panels of a weight matrix, kept from product to product: all panels of
 * the first kc steps, then those of the next. */
struct gg_cpu_gemm_packed {
    unsigned char *at;    /* panels, aligned to 64; NULL: not kept */
    unsigned char *ready; /* one byte for each panel: 1 if it is packed. A
                             product packs the panels that are not */
};

/* Arguments of a product. */
struct gg_cpu_gemm_args {
    const struct gg_kern *kern;
    enum gg_kern_gemm_form form;
    int dtype_index; /* type of w, GG_DT_..., with a decode kernel and without a
                        row header */
    const void *w;   /* row i is at w + i * w_stride, of any alignment */
    size_t w_stride; /* bytes */
    const float *x;  /* column j is at x + j * x_stride */
    size_t x_stride; /* bytes, a multiple of 4 */
    float *y;        /* column j is at y + j * y_stride; overlaps no input */
    size_t y_stride; /* bytes, a multiple of 4 */

    /* Columns at any addresses, instead of x and y: column j is at x_at[j] and
     * y_at[j]. Both arrays have n elements, more than
     * gg_cpu_gemm_max_strided_cols(), and must stay until the team is done.
     * Both NULL: x and y are used. The bits are the same. */
    const float *const *x_at;
    float *const *y_at;

    int64_t m, n,
        k; /* rows of w, columns, and steps, each >= 0; k is a multiple
                        of the type's block */
    struct gg_cpu_gemm_packed kept; /* panels of w; the bits are the same */
};

/* Largest number of columns that a product reads in place, so that they must be
 * x_stride apart. It depends on the form and type of a, not on n. */
int64_t gg_cpu_gemm_max_strided_cols(const struct gg_cpu_gemm_args *a);

/* Bytes of scratch of gg_cpu_gemm_run() for nth threads and any m. */
size_t gg_cpu_gemm_work_size(const struct gg_cpu_gemm_args *a, unsigned nth);
/* Bytes of scratch of gg_cpu_gemm_run() for nth threads, any m, and any n up to
 * a->n. */
size_t gg_cpu_gemm_max_work_size(const struct gg_cpu_gemm_args *a,
                                 unsigned nth);

/* Number of panels of w in such a product, each of *size bytes. 0: the product
 * uses no panels. */
size_t gg_cpu_gemm_count_panels(const struct gg_cpu_gemm_args *a,
                                size_t *size);

/* Compute the share of thread ith of nth.
 *
 * work      gg_cpu_gemm_work_size() bytes for the team, of any alignment; the
 *           contents are ignored and lost.
 * barrier   Barrier of the nth threads. NULL if nth is 1.
 *
 * Returns when this thread has no more to do. Others may still write y and read
 * work: a barrier must follow before either is used. */
void gg_cpu_gemm_run(const struct gg_cpu_gemm_args *a, unsigned ith,
                     unsigned nth, void *work, struct gg_barrier *barrier);

#endif
