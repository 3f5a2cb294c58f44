/* SPDX-License-Identifier: MIT */
/* nibbles.h - weights stored as 4-bit indexes of a table
 *
 * A weight has two indexes in a byte, a table with the values of the 16
 * indexes, and a scale for a group of neighbours in a row. In single precision
 *
 *     weight = table[index] * scale
 *
 *     nvfp4       NAME.weight, bytes [rows, columns / 2], low half first; a
 *                 scale in E4M3 for 16 weights (weight_scale), times one for
 *                 all (weight_scale_2; modelopt)
 *     nvfp4_pack  the same in NAME.weight_packed, divided by one for all
 *                 (weight_global_scale; compressed-tensors,
 *                 "nvfp4-pack-quantized")
 *     bnb         NAME.weight, bytes, high half first, with the table
 *                 (quant_map) and a text with shapes (quant_state.
 *                 bitsandbytes__nf4, or fp4); scales (absmax) are floats, or
 *                 byte indexes of a second table (nested_quant_map), times a
 *                 scale per group (nested_absmax), plus a number of the text
 *                 (bitsandbytes)
 *
 * The formulas are those of the dequantizing code of these three projects.
 */
#ifndef GG_DATA_NIBBLES_H
#define GG_DATA_NIBBLES_H

#include "data/safetensors.h"

enum gg_nibbles_form {
    GG_NIBBLES_NVFP4,
    GG_NIBBLES_NVFP4_PACK,
    GG_NIBBLES_BNB
};

/* Join the tensors that hold one weight to NAME.weight, and mark the others as
 * its parts (is_part). Weights without scales stay as they are.
 *
 * GGUF_E_TENSOR     Shapes or types do not fit each other; a scale for all is 0
 *                   or not finite; a required entry of the text is missing.
 * GGUF_E_FORMAT, GGUF_E_DUPLICATE
 *                   The text is malformed.
 * GGUF_E_LIMIT, GGUF_E_NOMEM */
enum gguf_status gg_nibbles_join(struct gg_safetensors *s,
                                 enum gg_nibbles_form form,
                                 struct gguf_error *err);

/* For the list: reader and page hints of tensor i, which has nibbles. */
void gg_nibbles_rows(const struct gg_safetensors *s, size_t i,
                     struct gg_data_rows *out);
void gg_nibbles_advise(const struct gg_safetensors *s, size_t i,
                       uint64_t first, uint64_t n, enum gg_mapfile_advice how);
/* For the list: hold elements first to first + n - 1, with all scales
 * (gg_data_hold). */
enum gguf_status gg_nibbles_hold(const struct gg_safetensors *s, size_t i,
                                 uint64_t first, uint64_t n, bool begin,
                                 struct gguf_error *err);

#endif
