/* SPDX-License-Identifier: MIT */
/* digest.h - checksums of what was opened */
#ifndef TOOLS_DIGEST_H
#define TOOLS_DIGEST_H

#include <gguf/digest.h>

#include <stdbool.h>

/* gguf_digest_tensors with a progress bar. label: text of the bar. tensors has
 * room for one digest each, or is NULL; model may be NULL. */
enum gguf_status digest_model(const struct gguf_file *file,
                              enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *tensors,
                              struct gguf_digest *model,
                              struct gguf_error *err);

/* gguf_digest_shards with a progress bar. whole has room for a digest of each
 * shard. */
enum gguf_status digest_whole(const struct gguf_file *file,
                              enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *whole,
                              struct gguf_error *err);

/* Of all bytes of a file, which is mapped. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status digest_path(const char *path, enum gguf_digest_algo algo,
                             struct gguf_digest *out, struct gguf_error *err);

#endif
