/* SPDX-License-Identifier: MIT */
/* split_plan.h - members of struct gguf_split_plan, and writers of shards */
#ifndef GG_FILE_SPLIT_PLAN_H
#define GG_FILE_SPLIT_PLAN_H

#include "file/file_int.h"
#include "file/shard_set.h"
#include "gguf/split.h"
#include "gguf/writer.h"

struct gguf_split_plan {
    const struct gguf_allocator *allocator; /* allocator of the plan */
    const struct gguf_file *from;           /* model that is split */
    struct gguf_meta *first;                /* metadata of the first shard */
    struct gguf_meta *rest;                 /* metadata of the other shards */
    struct gguf_split_shard *shards;        /* the shards */
    size_t n_shards, cap; /* number of shards; room for shards */
};

/* Create the writer of shard no, from 0, of count, without tensors. Destroy it
 * with gguf_writer_destroy(). The size of its file does not depend on count. */
enum gguf_status gg_file_split_writer(struct gguf_writer **out,
                                      const struct gguf_split_plan *plan,
                                      size_t no, size_t count,
                                      struct gguf_error *err);

/* Parameters of a writer for files with the version and byte order of s. */
struct gguf_writer_params
gg_file_split_writer_params(const struct gguf_file *s);

#endif
