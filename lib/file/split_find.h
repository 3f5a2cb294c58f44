/* SPDX-License-Identifier: MIT */
/* split_find.h - find the files of a split set */
#ifndef GG_FILE_SPLIT_FIND_H
#define GG_FILE_SPLIT_FIND_H

#include "base/error.h"
#include "gguf/memory.h"

/* Find the split set in a folder.
 *
 * dir      Path of the folder.
 * base     Prefix of the set without the folder. NULL: any prefix.
 * prefix   Receives the prefix with the folder. Free it with gg_mem_free().
 * count    Receives the number of shards.
 *
 * GGUF_E_NOTFOUND: no such set. GGUF_E_DUPLICATE: several; the message names
 * two. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_file_split_find(const char *dir, const char *base,
                                    const struct gguf_allocator *a,
                                    char **prefix, unsigned *count,
                                    struct gguf_error *err);

/* Find the split set at a path, which is a folder or the prefix of a set. Gives
 * and fails like gg_file_split_find(). */
enum gguf_status gg_file_split_find_path(const char *path,
                                         const struct gguf_allocator *a,
                                         char **prefix, unsigned *count,
                                         struct gguf_error *err);

/* Check that all count shards of prefix exist. GGUF_E_NOTFOUND: the message
 * lists the missing ones. GGUF_E_IO: it cannot be determined. */
enum gguf_status gg_file_split_all_there(const char *prefix, unsigned count,
                                         const struct gguf_allocator *a,
                                         struct gguf_error *err);

/* Format the name of shard no, from 1, to *name. Free it with gg_mem_free().
 * GGUF_E_NOMEM. */
enum gguf_status gg_file_split_name(const char *prefix, unsigned no,
                                    unsigned count,
                                    const struct gguf_allocator *a,
                                    char **name, struct gguf_error *err);

/* Part of path after the last slash. */
const char *gg_file_split_base(const char *path);

/* Insert the name of the shard at path before the message of a failure. Does
 * nothing for GGUF_OK. Returns status. */
enum gguf_status gg_file_split_in_shard(enum gguf_status status,
                                        const char *path,
                                        struct gguf_error *err);

#endif
