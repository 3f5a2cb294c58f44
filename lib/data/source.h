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
                                    * (gg_file_create_planned); NULL: no change
                                    * */
    const struct gguf_file *meta; /* whose pairs count instead of those of file
                                   * (gg_file_create_with_pairs); NULL: its own
                                   * */
};

/* What keys are looked up in. */
const struct gguf_file *gg_source_meta(const struct gg_source *s);

size_t gg_source_n_files(const struct gg_source *s);
/* NULL if i is out of range. */
const struct gguf_file *gg_source_file(const struct gg_source *s, size_t i);

/* Tensors of all files, in order. i must be in range. */
size_t gg_source_n_tensors(const struct gg_source *s);
struct gg_file_shard_tensor gg_source_tensor(const struct gg_source *s,
                                             size_t i);

/* Is there a tensor of that name? *i is its place; i may be NULL. */
bool gg_source_find(const struct gg_source *s, const char *name, size_t *i);

/* Pass status on. If it failed at a byte, and of several files only one can be
 * meant, the name of file no begins the message. err may be NULL. */
enum gguf_status gg_source_fail(const struct gg_source *s, size_t no,
                                enum gguf_status status,
                                struct gguf_error *err);

#endif
