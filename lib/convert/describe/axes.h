/* SPDX-License-Identifier: MIT */
/* axes.h - parsed notation for the order of a tensor's elements
 *
 * axes.c describes the notation; gg_convert_apply_axes() of convert_int.h
 * applies a text to a tensor. A test parses the texts of all rows with this
 * header.
 */
#ifndef GG_CONVERT_DESCRIBE_AXES_H
#define GG_CONVERT_DESCRIBE_AXES_H

#include "convert/convert_int.h"

/* Longest name with its NUL; most factors of a dimension. */
enum { GG_AXES_NAME = 12, GG_AXES_FACTORS = 10 };

/* Range of elements, as numbers or names of sizes. Empty: all elements; from 0
 * on. */
struct gg_axes_slice {
    char count[GG_AXES_NAME], first[GG_AXES_NAME];
};
struct gg_axes_factor {
    char name[GG_AXES_NAME];
    struct gg_axes_slice part;
    uint64_t size,
        /* elements, and their distance in the folder's tensor; set for a
         * tensor */
        step;
    bool used; /* it is in the output */
};
struct gg_axes_axis {
    struct gg_axes_factor factor[GG_AXES_FACTORS];
    size_t n;
    struct gg_axes_slice part; /* range of the whole dimension */
    bool rest;                 /* it is '*', the only factor */
};
struct gg_axes_out {
    char name[GG_AXES_NAME];
    bool ends; /* it is the last factor of its dimension */
};
struct gg_axes {
    struct gg_axes_axis axis[GGUF_MAX_DIMS + 1]; /* slowest first */
    size_t n;
    struct gg_axes_out out[2 * GG_AXES_FACTORS];
    size_t n_out;
};

/* Parse a text. false: it is malformed. */
bool gg_axes_read(struct gg_axes *a, const char *text);
/* Find the size with a name. NULL: a factor of that name takes the rest of its
 * dimension. */
const struct gg_convert_size *
gg_axes_find_size(const struct gg_convert_arch *arch, const char *name);

/* Text for messages: the axes of the folder's tensor and the sizes that they
 * name, "h 2 d, c; h 32". Sizes that do not fit are left out. */
enum { GG_AXES_TEXT = 120 };
void gg_axes_print_from(const struct gguf_convert *c, const char *axes,
                        int64_t layer, char out[GG_AXES_TEXT]);

/* Text for people: a text on axes and the sizes that it names, "h 2 d, c > h d
 * 2, c; h 32". Memory: the conversion's arena. If that is exhausted, returns
 * axes. */
const char *gg_axes_describe(struct gguf_convert *c, const char *axes,
                             int64_t layer);

/* A number in a text, or the size with a name in a layer (-1: no layer). NAN:
 * unknown. */
double gg_axes_size(const struct gguf_convert *c, const char *name,
                    int64_t layer);

#endif
