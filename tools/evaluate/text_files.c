/* SPDX-License-Identifier: MIT */
/* text_files.c - the text files of -f, with patterns expanded */
#include "config.h"
#include "tools/evaluate/text_files.h"
#include "tools/common/msg.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add_file(struct ev_files *f, const char *path)
{
    f->path = msg_grow(f->path, &f->room, f->n + 1, sizeof *f->path);
    f->path[f->n++] = msg_copy(path);
}

/* Add all files that match a pattern, in the order of a shell. */
static bool add_pattern(struct ev_files *f, const char *pattern)
{
    struct gg_os_paths g;
    const int st = gg_os_paths_find(&g, pattern, true);
    if (st && errno == ENOENT)
        msg_error(pattern,
                  "no such file, and no file matches it as a pattern");
    else if (st)
        msg_error(pattern, "a folder of the pattern cannot be read");
    for (size_t i = 0; !st && i < g.n; i++)
        add_file(f, g.path[i]);
    if (!st)
        gg_os_paths_free(&g);
    return !st;
}

bool ev_find_files(struct ev_files *f)
{
    size_t n_stdin = 0;
    for (size_t i = 0; i < f->args.n; i++) {
        const char *arg = f->args.arg[i];
        struct gg_os_stat s;
        n_stdin += strcmp(arg, "-") == 0;
        if (strpbrk(arg, "*?[") && gg_os_stat(arg, &s) != 0) {
            if (!add_pattern(f, arg))
                return false;
        } else {
            add_file(f, arg);
        }
    }
    if (n_stdin > 1)
        opt_usage("--file: standard input (-) is given more than once");
    return true;
}

void ev_files_fini(struct ev_files *f)
{
    opt_list_fini(&f->args);
    for (size_t i = 0; i < f->n; i++)
        free(f->path[i]);
    free(f->path);
}
