/* SPDX-License-Identifier: MIT */
/* source.c - a file, or all files of a split set, read as one model */
#include "config.h"
#include "data/source.h"
#include "file/split_int.h"

const struct gguf_file *gg_source_meta(const struct gg_source *s)
{
    return s->meta ? s->meta : s->file;
}

size_t gg_source_n_files(const struct gg_source *s)
{
    return s->set ? gguf_split_n_files(s->set) : 1;
}

const struct gguf_file *gg_source_file(const struct gg_source *s, size_t i)
{
    if (s->set && i)
        return gguf_split_file(s->set, i);
    return i ? NULL : s->file;
}

size_t gg_source_n_tensors(const struct gg_source *s)
{
    return s->set ? gguf_split_n_tensors(s->set)
                  : gguf_file_n_tensors(s->file);
}

struct gguf_split_tensor gg_source_tensor(const struct gg_source *s, size_t i)
{
    if (s->set)
        return *gguf_split_tensor(s->set, i);
    return (struct gguf_split_tensor){ gguf_file_tensor(s->file, i), s->file,
                                       0 };
}

bool gg_source_find(const struct gg_source *s, const char *name, size_t *i)
{
    size_t at = 0;
    bool found;
    if (s->set) {
        const struct gguf_split_tensor *t =
            gguf_split_tensor_find(s->set, name);
        found = t != NULL;
        if (found)
            at = (size_t)(t - gguf_split_tensor(s->set, 0));
    } else {
        const struct gguf_tensor_info *t =
            gguf_file_tensor_find(s->file, name);
        found = t != NULL;
        if (found)
            at = t->index;
    }
    if (i)
        *i = at;
    return found;
}

enum gguf_status gg_source_fail(const struct gg_source *s, size_t no,
                                enum gguf_status status,
                                struct gguf_error *err)
{
    if (status == GGUF_OK || gg_source_n_files(s) < 2 || !err ||
        err->offset == GGUF_NO_OFFSET)
        return status;
    return gg_file_split_in_shard(status, gguf_split_path(s->set, no), err);
}
