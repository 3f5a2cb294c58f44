/* SPDX-License-Identifier: MIT */
/* description.h - a model before it is written: metadata and tensors
 *
 * A reader of a model fills a description in; a writer takes it and need not
 * know the model's form. The reader owns all members, and keeps them until the
 * writer has ended.
 */
#ifndef GG_DATA_DESCRIPTION_H
#define GG_DATA_DESCRIPTION_H

#include "data/data.h"
#include "gguf/kv.h"
#include "gguf/paths.h"

struct gg_description {
    const void *origin; /* the object that was read: tells one from another */
    const struct gguf_meta *meta;
    const struct gg_data *list;      /* tensors, in the order of writing */
    const struct gguf_paths *opened; /* every file that was read; NULL: none */
    const char *path; /* path of the first file; NULL: unknown */
    size_t n_files;   /* files that a split output may follow (file_no) */
    bool is_new;      /* metadata are a converter's: their order stays */
};

#endif
