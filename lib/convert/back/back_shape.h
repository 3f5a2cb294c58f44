/* SPDX-License-Identifier: MIT */
/* back_shape.h - the shape of a tensor of the folder that rows make tensors of
 *
 * A row says what becomes of a tensor of the folder; of what the file has, its
 * inverse gives the shape that the tensor had.
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

/* Shape of the tensor of the folder that the n uses are of, in order of places.
 * False: there is none from which the rows make the file's tensors, or one of
 * its elements would be in none of them. */
bool gg_back_find_shape(const struct gg_back *b, const struct gg_back_use *u,
                        size_t n, struct gg_convert_dims *out);

#endif
