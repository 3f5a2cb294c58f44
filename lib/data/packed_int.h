/* SPDX-License-Identifier: MIT */
/* packed_int.h - a weight of few bits: where its parts lie
 *
 * packed_join.c finds the tensors that hold a weight and fills this in;
 * packed.c reads the weight's elements through it.
 */
#ifndef GG_DATA_PACKED_INT_H
#define GG_DATA_PACKED_INT_H

#include "data/packed.h"

#include "kern/codec.h"

/* Tensors of a folder that hold one weight. */
enum {
    GG_PACKED_CODES,
    GG_PACKED_ZEROS,
    GG_PACKED_SCALES,
    GG_PACKED_INDEX,
    GG_PACKED_SHAPE,
    GG_N_PACKED_PARTS
};

/* Layout of small numbers: that of row r and group or column c is in unit
 * r / per_r * step_r + c / per_c * step_c, of 4 bytes or of one. */
struct gg_packed_bits {
    const uint8_t *data;
    uint64_t step_r, step_c;
    unsigned log_r, log_c; /* per_r and per_c are powers of two */
    unsigned bits;
    const uint8_t *order; /* order of numbers in a unit; NULL: as they lie */
    bool bytes;           /* units are signed bytes, not words */
};

/* Where a part is, for its pages. */
struct gg_packed_place {
    uint64_t off, size;
    uint32_t file_no;
    bool by_rows; /* it lies as the weight's rows do */
};

struct gg_packed {
    uint64_t rows, cols, group, n_groups;
    struct gg_packed_bits code, zero; /* zero.data is NULL: mid */
    unsigned mid, plus; /* zero points are plus more than they say */
    float times;        /* factor of all scales */
    struct gg_stored scale;
    uint64_t scale_r, scale_g; /* steps of scales, by row and by group */
    const uint8_t *index;      /* [cols] groups of columns, or NULL */
    const uint8_t *exponent;   /* exponents of MXFP4's blocks, or NULL */
    gg_kern_decode_fn *decode;
    struct gg_packed_place place[GG_N_PACKED_PARTS];
};

#endif
