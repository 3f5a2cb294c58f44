/* SPDX-License-Identifier: MIT */
/* product.h - matrix products of a graph by the BLAS library */
#ifndef GG_BLAS_PRODUCT_H
#define GG_BLAS_PRODUCT_H

#include "gguf/tensor.h"
#include "kern/kern.h"

#include <stdbool.h>

/* Can the library compute node t? It must be a product of weights that decode
 * with f32 activations in contiguous rows, have at least min_size rows, columns
 * and steps, and no dimension beyond an int. */
bool gg_blas_supports(const struct gguf_tensor *t, const struct gg_kern *kern,
                      unsigned min_size);

/* Bytes of scratch for t. 0 for aligned f32 weights, which are used in place.
 * Otherwise room for a panel of decoded rows: 8 MiB, but at least one row and
 * at most all rows. */
size_t gg_blas_scratch(const struct gguf_tensor *t);

/* Compute t. scratch: gg_blas_scratch(t) bytes, aligned to 64. */
void gg_blas_product(struct gguf_tensor *t, const struct gg_kern *kern,
                     float *scratch);

/* Set the number of the library's threads. Returns false if the library has no
 * such setting. */
bool gg_blas_set_n_threads(unsigned n);

#endif
