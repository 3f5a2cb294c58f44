/* SPDX-License-Identifier: MIT */
/* split_plan.h - a plan as its writer sees it */
#ifndef GG_FILE_SPLIT_PLAN_H
#define GG_FILE_SPLIT_PLAN_H

#include "file/file_int.h"
#include "file/shard_set.h"
#include "gguf/split.h"
#include "gguf/writer.h"

struct gguf_split_plan {
    const struct gguf_allocator *allocator;
    const struct gguf_file *from; /* kept */
    struct gguf_meta *first;      /* of the first shard, less the split keys */
    struct gguf_meta *rest;       /* of the others, likewise */
    struct gguf_split_shard *shards;
    size_t n_shards, cap;
};

/* Writer of shard no (from 0) of count: metadata, no tensors yet. Owned by the
 * caller. The size of its file does not depend on count. */
enum gguf_status gg_file_split_writer(struct gguf_writer **out,
                                      const struct gguf_split_plan *plan,
                                      size_t no, size_t count,
                                      struct gguf_error *err);

/* Params of a writer for files like the set's. */
struct gguf_writer_params
gg_file_split_writer_params(const struct gguf_file *s);

#endif
