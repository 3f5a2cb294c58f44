/* SPDX-License-Identifier: MIT */
/* image_names.h - architectures of image and video models
 *
 * Programs for files of these architectures take more than others do: names of
 * up to 127 bytes, five dimensions, and tensors without elements.
 */
#ifndef GG_FILE_IMAGE_NAMES_H
#define GG_FILE_IMAGE_NAMES_H

#include "gguf/kv.h"

#include <stdbool.h>

enum { GG_IMAGE_NAME_SIZE = 127, GG_IMAGE_DIMS = 5 };

/* Is general.architecture that of an image or video model? kv NULL: the key is
 * missing. */
bool gg_image_names_have(const struct gguf_kv *kv);

#endif
