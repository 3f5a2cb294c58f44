/* SPDX-License-Identifier: MIT */
/* matmul.h - dense products of weights of any type with f32 activations
 *
 *     y[j][i] = sum over p of W[i][p] * x[j][p]     i < m, j < n, p < k
 *
 * in one of the forms of kern/gemm.h. The kernels of a form define the layout
 * and size of panels, and the number of columns below which a product without
 * panels of weights is faster.
 *
 * All threads of a team call gg_cpu_gemm_run() with the same *a, nth, work and
 * barrier, and each with its own ith. A thread that becomes free takes the next
 * block of rows, so that a slow processor holds up no other.
 *
 * The bits of y do not depend on the number of threads, the addresses or the
 * kept panels. They depend on the form, the level of the kernels, the type, the
 * numbers, n and k. Each element of y is the sum, in order, of the sums of
 * blocks of kc steps. One case differs: for few columns, in a form that has no
 * kernel for few columns of the type, each element is the sum of dot products
 * over fixed lengths.
 */
#ifndef GG_CPU_MATMUL_H
#define GG_CPU_MATMUL_H

#include "kern/kern.h"

struct gg_barrier; /* base/barrier.h */

/* Packed panels of a weight matrix, kept from product to product: all panels of
 * the first kc steps, then those of the next. */
struct gg_cpu_gemm_packed {
    unsigned char *at; /* panels, aligned to 64; NULL: panels are not kept */
    /* One byte for each panel. 1: the panel is packed. The caller sets all to
     * 0. A product packs panels whose byte is 0, and sets it to 1. One product
     * at a time may use the panels. */
    unsigned char *ready;
};

/* Arguments of a product. */
struct gg_cpu_gemm_args {
    const struct gg_kern *kern;
    enum gg_kern_gemm_form form;
    /* Type of w, GG_DT_.... The type must have a decode kernel and no row
     * header. */
    int dtype_index;
    const void *w;   /* weights of any alignment; row i is w_stride * i bytes
                      * after w */
    size_t w_stride; /* bytes */
    const float *x;  /* column j is x_stride * j bytes after x */
    size_t x_stride; /* bytes, a multiple of 4 */
    float *y;        /* column j is y_stride * j bytes after y; overlaps no
                      * input */
    size_t y_stride; /* bytes, a multiple of 4 */

    /* Columns at any addresses, instead of x and y: column j is at x_at[j] and
     * y_at[j]. Only if n is above gg_cpu_gemm_max_strided_cols(). Both arrays
     * have n elements and must not change until all threads have returned. Both
     * NULL: x and y are used. The bits of y are the same in both cases. */
    const float *const *x_at;
    float *const *y_at;

    int64_t m, n,
        k; /* rows of w, columns, and steps, each >= 0; k is a multiple
                        of the type's block */
    /* Kept panels of w. The bits of y do not depend on them. */
    struct gg_cpu_gemm_packed kept;
    /* Counter of claimed rows, shared by the threads and used by products that
     * need no scratch. The caller sets it to 0 before the first thread begins.
     * NULL: each thread has an equal share of their rows. */
    _Atomic size_t *next;
};

/* Limit for a->x_at and a->y_at: the columns of a product of at most this
 * number of columns must be x_stride and y_stride apart. Products of more
 * columns may use x_at and y_at. Depends only on a->kern, a->form and
 * a->dtype_index. */
int64_t gg_cpu_gemm_max_strided_cols(const struct gg_cpu_gemm_args *a);

/* Bytes of scratch that gg_cpu_gemm_run() needs for product a with nth threads,
 * for any a->m. May be 0. */
size_t gg_cpu_gemm_work_size(const struct gg_cpu_gemm_args *a, unsigned nth);
/* Bytes of scratch that suffice with nth threads for every product that differs
 * from a only by m and by a number of columns of at most a->n. */
size_t gg_cpu_gemm_max_work_size(const struct gg_cpu_gemm_args *a,
                                 unsigned nth);

/* Number of panels of w in product a, which a->kept has room for. *size
 * receives the bytes of each panel. 0: the product uses no panels of w. */
size_t gg_cpu_gemm_count_panels(const struct gg_cpu_gemm_args *a,
                                size_t *size);

/* Compute the share of thread ith of nth.
 *
 * work      gg_cpu_gemm_work_size() bytes for the team, of any alignment; the
 *           contents are ignored and lost.
 * barrier   Barrier of the nth threads. NULL if nth is 1.
 *
 * Returns when this thread has no more to do. Other threads may still be
 * working. Wait at a barrier before y is read, or before work, the inputs or
 * a->kept are reused. */
void gg_cpu_gemm_run(const struct gg_cpu_gemm_args *a, unsigned ith,
                     unsigned nth, void *work, struct gg_barrier *barrier);

#endif
