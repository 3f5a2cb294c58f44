/* SPDX-License-Identifier: MIT */
/* foreign_format.h - recognize files of another format than expected
 *
 * Failed downloads leave Git LFS pointers, web pages or error messages of
 * servers in place of a model, and files of other formats get a wrong name.
 * They are recognized by their first bytes, so that a message can name them.
 */
#ifndef GG_BASE_FOREIGN_FORMAT_H
#define GG_BASE_FOREIGN_FORMAT_H

#include <stdint.h>

/* Format that a file should have. Prose may begin with markup or any word, so
 * only a Git LFS pointer is foreign there. */
enum gg_foreign_format_but {
    GG_FOREIGN_BUT_NONE,
    GG_FOREIGN_BUT_GGUF,
    GG_FOREIGN_BUT_SAFETENSORS,
    GG_FOREIGN_BUT_PROSE
};

/* Name the format of a file by its first size bytes, as in "a web page".
 * Returns NULL if the format is unknown, or is the expected one, but. */
const char *gg_foreign_format_name(const void *data, uint64_t size,
                                   enum gg_foreign_format_but but);

#endif
