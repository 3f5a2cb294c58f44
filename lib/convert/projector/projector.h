/* SPDX-License-Identifier: MIT */
/* projector.h - the part of a model that sees or hears, as a file of its own
 *
 * A multimodal model is a language model and a projector: towers that turn
 * images or sound into vectors of the language model. GGUF files of projectors
 * have the architecture "clip"; llama.cpp calls them mmproj.
 *
 * A row of this header describes how the projector of a class is converted. It
 * contains a row of classes.h, with lists of tensor names and keys, so that all
 * words of class_row.h can be used. Rows are in families, one file each; the
 * words of several families are in projector_row.h.
 *
 * config.json and the settings of the image processor are joined to one object
 * with these members; a name that is in none of them is looked up in the whole
 * of config.json:
 *
 *     vision    settings of the tower for images
 *     audio     settings of the tower for sound
 *     text      settings of the language model
 *     image     preprocessor_config.json and processor_config.json
 *
 * Names of tensors are compared without the leading segments "model." and
 * "thinker.", which releases of transformers differ in.
 */
#ifndef GG_CONVERT_PROJECTOR_PROJECTOR_H
#define GG_CONVERT_PROJECTOR_PROJECTOR_H

#include "convert/class_row.h"
#include "convert/convert_int.h"
#include "convert/projectors.h"

/* Stands for the class of folders in Mistral's own form, whose params.json
 * names none. */
#define GG_PROJECTOR_PARAMS "params.json"

/* projector.c: read the folder as a projector, up to the weights. */
enum gguf_status gg_projector_read(struct gguf_convert *c,
                                   const struct gguf_limits *limits,
                                   struct gguf_error *err);
/* projector.c: describe the file. */
enum gguf_status gg_projector_describe(struct gguf_convert *c,
                                       struct gguf_error *err);
/* projector.c: count the tensors that are left out of a language model and
 * belong to its projector, if its class has one. */
size_t gg_projector_count_left(const struct gguf_convert *c);
/* projector.c: fail with GGUF_E_ARCH for a class that has a projector, but no
 * row of a language model, or that is not converted for a known reason.
 * GGUF_OK: it has no projector either. */
enum gguf_status gg_projector_refuse_text(const struct gguf_convert *c,
                                          struct gguf_str class_name,
                                          struct gguf_error *err);
/* projector_config.c: join the settings of the folder to c->folder.config. */
enum gguf_status gg_projector_read_config(struct gguf_convert *c,
                                          struct gguf_error *err);

/* ---- for functions of rows ---- */

/* Fail with GGUF_E_UNSUPPORTED: "config.json: WHAT". */
enum gguf_status gg_projector_refuse(const char *what, struct gguf_error *err);
/* Set a member of a tower's settings, a name as "vision.image_size". A member
 * that exists is replaced. GGUF_E_NOMEM. */
enum gguf_status gg_projector_set(struct gguf_convert *c, const char *name,
                                  double value, struct gguf_error *err);
/* Read the settings of a tower from a file of its own, in place of those of
 * config.json. GGUF_E_NOTFOUND: it is missing. GGUF_E_FORMAT, GGUF_E_IO,
 * GGUF_E_NOMEM */
enum gguf_status gg_projector_read_tower(struct gguf_convert *c,
                                         const char *tower, const char *file,
                                         struct gguf_error *err);
/* Write a list of n whole numbers, or of n truth values, as key "clip.KEY".
 * GGUF_E_NOMEM. */
enum gguf_status gg_projector_put_ints(struct gguf_convert *c, const char *key,
                                       const int32_t *x, size_t n,
                                       struct gguf_error *err);
enum gguf_status gg_projector_put_bools(struct gguf_convert *c,
                                        const char *key, const bool *x,
                                        size_t n, struct gguf_error *err);
/* Add a tensor with n computed numbers to the folder's. GGUF_E_NOMEM. */
enum gguf_status gg_projector_add_floats(struct gguf_convert *c,
                                         const char *name, const float *x,
                                         size_t n, struct gguf_error *err);
/* Leave out a tensor of the folder, by its name in rows. It was used to compute
 * others. */
enum gguf_status gg_projector_leave_out(struct gguf_convert *c,
                                        const char *name,
                                        struct gguf_error *err);
/* Read all numbers of a tensor of the folder, for small tensors. *out is freed
 * with gg_mem_free(). GGUF_E_TENSOR: missing, or not n numbers (0: any number,
 * which *n receives). GGUF_E_IO, GGUF_E_NOMEM */
enum gguf_status gg_projector_read_floats(struct gguf_convert *c,
                                          const char *name, size_t *n,
                                          float **out, struct gguf_error *err);

#endif
