/* SPDX-License-Identifier: MIT */
/* image_quant.h - quantized weights of image models
 *
 * ComfyUI stores the form of a layer's weight as a JSON text, in a tensor
 * LAYER.comfy_quant of bytes or, for all layers, in "_quantization_metadata" of
 * the file's metadata:
 *
 *     { "layers": { LAYER: { "format": "nvfp4" }, ... } }
 *
 * Older files have 8-bit floats with LAYER.scale_weight, and no texts. Sources:
 * ComfyUI, comfy/ops.py, comfy/utils.py and comfy/quant_ops.py (commit 0271a46,
 * 2026).
 */
#ifndef GG_CONVERT_IMAGE_IMAGE_QUANT_H
#define GG_CONVERT_IMAGE_IMAGE_QUANT_H

#include "data/safetensors.h"

/* Join weights with their scales, and mark the scales as parts. The
 * metadata may omit one of the prefixes of the names.
 *
 * GGUF_E_UNSUPPORTED  A form is not known, or rotated; the message names it.
 * GGUF_E_TENSOR       A layer lacks its weight or its form, or its scales do
 *                     not fit.
 * GGUF_E_FORMAT, GGUF_E_DUPLICATE
 *                     A text is malformed.
 * GGUF_E_LIMIT, GGUF_E_NOMEM */
enum gguf_status gg_image_quant_join(struct gg_safetensors *s,
                                     struct gguf_error *err);

#endif
