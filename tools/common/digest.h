/* SPDX-License-Identifier: MIT */
/* digest.h - checksums of what was opened */
#ifndef TOOLS_DIGEST_H
#define TOOLS_DIGEST_H

#include "tools/common/load.h"

#include <gguf/digest.h>

/* Of one model: gguf_digest_files on all its files. tensors has room for one
 * each, or is NULL; model may be NULL. label is what the progress bar says. */
enum gguf_status digest_model(const struct load *l, enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *tensors,
                              struct gguf_digest *model,
                              struct gguf_error *err);

/* Of all bytes of each file of a model: gguf_digest_whole. whole has room for
 * one each. */
enum gguf_status digest_whole(const struct load *l, enum gguf_digest_algo algo,
                              struct gguf_pool *pool, const char *label,
                              bool quiet, struct gguf_digest *whole,
                              struct gguf_error *err);

/* Of all bytes of a file, which is mapped. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status digest_path(const char *path, enum gguf_digest_algo algo,
                             struct gguf_digest *out, struct gguf_error *err);

#endif
