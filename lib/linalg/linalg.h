/* SPDX-License-Identifier: MIT */
/* linalg.h - dense products, factorizations and solves in single precision
 *
 * Matrices are row-major floats. A function works on the threads of a pool.
 *
 *     struct gg_linalg la;
 *     gg_linalg_init(&la, pool, allocator);
 *     GG_TRY(gg_linalg_add_products(&la, s, n, x, n, n, x, n, n, n_rows, true,
 *                                   err));
 *     ...
 *     gg_linalg_fini(&la);
 *
 * Results do not depend on the number of threads: an element is computed by one
 * thread in a fixed order, in chains of GG_LINALG_STEPS multiply-adds. They do
 * not depend on other elements either, so a matrix may be multiplied or solved
 * in parts of its rows. AVX2 and AVX-512 give the same bits, because both fuse
 * multiply and add. Plain C rounds each product: its last bits differ.
 */
#ifndef GG_LINALG_LINALG_H
#define GG_LINALG_LINALG_H

#include "gguf/pool.h"
#include "kern/gemm.h"

#include <stdbool.h>

enum {
    GG_LINALG_STEPS = 512, /* multiply-adds of a chain, from 0; the chains of
                            * an element are then added in order */
    GG_LINALG_BLOCK = 256  /* order of diagonal blocks, which are factored and
                            * inverted in double precision */
};

/* Kernels, threads and memory of products. One thread at a time may use it. */
struct gg_linalg {
    struct gg_kern_gemm gemm;               /* exact products */
    struct gguf_pool *pool;                 /* NULL: the calling thread */
    const struct gguf_allocator *allocator; /* NULL: malloc */
    void *work;                             /* packed panels; grows */
    size_t work_size;                       /* bytes of work */
};

/* Initialize la with this processor's kernels, or with those of the levels in
 * cpu (GG_CPU_..., 0: C only). The pool and the allocator must outlive la. */
void gg_linalg_init(struct gg_linalg *la, struct gguf_pool *pool,
                    const struct gguf_allocator *a);
void gg_linalg_init_cpu(struct gg_linalg *la, struct gguf_pool *pool,
                        const struct gguf_allocator *a, uint32_t cpu);
/* Free the memory of la. */
void gg_linalg_fini(struct gg_linalg *la);

/* A factor of a product. */
struct gg_linalg_factor {
    const float *at;
    size_t stride;   /* floats from row to row in memory */
    bool transposed; /* element (i, j) is at[j * stride + i], else
                      * at[i * stride + j] */
};

enum gg_linalg_store {
    GG_LINALG_SET,     /* c = a b */
    GG_LINALG_ADD,     /* c = c + a b */
    GG_LINALG_SUBTRACT /* c = c - a b */
};

/* A product c (m x n) of a (m x k) and b (k x n). */
struct gg_linalg_product {
    struct gg_linalg_factor a, b;
    float *c; /* element (i, j) is c[i * c_stride + j]. May overlap a or b if k
               * <= GG_LINALG_STEPS */
    size_t c_stride;
    size_t m, n, k;
    enum gg_linalg_store store;
    bool upper; /* only elements with j >= i are computed and stored */
};

/* Multiply.
 *
 * GGUF_OK       p->c is computed.
 * GGUF_E_NOMEM  Out of memory. p->c is unchanged. */
enum gguf_status gg_linalg_multiply(struct gg_linalg *la,
                                    const struct gg_linalg_product *p,
                                    struct gguf_error *err);

/* Add products of the columns of x and y: sum[i][j] += sum over t < n_rows of
 * x[t][i] y[t][j].
 *
 * sum       nx rows of ny floats at stride sum_stride
 * x, y      n_rows rows of nx and of ny floats, x_stride and y_stride apart
 * upper     only j >= i is computed
 *
 * GGUF_E_NOMEM  Out of memory. sum is unchanged. */
enum gguf_status gg_linalg_add_products(struct gg_linalg *la, float *sum,
                                        size_t sum_stride, const float *x,
                                        size_t x_stride, size_t nx,
                                        const float *y, size_t y_stride,
                                        size_t ny, size_t n_rows, bool upper,
                                        struct gguf_error *err);

/* Copy the elements above the diagonal of an n x n matrix to those below. */
void gg_linalg_mirror(struct gg_linalg *la, float *s, size_t n);

/* Factor a symmetric positive definite matrix S = R R', R upper triangular.
 *
 * s     n x n. The elements above and on the diagonal are read and become R;
 *       those below stay.
 * bad   Receives the first pivot that is not positive and finite, counted from
 *       0; columns are eliminated from the last to the first. NULL is allowed.
 *
 * Diagonal blocks are factored in double precision, and the rest is
 * products: Golub and Van Loan, Matrix Computations, 4.2.9. A pivot's relative
 * error is about its rounding, 2^-24, times sqrt(n) S[j][j] / pivot. A matrix
 * with a multiple of the mean diagonal added has pivots no smaller than that.
 *
 * GGUF_OK           s is R.
 * GGUF_E_NONFINITE  A pivot is NaN or infinite.
 * GGUF_E_INVALID    A pivot is 0 or negative: S is not positive definite.
 * GGUF_E_NOMEM      Out of memory. */
enum gguf_status gg_linalg_factor_upper(struct gg_linalg *la, float *s,
                                        size_t n, size_t *bad,
                                        struct gguf_error *err);

/* Solve X S = B for X, given S = R R'.
 *
 * r   n x n, of gg_linalg_factor_upper()
 * b   m rows of n floats: B, and on return X
 *
 * GGUF_E_NOMEM  Out of memory. b is undefined. */
enum gguf_status gg_linalg_solve_rows(struct gg_linalg *la, const float *r,
                                      size_t n, float *b, size_t m,
                                      struct gguf_error *err);

#endif
