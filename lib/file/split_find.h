/* SPDX-License-Identifier: MIT */
/* split_find.h - which files belong to a split set */
#ifndef GG_FILE_SPLIT_FIND_H
#define GG_FILE_SPLIT_FIND_H

#include "base/error.h"
#include "gguf/memory.h"

/* The one split set in folder dir whose prefix is base, or any prefix if base
 * is NULL: *prefix, owned by the caller (gg_mem_free), is dir/base as names of
 * shards begin. GGUF_E_NOTFOUND, GGUF_E_DUPLICATE (more than one; the message
 * names two), GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_file_split_find(const char *dir, const char *base,
                                    const struct gguf_allocator *a,
                                    char **prefix, unsigned *count,
                                    struct gguf_error *err);

/* The same from a path that is a folder, or else the prefix of a set. */
enum gguf_status gg_file_split_find_path(const char *path,
                                         const struct gguf_allocator *a,
                                         char **prefix, unsigned *count,
                                         struct gguf_error *err);

/* Are all count files of prefix there? GGUF_E_NOTFOUND says which are not;
 * GGUF_E_IO: it cannot be found out. */
enum gguf_status gg_file_split_all_there(const char *prefix, unsigned count,
                                         const struct gguf_allocator *a,
                                         struct gguf_error *err);

/* The name of shard no (from 1), owned by the caller (gg_mem_free).
 * GGUF_E_NOMEM. */
enum gguf_status gg_file_split_name(const char *prefix, unsigned no,
                                    unsigned count,
                                    const struct gguf_allocator *a,
                                    char **name, struct gguf_error *err);

/* The part of path after the last slash. */
const char *gg_file_split_base(const char *path);

/* Put the name of the shard at path before the message of a failure; returns
 * status. err may be NULL. */
enum gguf_status gg_file_split_in_shard(enum gguf_status status,
                                        const char *path,
                                        struct gguf_error *err);

#endif
