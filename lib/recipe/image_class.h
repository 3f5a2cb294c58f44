/* SPDX-License-Identifier: MIT */
/* image_class.h - classes of tensors of image and video models
 *
 * Names of tensors of such models are those of their authors, so that the
 * classes of language models do not apply. Recipes have three classes for
 * them: value matrices, fused matrices of query, key and value, and the second
 * matrix of a feed-forward part.
 */
#ifndef GG_RECIPE_IMAGE_CLASS_H
#define GG_RECIPE_IMAGE_CLASS_H

#include "recipe/recipe_int.h"

/* Class of a tensor of an image or video model by its name. GG_CLASS_OTHER: the
 * name is in no class. */
enum gg_recipe_class gg_image_class_find(struct gguf_str arch,
                                         const char *name);

/* Number of the block that a tensor belongs to; -1: it is outside of blocks, or
 * the quantizer of this architecture treats all blocks alike. */
int64_t gg_image_class_block(struct gguf_str arch, const char *name);

/* Type for rows of cols elements: K types whose blocks of 256 do not fit become
 * F16, as ComfyUI-GGUF's quantizer has it; other types become what
 * gg_recipe_choose_fitting_type() says. */
uint32_t gg_image_class_fitting_type(uint32_t type, int64_t cols);

#endif
