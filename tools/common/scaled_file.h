/* SPDX-License-Identifier: MIT */
/* scaled_file.h - files that count by a scale: FILE[=SCALE] */
#ifndef TOOLS_COMMON_SCALED_FILE_H
#define TOOLS_COMMON_SCALED_FILE_H

#include "tools/common/opt.h"

/* Zeroed is empty. */
struct scaled_list {
    struct scaled {
        char *path;
        float scale;
    } * file;
    size_t n;
};

/* How an argument is written: the value of its row. */
enum scaled_form {
    SCALED_OPTIONAL =
        '=', /* FILE or FILE=SCALE: without a number after the last
                         * '=' all of it is the file's name */
    SCALED_REQUIRED = ':' /* FILE:SCALE, as llama.cpp has it */
};

/* Those of a list; a scale is finite, from -1e9 to 1e9. What is wrong is a
 * usage error; option names it. */
void scaled_parse(struct scaled_list *to, const char *option,
                  const struct opt_list *from);
void scaled_fini(struct scaled_list *l);

#endif
