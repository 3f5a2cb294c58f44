/* SPDX-License-Identifier: MIT */
/* image.h - image and video models in one .safetensors file
 *
 * Such a file has no config.json: the names of its tensors tell the
 * architecture. Its GGUF file has the same names without their prefix, no
 * vocabulary, and the keys that the loader of ComfyUI-GGUF reads. That loader
 * takes at most four dimensions: a tensor with more has its slowest dimensions
 * joined, and so does a folded one; the key comfy.gguf.orig_shape.NAME has the
 * dimensions of the source, slowest first.
 */
#ifndef GG_CONVERT_IMAGE_IMAGE_H
#define GG_CONVERT_IMAGE_IMAGE_H

#include "convert/convert_int.h"

/* An architecture. Lists are separated by blanks; NULL: an empty list. */
struct gg_image_arch {
    const char *name; /* general.architecture */
    /* Sets of names of tensors, without the prefix, separated by '|'. A model
     * has all names of at least one set. */
    const char *sets;
    /* names of tensors that a model does not have */
    const char *without;
    /* Names of the model in diffusers' layout, which no loader takes. */
    const char *foreign;
    /* Parts of names: tensors in F32; tensors that are left out. */
    const char *f32, *dropped;
    /* Rows get 256 elements, unless their size is a multiple of 256. */
    bool folds;
};

/* Row n; NULL after the last. */
const struct gg_image_arch *gg_image_row(size_t n);
/* Is the path that of a .safetensors file? */
bool gg_image_is_file(const char *path);
/* Open the folder that the file at path is in. Statuses: those of
 * gg_folder_open(). */
enum gguf_status gg_image_open(struct gguf_convert *c, const char *path,
                               struct gguf_error *err);
/* Read the header of the file, and find its architecture.
 *
 * GGUF_E_ARCH      No architecture has these tensors; or two have them, which
 *                  the message names; or the layout is that of diffusers.
 * GGUF_E_NOTFOUND  The file does not exist.
 *
 * Other statuses are those of gg_safetensors_open(). */
enum gguf_status gg_image_read(struct gguf_convert *c,
                               const struct gguf_limits *limits,
                               struct gguf_error *err);
/* Describe the output. GGUF_E_LIMIT: a name has more than 127 bytes. */
enum gguf_status gg_image_describe(struct gguf_convert *c,
                                   struct gguf_error *err);

#endif
