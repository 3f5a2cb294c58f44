/* SPDX-License-Identifier: MIT */
/* foreign_format.h - files that are not what their names say
 *
 * Downloads leave pointers, web pages and answers of servers where a model
 * should be, and files of other formats get its name. What begins like one of
 * these is named, so that the message says more than that a file is malformed.
 */
#ifndef GG_BASE_FOREIGN_FORMAT_H
#define GG_BASE_FOREIGN_FORMAT_H

#include <stdint.h>

/* The format that a file should have, which is not foreign there. A text in
 * prose may begin with markup or with any word: there only a Git LFS pointer is
 * foreign. */
enum gg_foreign_format_but {
    GG_FOREIGN_BUT_NONE,
    GG_FOREIGN_BUT_GGUF,
    GG_FOREIGN_BUT_SAFETENSORS,
    GG_FOREIGN_BUT_PROSE
};

/* Name the format of a file by its first size bytes, as in "a web page". NULL:
 * the format is unknown, or it is `but', which the file should have. */
const char *gg_foreign_format_name(const void *data, uint64_t size,
                                   enum gg_foreign_format_but but);

#endif
