/* SPDX-License-Identifier: MIT */
/* stranger.h - files that are not what their names say
 *
 * Downloads leave pointers, web pages and answers of servers where a model
 * should be, and files of other formats get its name. What begins like one of
 * these is named, so that the message says more than that a file is malformed.
 */
#ifndef GG_BASE_STRANGER_H
#define GG_BASE_STRANGER_H

#include <stdint.h>

/* A format that is read here, and a stranger elsewhere. To prose, which may
 * begin with markup or with any word, only a Git LFS pointer is one. */
enum gg_stranger_but {
    GG_STRANGER_BUT_NONE,
    GG_STRANGER_BUT_GGUF,
    GG_STRANGER_BUT_SAFETENSORS,
    GG_STRANGER_BUT_PROSE
};

/* Name the format of a file by its first size bytes, as in "a web page". NULL:
 * the format is unknown, or it is `but', which the file should have. */
const char *gg_stranger_name(const void *data, uint64_t size,
                             enum gg_stranger_but but);

#endif
