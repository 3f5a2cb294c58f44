/* SPDX-License-Identifier: MIT */
/* back_shape.h - shapes of a folder's tensors, by the inverse of rows
 *
 * A row tells the shape of the file's tensor by the folder's; its inverse tells
 * the folder's by the file's.
 */
#ifndef GG_CONVERT_BACK_BACK_SHAPE_H
#define GG_CONVERT_BACK_BACK_SHAPE_H

#include "convert/back/back.h"

/* A tensor of the file, and the row that makes it of a tensor of the folder. */
struct gg_back_use {
    char name[160]; /* name in the folder */
    const struct gg_convert_name *row;
    size_t list;           /* number of the row's list */
    int64_t layer, expert; /* numbers in the name; -1: none */
    struct gguf_str to;    /* name in the file */
    uint32_t tensor;       /* number in the file */
    uint64_t place;        /* order: by tensor, then by expert or row */
    uint32_t n_others;     /* other tensors of the folder that it is made of */
    uint32_t row_no;       /* number of this one among them */
};

/* Find the shape of the tensor of the folder whose uses are u[n], in order of
 * places. False: the rows do not make the file's tensors of it, or leave out an
 * element. */
bool gg_back_find_shape(const struct gg_back *b, const struct gg_back_use *u,
                        size_t n, struct gg_convert_dims *out);

#endif
