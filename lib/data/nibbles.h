/* SPDX-License-Identifier: MIT */
/* nibbles.h - weights of 4-bit numbers that mean those of a table
 *
 * A weight is two numbers a byte, a table of what the 16 mean, and a scale for
 * so many neighbours in a row; in single precision
 *
 *     weight = table[number] * scale
 *
 *     nvfp4       NAME.weight, bytes [rows, columns / 2], the low half first;
 *                 of 16 a scale in E4M3 (weight_scale), times one for all
 *                 (weight_scale_2; modelopt)
 *     nvfp4_pack  the same in NAME.weight_packed, divided by one for all
 *                 (weight_global_scale; compressed-tensors,
 *                 "nvfp4-pack-quantized")
 *     bnb         NAME.weight, bytes, the high half first, with the table
 *                 (quant_map) and a text on shapes (quant_state.bitsandbytes__
 *                 nf4, or fp4); scales (absmax) are floats, or bytes of a
 *                 second table (nested_quant_map), times a scale for so many
 *                 (nested_absmax), plus a number of the text (bitsandbytes)
 *
 * as the dequantizing code of these three reads them.
 */
#ifndef GG_DATA_NIBBLES_H
#define GG_DATA_NIBBLES_H

#include "data/safetensors.h"

enum gg_nibbles_form {
    GG_NIBBLES_NVFP4,
    GG_NIBBLES_NVFP4_PACK,
    GG_NIBBLES_BNB
};

/* Put tensors together that are one weight, NAME.weight; what it is of besides
 * are parts (is_part). Weights that have no scales stay as they are.
 *
 * GGUF_E_TENSOR     shapes or types that do not go together; a scale for all
 *                   that is 0 or not finite; a text that does not say what it
 *                   has to
 * GGUF_E_FORMAT, GGUF_E_DUPLICATE    of that text
 * GGUF_E_LIMIT, GGUF_E_NOMEM */
enum gguf_status gg_nibbles_join(struct gg_safetensors *s,
                                 enum gg_nibbles_form form,
                                 struct gguf_error *err);

/* For the list: rows of tensor i, which has nibbles; its pages. */
void gg_nibbles_rows(const struct gg_safetensors *s, size_t i,
                     struct gg_data_rows *out);
void gg_nibbles_advise(const struct gg_safetensors *s, size_t i,
                       uint64_t first, uint64_t n, enum gg_mapfile_advice how);
/* gg_data_hold of elements first to first + n - 1: their bytes, all scales. */
enum gguf_status gg_nibbles_hold(const struct gg_safetensors *s, size_t i,
                                 uint64_t first, uint64_t n, bool begin,
                                 struct gguf_error *err);

#endif
