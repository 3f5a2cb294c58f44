/* SPDX-License-Identifier: MIT */
/* packed_int.h - layout of a weight of few bits
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

/* Layout of small numbers. The number for row r and group or column c is in
 * unit r / per_r * step_r + c / per_c * step_c. A unit has 4 bytes or one. */
struct gg_packed_bits {
    const uint8_t *data;
    uint64_t step_r, step_c;
    unsigned log_r, log_c; /* log2 of per_r and per_c */
    unsigned bits;
    const uint8_t *order; /* order of numbers in a unit; NULL: ascending */
    bool bytes;           /* units are signed bytes, not words */
};

/* Place of a part in its file, for page hints. */
struct gg_packed_place {
    uint64_t off, size;
    uint32_t file_no;
    bool by_rows; /* ordered like the weight's rows */
};

struct gg_packed {
    uint64_t rows, cols, group, n_groups;
    struct gg_packed_bits code, zero; /* zero.data NULL: all zero points are
                                       * mid */
    unsigned mid, plus; /* zero point for all; addend of stored zero points */
    float times;        /* factor of all scales */
    struct gg_stored scale;
    uint64_t scale_r, scale_g; /* steps of scales by row and by group */
    const uint8_t *index;      /* [cols] group of each column; NULL: by
                                * position */
    const uint8_t *exponent;   /* exponents of MXFP4 blocks; NULL: none */
    gg_kern_decode_fn *decode;
    struct gg_packed_place place[GG_N_PACKED_PARTS];
};

#endif
