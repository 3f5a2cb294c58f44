/* SPDX-License-Identifier: MIT */
/* digest.h - checksums with a progress bar */
#ifndef TOOLS_DIGEST_H
#define TOOLS_DIGEST_H

#include <gguf/digest.h>

#include <stdbool.h>

/* Compute checksums of tensor data: gguf_digest_tensors() with a progress bar.
 *
 * label     Text of the bar; kept during the call.
 * quiet     No bar.
 * tensors   Receives a digest for each tensor. May be NULL.
 * model     Receives the digest of the model. May be NULL.
 */
enum gguf_status digest_model(const struct gguf_file *file,
                              enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *tensors,
                              struct gguf_digest *model,
                              struct gguf_error *err);

/* Compute a checksum of each shard as a whole file: gguf_digest_shards() with a
 * progress bar. whole receives a digest for each shard. */
enum gguf_status digest_whole(const struct gguf_file *file,
                              enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *whole,
                              struct gguf_error *err);

/* Compute the checksum of all bytes of a file, which is mapped. Returns
 * GGUF_E_IO or GGUF_E_NOMEM after a failure. */
enum gguf_status digest_path(const char *path, enum gguf_digest_algo algo,
                             struct gguf_digest *out, struct gguf_error *err);

#endif
