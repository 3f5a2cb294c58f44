/* SPDX-License-Identifier: MIT */
/* textfile.h - reading a text file for evaluation */
#ifndef TOOLS_TEXTFILE_H
#define TOOLS_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read a whole text file: plain, gzip, xz or zstd, as far as this build has
 * the libraries (decompress.h).
 *
 * path    "-" is standard input.
 * limit   A file of more bytes, decompressed, is refused; so is a Git LFS
 *         pointer.
 * data    Receives the text, for free(); NULL after a failure.
 *
 * Returns false after a message.
 */
bool textfile_read(const char *path, uint64_t limit, char **data,
                   size_t *size);

/* Check that the text is UTF-8 without NUL; its last character may be
 * incomplete, as after head -c. Returns false after a message about the fault,
 * which also says that --force accepts the text. */
bool textfile_check(const char *name, const char *s, size_t size);

/* Warn if the text is a web page, which a failed download may have left in its
 * place. */
void textfile_warn(const char *name, const char *s, size_t size);

#endif
