/* SPDX-License-Identifier: MIT */
/* shard_set.h - open a set of shards as one file
 *
 * The struct gguf_file of a set has a struct gguf_file for each shard, the
 * metadata of the first shard, and a list of the tensors of all shards.
 */
#ifndef GG_FILE_SHARD_SET_H
#define GG_FILE_SHARD_SET_H

#include "base/error.h"
#include "gguf/file.h"
#include "gguf/meta.h"

#include <stdbool.h>

/* Keys of a shard, in the order in which they are written. */
enum { GG_SPLIT_NO, GG_SPLIT_COUNT, GG_SPLIT_TOTAL, GG_N_SPLIT_KEYS };
extern const char *const gg_file_split_keys[GG_N_SPLIT_KEYS];
/* Is key one of them? */
bool gg_file_split_is_key(struct gguf_str key);
/* Set the keys of shard no, from 0, of count with n_tensors in all shards.
 * GGUF_E_NOMEM. */
enum gguf_status gg_file_split_set_keys(struct gguf_meta *m, size_t no,
                                        size_t count, size_t n_tensors,
                                        struct gguf_error *err);
/* Remove the keys. */
void gg_file_split_remove_keys(struct gguf_meta *m);

/* Open a file, shard, folder or prefix of a set, as gguf_file_open() does. */
enum gguf_status gg_file_open_set(struct gguf_file **out, const char *path,
                                  const struct gguf_file_params *params,
                                  struct gguf_error *err);

/* Open the files of an output that do not have their names yet.
 *
 * out      Receives the file or set.
 * fd       n descriptors. They stay the caller's.
 * path     n paths for messages.
 * n        Number of files.
 * params   How to open. */
enum gguf_status gg_file_open_set_fds(struct gguf_file **out, const int *fd,
                                      const char *const *path, size_t n,
                                      const struct gguf_file_params *params,
                                      struct gguf_error *err);

/* Check that f is a whole model. for_what completes the message, as in "to be
 * evaluated". GGUF_E_UNSUPPORTED: one shard of several, opened by itself. */
enum gguf_status gg_file_check_whole(const struct gguf_file *f,
                                     const char *for_what,
                                     struct gguf_error *err);

#endif
