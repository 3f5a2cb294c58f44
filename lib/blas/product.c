/* SPDX-License-Identifier: MIT */
/* product.c - shapes and strides to cblas_sgemm, weights panel by panel
 *
 * In the terms of BLAS, which counts columns first, the weights of a product
 * are a matrix of k rows and m columns that is transposed, activations one of k
 * rows and n columns, and the result one of m rows and n columns.
 */
#include "config.h"
#include "blas/product.h"

#include "base/compiler.h"
#include "dtype/dtype_int.h"
#include "gguf/op.h"

#include <cblas.h>
#include <limits.h>

#if HAVE_BLI_THREAD_SET_NUM_THREADS && !HAVE_OPENBLAS_SET_NUM_THREADS
#include <blis.h>
#endif

enum { PANEL_BYTES = 8 << 20 };

/* Rows of f32 that lie some elements apart, which a BLAS can take. */
static bool is_plain(const struct gguf_tensor *t)
{
    const int64_t size = sizeof(float);
    return t->dtype == GGUF_DTYPE_F32 && t->nb[0] == size &&
           t->nb[1] % size == 0 && t->nb[2] % size == 0 &&
           t->nb[3] % size == 0 && t->nb[1] >= t->ne[0] * size &&
           t->nb[1] / size <= INT_MAX;
}

/* Floats of a mapped file need not be aligned: then they are copied like
 * weights of other types. */
static bool is_direct(const struct gguf_tensor *a)
{
    return a->dtype == GGUF_DTYPE_F32 &&
           (uintptr_t)a->data % _Alignof(float) == 0;
}

static bool is_weight(const struct gguf_tensor *t, const struct gg_kern *kern)
{
    int d = gg_dtype_index(t->dtype);
    if (t->dtype == GGUF_DTYPE_F32)
        return is_plain(t);
    return d >= 0 && kern->codec[d].decode &&
           gguf_tensor_has_contiguous_rows(t) && t->ne[0] <= INT_MAX;
}

bool gg_blas_supports(const struct gguf_tensor *t, const struct gg_kern *kern,
                      unsigned min_size)
{
    if (t->op != GGUF_OP_MATMUL)
        return false;
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    return a->ne[0] >= min_size && a->ne[1] >= min_size &&
           b->ne[1] >= min_size && a->ne[1] <= INT_MAX &&
           b->ne[1] <= INT_MAX && is_weight(a, kern) && is_plain(b) &&
           is_plain(t);
}

static int64_t panel_rows(const struct gguf_tensor *a)
{
    const int64_t n = PANEL_BYTES / (int64_t)sizeof(float) / a->ne[0];
    return GG_MIN(GG_MAX(n, 1), a->ne[1]);
}

size_t gg_blas_scratch(const struct gguf_tensor *t)
{
    const struct gguf_tensor *a = t->src[0];
    if (is_direct(a))
        return 0;
    return (size_t)(panel_rows(a) * a->ne[0]) * sizeof(float);
}

/* Rows i to i + m - 1 of a product of two matrices. */
static void multiply_matrices(const struct gguf_tensor *t, const float *w,
                              int64_t w_ld, int64_t m, const float *x,
                              float *y)
{
    const struct gguf_tensor *b = t->src[1];
    cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, (int)m, (int)b->ne[1],
                (int)b->ne[0], 1.0f, w, (int)w_ld, x,
                (int)(b->nb[1] / (int64_t)sizeof *x), 0.0f, y,
                (int)(t->nb[1] / (int64_t)sizeof *y));
}

/* Slice (i2, i3) of the result. */
static void compute_slice(struct gguf_tensor *t, const struct gg_kern *kern,
                          int64_t i2, int64_t i3, float *scratch)
{
    const struct gguf_tensor *a = t->src[0], *b = t->src[1];
    const char *w = (const char *)a->data +
                    i2 / (b->ne[2] / a->ne[2]) * a->nb[2] +
                    i3 / (b->ne[3] / a->ne[3]) * a->nb[3];
    const float *x =
        (const float *)(const void *)((const char *)b->data + i2 * b->nb[2] +
                                      i3 * b->nb[3]);
    float *y =
        (float *)(void *)((char *)t->data + i2 * t->nb[2] + i3 * t->nb[3]);
    const int64_t k = a->ne[0], m = a->ne[1];
    if (is_direct(a)) {
        multiply_matrices(t, (const float *)(const void *)w,
                          a->nb[1] / (int64_t)sizeof(float), m, x, y);
        return;
    }
    gg_kern_decode_fn *decode = kern->codec[gg_dtype_index(a->dtype)].decode;
    const int64_t step = panel_rows(a);
    for (int64_t i = 0; i < m; i += step) {
        const int64_t rows = GG_MIN(step, m - i);
        for (int64_t r = 0; r < rows; r++)
            decode(w + (i + r) * a->nb[1], scratch + r * k, (size_t)k);
        multiply_matrices(t, scratch, k, rows, x, y + i);
    }
}

void gg_blas_product(struct gguf_tensor *t, const struct gg_kern *kern,
                     float *scratch)
{
    for (int64_t i3 = 0; i3 < t->ne[3]; i3++)
        for (int64_t i2 = 0; i2 < t->ne[2]; i2++)
            compute_slice(t, kern, i2, i3, scratch);
}

bool gg_blas_set_n_threads(unsigned n)
{
#if HAVE_OPENBLAS_SET_NUM_THREADS
    openblas_set_num_threads((int)n);
    return true;
#elif HAVE_BLI_THREAD_SET_NUM_THREADS
    bli_thread_set_num_threads((dim_t)n);
    return true;
#else
    (void)n;
    return false;
#endif
}
