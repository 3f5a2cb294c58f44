/* SPDX-License-Identifier: MIT */
/* os_name_posix.c - patterns of names, rights of folders, libraries loaded at
 * run time, by POSIX */
#include "config.h"
#include "base/os/os_program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gg_os_name_matches(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, 0) == 0;
}

/* Copy the paths of g. */
static int copy_paths(struct gg_os_paths *paths, const glob_t *g)
{
    paths->path = calloc(g->gl_pathc, sizeof *paths->path);
    if (!paths->path)
        return -1;
    for (; paths->n < g->gl_pathc; paths->n++)
        if (!(paths->path[paths->n] = strdup(g->gl_pathv[paths->n]))) {
            gg_os_paths_free(paths);
            return -1;
        }
    return 0;
}

int gg_os_paths_find(struct gg_os_paths *paths, const char *pattern,
                     bool strict)
{
    glob_t g;
    *paths = (struct gg_os_paths){ NULL, 0 };
    const int st = glob(pattern, strict ? GLOB_ERR : 0, NULL, &g);
    if (st) {
        errno = st == GLOB_NOMATCH   ? ENOENT
                : st == GLOB_NOSPACE ? ENOMEM
                                     : EIO;
        return -1;
    }
    const int rc = copy_paths(paths, &g);
    globfree(&g);
    return rc;
}

void gg_os_paths_free(struct gg_os_paths *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        free(paths->path[i]);
    free(paths->path);
    *paths = (struct gg_os_paths){ NULL, 0 };
}

int gg_os_can_write(const char *folder)
{
    return access(folder, W_OK);
}

const char *gg_os_temporary_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    return tmp && *tmp ? tmp : "/tmp";
}

int gg_os_make_private_folder(char *path)
{
    return mkdtemp(path) ? 0 : -1;
}

void *gg_os_library_load(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void *gg_os_library_find(void *library, const char *name)
{
    return dlsym(library, name);
}
