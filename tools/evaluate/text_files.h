/* SPDX-License-Identifier: MIT */
/* text_files.h - the text files of -f, with patterns expanded
 *
 * opt_parse() fills args. ev_find_files() then makes paths of them: an argument
 * that is not the name of a file and has a wildcard is a pattern. */
#ifndef TOOLS_EVALUATE_TEXT_FILES_H
#define TOOLS_EVALUATE_TEXT_FILES_H

#include "tools/common/opt.h"

struct ev_files {
    struct opt_list args; /* arguments of -f */
    char **path;          /* [n] paths, owned */
    size_t n, room;
};

/* Fill path. Returns false after it printed a message. If standard input is
 * given twice, the program ends with a usage error. */
bool ev_find_files(struct ev_files *f);

void ev_files_fini(struct ev_files *f);

#endif
