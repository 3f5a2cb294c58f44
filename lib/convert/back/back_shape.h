/* SPDX-License-Identifier: MIT */
/* back_shape.h - shapes of a folder's tensors, by the inverse of rows
 *
 * A row computes the shape of the file's tensor from the folder's. Its inverse
 * computes the folder's from the file's.
 */
#ifndef GG_CONVERT_BACK_BACK_SHAPE_H
#define GG_CONVERT_BACK_BACK_SHAPE_H

#include "convert/back/back.h"

/* Use of a folder's tensor: a tensor of the file, and the row that makes it. */
struct gg_back_use {
    char name[160]; /* name in the folder */
    const struct gg_convert_name *row;
    size_t list;           /* number of the row's list */
    int64_t layer, expert; /* numbers in the name; -1: none */
    struct gguf_str to;    /* name in the file */
    uint32_t tensor;       /* number in the file */
    uint64_t place; /* order of uses: by tensor, then by expert or row */
    /* number of other tensors of the folder that the file's is made of */
    uint32_t n_others;
    uint32_t row_no; /* number of this tensor among them */
};

/* Find the shape of the folder's tensor with the uses u[n], in order of places.
 * false: no shape gives the file's tensors, or an element would be lost. */
bool gg_back_find_shape(const struct gg_back *b, const struct gg_back_use *u,
                        size_t n, struct gg_convert_dims *out);

#endif
