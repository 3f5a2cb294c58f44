/* SPDX-License-Identifier: MIT */
/* image_kept.h - tensors of image and video models that are not quantized
 *
 * file/image_models.h has the list of each architecture and its form.
 */
#ifndef GG_RECIPE_IMAGE_KEPT_H
#define GG_RECIPE_IMAGE_KEPT_H

#include "gguf/memory.h"

#include <stdbool.h>
#include <stdint.h>

/* Is a part of the list in the name? list NULL: an empty list. */
bool gg_image_kept_has_part(const char *list, struct gguf_str name);
/* Is the architecture one of an image or video model? */
bool gg_image_kept_is_arch(struct gguf_str arch);
/* Why is a tensor of an architecture never quantized? ne: eight dimensions.
 * NULL: it may be, or the architecture is none of an image model. */
const char *gg_image_kept_reason(struct gguf_str arch, struct gguf_str name,
                                 const int64_t *ne);

#endif
