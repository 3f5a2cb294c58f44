/* SPDX-License-Identifier: MIT */
/* image_models.h - architectures of image and video models, and the tensors
 * that stay as they are when such a model is quantized
 *
 * Programs for files of these architectures take more than others do: names of
 * up to 127 bytes, five dimensions, and tensors without elements.
 */
#ifndef GG_FILE_IMAGE_MODELS_H
#define GG_FILE_IMAGE_MODELS_H

#include "gguf/kv.h"

#include <stdbool.h>

enum { GG_IMAGE_NAME_SIZE = 127, GG_IMAGE_DIMS = 5 };

struct gg_image_models_row {
    const char *name; /* general.architecture */
    /* Parts of the names of tensors that are not quantized, separated by
     * blanks; "=NAME" is a whole name. NULL: unknown. */
    const char *kept;
};

/* The row of an architecture. NULL: it is none of an image or video model.
 * Static. Any thread. */
const struct gg_image_models_row *gg_image_models_find(struct gguf_str arch);

/* Is the value of general.architecture that of an image or video model? kv
 * NULL: the key is missing. */
bool gg_image_models_have(const struct gguf_kv *kv);

#endif
