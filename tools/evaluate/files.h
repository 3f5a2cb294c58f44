/* SPDX-License-Identifier: MIT */
/* files.h - the files that -f names
 *
 * A tool's row of -f fills args. ev_find_files() makes paths of them: an
 * argument that is no file and has a wildcard is a pattern. */
#ifndef TOOLS_EVALUATE_FILES_H
#define TOOLS_EVALUATE_FILES_H

#include "tools/common/opt.h"

struct ev_files {
    struct opt_list args; /* arguments of -f */
    char **path;          /* [n] paths, owned */
    size_t n, room;
};

/* Fill path. false: a message was printed. Two standard inputs end the program
 * with a usage error. */
bool ev_find_files(struct ev_files *f);

void ev_files_fini(struct ev_files *f);

#endif
