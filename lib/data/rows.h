/* rows.h - rows of a file's tensor as floats, in whatever byte order
 *
 * An NVFP4 tensor NAME.weight may have a scale outside of its blocks: an F32
 * tensor NAME.scale of one number or of one for each of its matrices (experts),
 * by which all elements are multiplied. Where there is none it is 1: so
 * llama.cpp's converter leaves out what is 1, and its models multiply by what
 * is there. NAME.input_scale is about activations and changes no weight.
 */
#ifndef GG_DATA_ROWS_H
#define GG_DATA_ROWS_H

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
    const uint8_t *scale; /* F32 in the file's order; NULL: none. Kept */
    uint64_t per_scale;   /* elements that share one */
};

/* Tensor i of file, by codec[GG_N_DTYPES]. False: its type is not decoded. */
bool gg_row_src_init(struct gg_row_src *s, const struct gg_codec_kern *codec,
                     const struct gguf_file *file, size_t i);

/* Room for the name of a scale tensor. */
enum { GG_SCALE_NAME = 256 };

/* Put what NAME.weight's tensor of that suffix is called, "NAME.scale", into
 * name. False: t is not of a type that has one, or not called so. */
bool gg_scale_name(const struct gguf_tensor_info *t, const char *suffix,
                   char name[GG_SCALE_NAME]);

/* Multiply what is read from s, which is tensor t, by the tensor scale of
 * file. GGUF_E_TENSOR: its type or shape, or a number that is not finite. */
enum gguf_status gg_row_src_set_scale(struct gg_row_src *s,
                                      const struct gguf_tensor_info *t,
                                      const struct gguf_file *file,
                                      const struct gguf_tensor_info *scale,
                                      struct gguf_error *err);

/* The byte, counted from the tensor's first, where the element lies, or the
 * block that it is in. */
uint64_t gg_row_src_offset(const struct gg_row_src *s, uint64_t element);

/* n elements from element first on into dst[n]: multiples of the type's
 * block_len, inside a row or of whole rows. */
void gg_row_src_read(const struct gg_row_src *s, uint64_t first, uint64_t n,
                     float *dst);

#endif
