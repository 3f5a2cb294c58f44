/* SPDX-License-Identifier: MIT */
/* tiled.h - weights whose scales lie in tiles, as ComfyUI writes them
 *
 * A weight of [rows, columns] has a scale for each group of neighbours in a
 * row. The scales are a matrix of [rows, groups], padded with zeros to tiles of
 * 128 rows and 4 groups. Tiles follow each other row by row; in a tile of 512
 * bytes, row r and group g have byte
 *
 *     16 (r % 32) + 4 (r / 32) + g
 *
 * which is the layout that cuBLAS wants ("Block scaling factors layout" in its
 * manual). In single precision
 *
 *     nvfp4  weight = (E2M1 * scale) * scale of all; NAME.weight has two
 *            numbers in a byte, high half first, NAME.weight_scale an E4M3 for
 *            16 weights, NAME.weight_scale_2 the scale of all
 *     mxfp8  weight = E4M3 * scale; NAME.weight_scale has an E8M0 for 32
 *            weights
 *
 * The product in parentheses is exact. Scales of 8 bits may have the type U8.
 * Source: comfy-kitchen (Comfy-Org, commit 7d86acf, August 2026),
 * float_utils.py and backends/eager/quantization.py.
 */
#ifndef GG_DATA_TILED_H
#define GG_DATA_TILED_H

#include "data/safetensors.h"

enum gg_tiled_form { GG_TILED_NVFP4, GG_TILED_MXFP8 };

/* Join the tensors that hold weight i, and mark the others as its parts
 * (is_part). A weight of nvfp4 that was padded to a multiple of 16 rows gets
 * the number of rows of NAME.bias, if that exists.
 *
 * GGUF_E_TENSOR   A scale is missing or not finite, or shapes or types do not
 *                 fit each other.
 * GGUF_E_LIMIT, GGUF_E_NOMEM */
enum gguf_status gg_tiled_join(struct gg_safetensors *s, uint32_t i,
                               enum gg_tiled_form form,
                               struct gguf_error *err);

/* For the list: reader and page hints of tensor i, which has tiles. */
void gg_tiled_rows(const struct gg_safetensors *s, size_t i,
                   struct gg_data_rows *out);
void gg_tiled_advise(const struct gg_safetensors *s, size_t i, uint64_t first,
                     uint64_t n, enum gg_mapfile_advice how);
/* For the list: hold elements first to first + n - 1, with all scales
 * (gg_data_hold). */
enum gguf_status gg_tiled_hold(const struct gg_safetensors *s, size_t i,
                               uint64_t first, uint64_t n, bool begin,
                               struct gguf_error *err);

#endif
