/* SPDX-License-Identifier: MIT */
/* source.h - a file, or all files of a split set, read as one model */
#ifndef GG_DATA_SOURCE_H
#define GG_DATA_SOURCE_H

#include "base/error.h"
#include "file/file_int.h"

#include <stdbool.h>

struct gg_source {
    const struct gguf_file *file;  /* a file or a set of shards */
    const struct gguf_file *first; /* replaces the first shard of file
                                    * (gg_file_create_planned); NULL: none */
    const struct gguf_file *meta;  /* file whose keys replace those of file
                                    * (gg_file_create_with_pairs); NULL: none */
};

/* File in which keys are looked up. */
const struct gguf_file *gg_source_meta(const struct gg_source *s);

size_t gg_source_n_files(const struct gg_source *s);
/* File i; NULL if i is out of range. */
const struct gguf_file *gg_source_file(const struct gg_source *s, size_t i);

/* Tensors of all files, in order. i must be in range. */
size_t gg_source_n_tensors(const struct gg_source *s);
struct gg_file_shard_tensor gg_source_tensor(const struct gg_source *s,
                                             size_t i);

/* Find a tensor by name; *i receives its number; i may be NULL. */
bool gg_source_find(const struct gg_source *s, const char *name, size_t *i);

/* Return status. If err has a byte offset and there are several files, put the
 * name of file no before the message. err may be NULL. */
enum gguf_status gg_source_fail(const struct gg_source *s, size_t no,
                                enum gguf_status status,
                                struct gguf_error *err);

#endif
