/* SPDX-License-Identifier: MIT */
/* axes.h - notation for the order of a tensor's elements, as it is read
 *
 * axes.c describes the notation; gg_convert_apply_axes() of convert_int.h
 * applies a text to a tensor. A test reads the texts of all rows through this
 * header.
 */
#ifndef GG_CONVERT_DESCRIBE_AXES_H
#define GG_CONVERT_DESCRIBE_AXES_H

#include "convert/convert_int.h"

/* Longest name with its NUL; factors of a dimension. */
enum { GG_AXES_NAME = 12, GG_AXES_FACTORS = 10 };

/* Range of elements, as numbers or names of sizes; empty: all, from 0 on. */
struct gg_axes_slice {
    char count[GG_AXES_NAME], first[GG_AXES_NAME];
};
struct gg_axes_factor {
    char name[GG_AXES_NAME];
    struct gg_axes_slice part;
    uint64_t size,
        step;  /* elements, and their distance in the folder's tensor;
                          * set for a tensor */
    bool used; /* the output has it */
};
struct gg_axes_axis {
    struct gg_axes_factor factor[GG_AXES_FACTORS];
    size_t n;
    struct gg_axes_slice part; /* range of the whole dimension */
    bool rest;                 /* it is '*', its only factor */
};
struct gg_axes_out {
    char name[GG_AXES_NAME];
    bool ends; /* it is the last factor of its dimension */
};
struct gg_axes {
    struct gg_axes_axis axis[GGUF_MAX_DIMS + 1]; /* the slowest first */
    size_t n;
    struct gg_axes_out out[2 * GG_AXES_FACTORS];
    size_t n_out;
};

/* Read a text; false: it is none. */
bool gg_axes_read(struct gg_axes *a, const char *text);
/* Find the size that a name stands for; NULL: a factor of that name takes the
 * rest of its dimension. */
const struct gg_convert_size *
gg_axes_find_size(const struct gg_convert_arch *arch, const char *name);

/* A text on axes, and the sizes that it names: "h 2 d, c > h d 2, c; h 32".
 * Owned by the arena of the conversion; without memory it is the text alone. */
const char *gg_axes_describe(struct gguf_convert *c, const char *axes,
                             int64_t layer);

/* A number, or the size of a name in a layer, or -1; NAN: it is not known. */
double gg_axes_size(const struct gguf_convert *c, const char *name,
                    int64_t layer);

#endif
