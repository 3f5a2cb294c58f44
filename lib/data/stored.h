/* SPDX-License-Identifier: MIT */
/* stored.h - elements of a tensor that lies somewhere, as floats
 *
 * Rows of a type, in memory or in a mapped file, in either byte order; with
 * scales outside of the blocks, by which all elements are multiplied, if there
 * are any.
 */
#ifndef GG_DATA_STORED_H
#define GG_DATA_STORED_H

#include "kern/codec.h"

#include <stdbool.h>

struct gg_stored {
    gg_kern_decode_fn *decode;
    const uint8_t *data;  /* of the tensor; kept */
    int type;             /* GG_DT_... */
    bool swap;            /* data is big-endian */
    uint64_t ne0;         /* elements in a row */
    uint64_t row_size;    /* bytes */
    const uint8_t *scale; /* F32 in the order of data; NULL: none. Kept */
    uint64_t per_scale;   /* elements that share one */
};

/* Rows of ne0 elements and row_size bytes, of the type of this id, to be
 * decoded by codec[GG_N_DTYPES]; no scales yet. False: that is not done. */
bool gg_stored_init(struct gg_stored *s, const struct gg_codec_kern *codec,
                    uint32_t dtype, const void *data, uint64_t ne0,
                    uint64_t row_size, bool big_endian);

/* Scale i. */
float gg_stored_scale(const struct gg_stored *s, uint64_t i);

/* The byte, counted from the tensor's first, where the element lies, or the
 * block that it is in. */
uint64_t gg_stored_offset(const struct gg_stored *s, uint64_t element);

/* n elements from element first on into dst[n]: multiples of the type's
 * block_len, inside a row or of whole rows. */
void gg_stored_read(const struct gg_stored *s, uint64_t first, uint64_t n,
                    float *dst);

#endif
