/* SPDX-License-Identifier: MIT */
/* product.h - a matrix product of a graph as calls of the BLAS library */
#ifndef GG_BLAS_PRODUCT_H
#define GG_BLAS_PRODUCT_H

#include "gguf/tensor.h"
#include "kern/kern.h"

#include <stdbool.h>

/* Whether node t is a product that the library can take: f32 activations in
 * plain rows, weights that decode, at least min_size rows, columns and steps,
 * and nothing beyond an int. */
bool gg_blas_supports(const struct gguf_tensor *t, const struct gg_kern *kern,
                      unsigned min_size);

/* Bytes of scratch for t: 0 for aligned f32 weights, else 8 MiB, or less where
 * all rows are less, or one row where that is more. */
size_t gg_blas_scratch(const struct gguf_tensor *t);

/* Compute t. scratch: gg_blas_scratch(t) bytes, aligned to 64. */
void gg_blas_product(struct gguf_tensor *t, const struct gg_kern *kern,
                     float *scratch);

/* Threads of the library; false if it has no such setting. */
bool gg_blas_set_n_threads(unsigned n);

#endif
