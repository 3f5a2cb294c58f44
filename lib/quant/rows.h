/* rows.h - rows of a file's tensor as floats, in whatever byte order */
#ifndef GG_QUANT_ROWS_H
#define GG_QUANT_ROWS_H

#include "gguf/file.h"
#include "kern/codec.h"

#include <stdbool.h>

/* Where a tensor's elements come from. */
struct gg_row_src {
    gg_decode_fn *decode;
    const uint8_t *data; /* of the tensor; kept */
    int type;            /* GG_DT_... */
    bool swap;           /* data is big-endian */
    uint64_t ne0;        /* elements in a row */
    uint64_t row_size;   /* bytes */
};

/* Tensor i of file, by codec[GG_N_DTYPES]. False: its type is not decoded. */
bool gg_row_src_init(struct gg_row_src *s, const struct gg_codec_kern *codec,
                     const struct gguf_file *file, size_t i);

/* n elements from element first on into dst[n]: multiples of the type's
 * block_len, inside a row or of whole rows. */
void gg_row_src_read(const struct gg_row_src *s, uint64_t first, uint64_t n,
                     float *dst);

#endif
