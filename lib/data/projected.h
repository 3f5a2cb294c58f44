/* SPDX-License-Identifier: MIT */
/* projected.h - a tensor whose rows are those of another, passed through two
 * layers
 *
 * Row x of the other tensor becomes
 *
 *     y = w2 silu(w1 x + b1) + b2
 *
 * in single precision. The numbers are computed whenever they are read, a few
 * rows at a time; only the layers stay in memory. A row's bits depend on the
 * instruction set, not on threads or on the part of the tensor that is read.
 */
#ifndef GG_DATA_PROJECTED_H
#define GG_DATA_PROJECTED_H

#include "data/safetensors.h"

/* Numbers of a list's tensors: the rows, and the two layers. */
struct gg_projected_from {
    uint32_t rows, w1, b1, w2, b2;
};

/* Add the tensor to a list. It has the type of the rows' tensor. The layers are
 * read here.
 *
 * GGUF_E_TENSOR      The shapes do not fit each other.
 * GGUF_E_LIMIT       Rows have more than 8192 elements.
 * GGUF_E_DUPLICATE, GGUF_E_NOMEM, and statuses of gg_data_rows() and
 * gg_data_hold() */
enum gguf_status gg_projected_add(struct gg_safetensors *s,
                                  struct gguf_str name,
                                  const struct gg_projected_from *from,
                                  struct gguf_error *err);

#endif
