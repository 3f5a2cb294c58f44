/* SPDX-License-Identifier: MIT */
/* source.c - a file, or all files of a split set, read as one model */
#include "config.h"
#include "data/source.h"
#include "file/split_find.h"
#include "file/shard_set.h"

const struct gguf_file *gg_source_meta(const struct gg_source *s)
{
    return s->meta ? s->meta : s->first ? s->first : s->file;
}

size_t gg_source_n_files(const struct gg_source *s)
{
    return gguf_file_n_shards(s->file);
}

const struct gguf_file *gg_source_file(const struct gg_source *s, size_t i)
{
    return !i && s->first ? s->first : gguf_file_shard(s->file, i);
}

size_t gg_source_n_tensors(const struct gg_source *s)
{
    return gguf_file_n_tensors(s->file);
}

struct gg_file_shard_tensor gg_source_tensor(const struct gg_source *s,
                                             size_t i)
{
    return gg_file_in_shard(s->file, i);
}

bool gg_source_find(const struct gg_source *s, const char *name, size_t *i)
{
    const struct gguf_tensor_info *t = gguf_file_tensor_find(s->file, name);
    if (i)
        *i = t ? t->index : 0;
    return t != NULL;
}

enum gguf_status gg_source_fail(const struct gg_source *s, size_t no,
                                enum gguf_status status,
                                struct gguf_error *err)
{
    if (status == GGUF_OK || gg_source_n_files(s) < 2 || !err ||
        err->offset == GGUF_NO_OFFSET)
        return status;
    return gg_file_split_in_shard(status, gg_source_file(s, no)->path, err);
}
