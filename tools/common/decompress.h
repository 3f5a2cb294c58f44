/* SPDX-License-Identifier: MIT */
/* decompress.h - files that are no texts, by how they begin; texts in archives
 * */
#ifndef TOOLS_COMMON_DECOMPRESS_H
#define TOOLS_COMMON_DECOMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What data is, if it is not a text: data becomes what it unpacks to, where
 * this build has the library for that (from malloc; the old one is freed), of
 * limit bytes at most. false: a message was printed, and data is freed and
 * NULL. gzip is not among them: zlib reads that as it reads plain files. */
bool decompress_text(const char *path, uint64_t limit, char **data,
                     size_t *size);

#endif
