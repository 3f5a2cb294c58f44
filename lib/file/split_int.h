/* SPDX-License-Identifier: MIT */
/* split_int.h - what the parts of split sets share */
#ifndef GG_FILE_SPLIT_INT_H
#define GG_FILE_SPLIT_INT_H

#include "base/error.h"
#include "gguf/split.h"

#include <stdbool.h>

/* The keys that make a file a shard, in the order in which they are written. */
enum { GG_SPLIT_NO, GG_SPLIT_COUNT, GG_SPLIT_TOTAL, GG_N_SPLIT_KEYS };
extern const char *const gg_file_split_keys[GG_N_SPLIT_KEYS];
bool gg_file_split_is_key(struct gguf_str key);
/* Set them, and take them away. */
enum gguf_status gg_file_split_set_keys(struct gguf_meta *m, size_t no,
                                        size_t count, size_t n_tensors,
                                        struct gguf_error *err);
void gg_file_split_remove_keys(struct gguf_meta *m);

/* Put the name of the shard at path before the message of a failure; returns
 * status. err may be NULL. */
enum gguf_status gg_file_split_in_shard(enum gguf_status status,
                                        const char *path,
                                        struct gguf_error *err);

/* The n files of a set that is being written, none of which has its name yet:
 * file i from the descriptor fd[i], which stays the caller's, called path[i].
 * Fails as gguf_split_open, and leaves *out NULL. */
enum gguf_status gg_file_split_open_fds(struct gguf_split **out, const int *fd,
                                        const char *const *path, size_t n,
                                        const struct gguf_file_params *params,
                                        struct gguf_error *err);

/* Of the set: NULL is malloc. */
const struct gguf_allocator *
gg_file_split_allocator(const struct gguf_split *s);
/* All gguf_split_n_files of them. */
const struct gguf_file *const *gg_file_split_files(const struct gguf_split *s);

#endif
