/* SPDX-License-Identifier: MIT */
/* shard_set.h - a set of shards opened as one file
 *
 * struct gguf_file of a set has the shards as files of their own, the metadata
 * of the first, and a list of the tensors of all.
 */
#ifndef GG_FILE_SHARD_SET_H
#define GG_FILE_SHARD_SET_H

#include "base/error.h"
#include "gguf/file.h"
#include "gguf/meta.h"

#include <stdbool.h>

/* The keys that make a file a shard, in the order in which they are written. */
enum { GG_SPLIT_NO, GG_SPLIT_COUNT, GG_SPLIT_TOTAL, GG_N_SPLIT_KEYS };
extern const char *const gg_file_split_keys[GG_N_SPLIT_KEYS];
bool gg_file_split_is_key(struct gguf_str key);
enum gguf_status gg_file_split_set_keys(struct gguf_meta *m, size_t no,
                                        size_t count, size_t n_tensors,
                                        struct gguf_error *err);
void gg_file_split_remove_keys(struct gguf_meta *m);

/* Open path, which may be a shard, a folder or a prefix, as gguf_file_open
 * does. */
enum gguf_status gg_file_open_set(struct gguf_file **out, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err);

/* Open the n files of an output before they get their names: file i from the
 * descriptor fd[i], which stays the caller's. path[i] is its name in
 * messages. */
enum gguf_status gg_file_open_set_fds(struct gguf_file **out, const int *fd,
                                      const char *const *path, size_t n,
                                      const struct gguf_file_params *params,
                                      struct gguf_error *err);

/* Is f a whole model, and not one of several shards that was opened alone?
 * GGUF_E_UNSUPPORTED; for what: "to be evaluated". */
enum gguf_status gg_file_check_whole(const struct gguf_file *f,
                                     const char *for_what,
                                     struct gguf_error *err);

#endif
