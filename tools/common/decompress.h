/* SPDX-License-Identifier: MIT */
/* decompress.h - decompressing text, and refusing other files */
#ifndef TOOLS_COMMON_DECOMPRESS_H
#define TOOLS_COMMON_DECOMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decompress data if it is compressed text, and refuse data that is not text.
 *
 * path    For messages.
 * limit   Most bytes after decompression.
 * data    From malloc(). Replaced by the decompressed text if this build has
 *         the library for its format. Freed and set to NULL after a failure.
 * size    Its size.
 *
 * gzip is not recognised here: zlib reads it like plain files. Returns false
 * after a message.
 */
bool decompress_text(const char *path, uint64_t limit, char **data,
                     size_t *size);

#endif
