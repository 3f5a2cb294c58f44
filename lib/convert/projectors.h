/* SPDX-License-Identifier: MIT */
/* projectors.h - rows of classes with a projector, for both ways
 *
 * projector/projector.h describes rows; back/back_projector.c inverts them.
 */
#ifndef GG_CONVERT_PROJECTORS_H
#define GG_CONVERT_PROJECTORS_H

#include "convert/convert_int.h"

/* A step of the conversion of one class. */
typedef enum gguf_status gg_projector_fn(struct gguf_convert *c,
                                         struct gguf_error *err);

struct gg_projector {
    /* Classes, names, keys, sizes. .parts is compared with names first; then
     * .strip has prefixes to remove. */
    struct gg_convert_arch arch;
    /* Members of config.json with the settings of a tower, separated by blanks;
     * the first that exists is used. ".": the whole. NULL: no such tower. */
    const char *vision, *audio;
    /* Keys without "clip." that must have a value, separated by blanks, beside
     * those of every tower. NULL: none. */
    const char *needs;
    /* Checks config.json and adds members to it. NULL: nothing to do. */
    gg_projector_fn *check;
    /* Adds tensors that are computed, or in other files. Called when the
     * weights are open. NULL: none. */
    gg_projector_fn *add_tensors;
    /* Writes keys that rows cannot describe, such as lists. NULL: none. */
    gg_projector_fn *add_keys;
    /* Way back: why the folder cannot be made of the file, for people. NULL: it
     * can be made. */
    const char *no_back;
    /* Way back: prefix of the names of all tensors. NULL: none. arch.before is
     * the prefix of those that belong to a tower; NULL: the first of
     * arch.strip. */
    const char *leading;
    /* Way back: prefix in place of arch.before for tensors "a.NAME" of the
     * file. NULL: the same. */
    const char *before_audio;
    /* Way back: member of config.json with the settings of the language model.
     * NULL: the whole. */
    const char *text;
};

/* Row n; NULL after the last. */
const struct gg_projector *gg_projector_row(size_t n);
/* The row that contains arch. */
static inline const struct gg_projector *
gg_projector_of(const struct gg_convert_arch *arch)
{
    return (const struct gg_projector *)(const void *)arch; /* first member */
}
/* projector.c: find the row of the class that config.json names. NULL: the
 * class has no projector. */
const struct gg_projector *gg_projector_find(const struct gguf_convert *c);
/* projector_config.c: join config.json and the settings of the image processor,
 * an object; takes image. GGUF_E_HPARAM: a tower has no settings.
 * GGUF_E_NOMEM. */
enum gguf_status gg_projector_join_config(struct gguf_convert *c,
                                          json_t *image,
                                          struct gguf_error *err);

#endif
