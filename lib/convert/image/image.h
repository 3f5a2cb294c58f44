/* SPDX-License-Identifier: MIT */
/* image.h - image and video models, in one .safetensors file or a folder
 *
 * The names of the tensors tell the architecture; no config.json is needed. The
 * GGUF file has the same names without their prefix, no vocabulary, and the
 * keys that the loader of ComfyUI-GGUF reads. That loader takes at most four
 * dimensions: a tensor with more has its slowest dimensions joined, and so does
 * a folded one; the key comfy.gguf.orig_shape.NAME has the dimensions of the
 * source, slowest first.
 *
 * Folders are those of diffusers (image_files.c). Some architectures have other
 * names there than in their authors' files, which loaders know (diffusers.c).
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
    /* Names with a number: "NAME=ROWS". The slowest dimension of tensor NAME is
     * ROWS. rows: a model has all of these sizes; not_rows: it has not all. */
    const char *rows, *not_rows;
    /* Names of the model in diffusers' layout, which no loader takes: refused,
     * unless struct gg_image_layout has them all. */
    const char *foreign;
    /* Parts of names: tensors in F32; tensors that are left out. */
    const char *f32, *dropped;
    /* Rows get 256 elements, unless their size is a multiple of 256. */
    bool folds;
};

/* Tensors of diffusers, and the one that loaders know. */
struct gg_image_rename {
    /* Names separated by blanks: tensors whose rows follow each other. "%": a
     * number; "*", at the end: any rest. from of the last row: NULL */
    const char *from;
    const char *to; /* name, with the same signs */
    bool swap;      /* the halves of the rows are exchanged */
    /* They are not if the model has this tensor, too; NULL: none. */
    const char *unless;
};

/* An architecture in diffusers' layout. */
struct gg_image_layout {
    const char *arch; /* name of the architecture */
    const char *sets; /* sets of names, in the form of gg_image_arch.sets */
    const struct gg_image_rename *rename;
};

/* Tensors of the input that become one of the output. */
struct gg_image_source {
    struct gguf_str name; /* name in the output */
    uint32_t from[4];     /* numbers of the tensors; their rows are joined */
    unsigned n_from;      /* 0: the tensor is a part of another one */
    bool swap;            /* the halves of the rows are exchanged */
};

/* Prefix n that names of a model's tensors may have, up to "", the last; NULL
 * after it. */
const char *gg_image_prefix(size_t n);
/* Row n; NULL after the last. */
const struct gg_image_arch *gg_image_row(size_t n);
const struct gg_image_layout *gg_image_layout_row(size_t n);
/* image_files.c: is the path that of a .safetensors file? */
bool gg_image_is_file(const char *path);
/* image_files.c: open the folder that the file at path is in. Statuses: those
 * of gg_folder_open(). */
enum gguf_status gg_image_open(struct gguf_convert *c, const char *path,
                               struct gguf_error *err);
/* image_files.c: set c->image_stem if the folder is that of diffusers; enter
 * the part of a pipeline. Its config.json has been read.
 *
 * GGUF_E_NOTFOUND  The pipeline has no transformer and no unet.
 * GGUF_E_FORMAT    model_index.json is malformed.
 * GGUF_E_IO, GGUF_E_NOMEM */
enum gguf_status gg_image_find_folder(struct gguf_convert *c,
                                      struct gguf_error *err);
/* image_files.c: open the file, or the files of the folder. Statuses: those of
 * gg_safetensors_open(). */
enum gguf_status gg_image_open_weights(struct gguf_convert *c,
                                       const struct gguf_limits *limits,
                                       struct gguf_error *err);
/* recognize.c: find the architecture. GGUF_E_ARCH: as gg_image_read(). */
enum gguf_status gg_image_recognize(struct gguf_convert *c,
                                    struct gguf_error *err);
/* diffusers.c: find the row with the name of a tensor, and all its tensors.
 * out->n_from is 0 if the tensor is not the first of its row. GGUF_E_TENSOR: no
 * row has the name, or a tensor is missing. GGUF_E_NOMEM. */
enum gguf_status gg_image_rename(struct gguf_convert *c, struct gguf_str name,
                                 struct gg_image_source *out,
                                 struct gguf_error *err);
/* diffusers.c: the dimensions of the joined tensors, in ne, of GGUF_MAX_DIMS
 * numbers. GGUF_E_SHAPE: they cannot be joined. */
enum gguf_status gg_image_join(const struct gguf_convert *c,
                               const struct gg_image_source *s, int64_t *ne,
                               struct gguf_error *err);
/* Read the headers of the weights, and find the architecture.
 *
 * GGUF_E_ARCH      No architecture has these tensors; or two have them, which
 *                  the message names; or the layout of diffusers is not known
 *                  for the architecture, or not complete.
 * GGUF_E_NOTFOUND  The file does not exist.
 *
 * Other statuses are those of gg_safetensors_open(). */
enum gguf_status gg_image_read(struct gguf_convert *c,
                               const struct gguf_limits *limits,
                               struct gguf_error *err);
/* Describe the output.
 *
 * GGUF_E_LIMIT    A name has more than 127 bytes.
 * GGUF_E_TENSOR   A tensor of diffusers has no name that loaders know, or one
 *                 that is joined with others lacks one of them.
 * GGUF_E_SHAPE    Tensors cannot be joined. */
enum gguf_status gg_image_describe(struct gguf_convert *c,
                                   struct gguf_error *err);

#endif
