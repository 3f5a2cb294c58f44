/* SPDX-License-Identifier: MIT */
/* textfile.h - reading a text that is evaluated */
#ifndef TOOLS_TEXTFILE_H
#define TOOLS_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of a text file: plain, gzip, xz or zstd (as far as this build has
 * their libraries; decompress.h), "-" for standard input; of more than
 * limit bytes, unpacked, it is refused, and so is a Git LFS pointer. *data is
 * owned, free(), and NULL after a failure. false: a message was printed. */
bool textfile_read(const char *path, uint64_t limit, char **data,
                   size_t *size);

/* A text is UTF-8, without NUL; it may be cut off within its last character, as
 * head -c does. false: a message says what it is, and that --force takes it. */
bool textfile_check(const char *name, const char *s, size_t size);

/* Warn of a web page: a download may have left it in the text's place, and it
 * may be meant. */
void textfile_warn(const char *name, const char *s, size_t size);

#endif
