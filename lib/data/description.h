/* SPDX-License-Identifier: MIT */
/* description.h - a model before it is written: metadata and tensors
 *
 * A reader of a model fills in a description. A writer takes it and need not
 * know the model's file form. The reader owns all members, and keeps them until
 * the writer is done.
 */
#ifndef GG_DATA_DESCRIPTION_H
#define GG_DATA_DESCRIPTION_H

#include "data/data.h"
#include "gguf/kv.h"
#include "gguf/meta.h"
#include "gguf/paths.h"

struct gg_description {
    const void *origin; /* identifies the object that was read */
    const struct gguf_meta *meta;
    const struct gg_data *list;      /* tensors in the order of writing */
    const struct gguf_paths *opened; /* all files that were opened; NULL:
                                      * none */
    const char *path; /* path of the first file; NULL: unknown */
    size_t n_files;   /* files that a split output may reproduce (file_no) */
    bool is_new;      /* the metadata come from a converter and keep their
                       * order */
};

#endif
