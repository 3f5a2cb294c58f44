/* SPDX-License-Identifier: MIT */
/* source.h - files of the source tree */
#ifndef TESTS_SOURCE_H
#define TESTS_SOURCE_H

#include <stdio.h>
#include <stdlib.h>

/* Path of a file in the source tree, valid until the next call. */
static inline const char *source_path(const char *name)
{
    static char path[4096];
    const char *top = getenv("srcdir");
    snprintf(path, sizeof path, "%.3000s/%s", top ? top : ".", name);
    return path;
}

#endif
