/* SPDX-License-Identifier: MIT */
/* stored.h - elements of a stored tensor as floats
 *
 * A stored tensor is rows of a type, in memory or in a mapped file, in either
 * byte order. Scales outside of the blocks may multiply the elements.
 */
#ifndef GG_DATA_STORED_H
#define GG_DATA_STORED_H

#include "kern/codec.h"

#include <stdbool.h>

struct gg_stored {
    gg_kern_decode_fn *decode;
    const uint8_t *data;  /* first byte of the tensor; kept */
    int type;             /* GG_DT_... */
    unsigned rows;        /* rows of a group; 1: rows are not interleaved */
    bool swap;            /* data is big-endian */
    uint64_t ne0;         /* elements of a row */
    uint64_t row_size;    /* bytes of a row */
    const uint8_t *scale; /* F32 scales in the order of data; NULL: none;
                           * kept */
    uint64_t per_scale;   /* elements that share a scale */
};

/* Can codec[GG_N_DTYPES] decode rows of type GG_DT_..., interleaved or not? */
bool gg_stored_can_decode(const struct gg_codec_kern *codec, int type);

/* Initialise s for rows of ne0 elements and row_size bytes of a type, decoded
 * by codec[GG_N_DTYPES], without scales. Returns false if the type cannot be
 * decoded. Of an interleaved type there must be whole groups of rows. */
bool gg_stored_init(struct gg_stored *s, const struct gg_codec_kern *codec,
                    uint32_t dtype, const void *data, uint64_t ne0,
                    uint64_t row_size, bool big_endian);

/* Scale i. */
float gg_stored_scale(const struct gg_stored *s, uint64_t i);

/* Offset of an element, of its block, or of its group of interleaved rows, from
 * the first byte of the tensor. */
uint64_t gg_stored_offset(const struct gg_stored *s, uint64_t element);

/* Read n elements from element first on to dst[n]. first and n must be
 * multiples of the type's block_len, inside a row or for whole rows. */
void gg_stored_read(const struct gg_stored *s, uint64_t first, uint64_t n,
                    float *dst);

#endif
