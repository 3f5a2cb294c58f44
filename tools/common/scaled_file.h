/* SPDX-License-Identifier: MIT */
/* scaled_file.h - arguments of the form FILE[=SCALE] */
#ifndef TOOLS_COMMON_SCALED_FILE_H
#define TOOLS_COMMON_SCALED_FILE_H

#include "tools/common/opt.h"

/* Files with a scale each. Zeroed: empty. */
struct scaled_list {
    struct scaled {
        char *path;
        float scale;
    } * file;
    size_t n;
};

/* Syntax of an argument: value of its row. */
enum scaled_form {
    SCALED_OPTIONAL =
        /* FILE or FILE=SCALE; without a number after the last '=' the whole
         * argument is the file name */
    '=',
    SCALED_REQUIRED = ':' /* FILE:SCALE, the syntax of llama.cpp */
};

/* Parse the arguments of a list. A scale must be finite, from -1e9 to 1e9. An
 * error ends the program with a usage error that names option. */
void scaled_parse(struct scaled_list *to, const char *option,
                  const struct opt_list *from);
void scaled_fini(struct scaled_list *l);

#endif
