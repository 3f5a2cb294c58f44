/* SPDX-License-Identifier: MIT */
/* dir_missing.c - report a missing file, and a file found in its place */
#include "config.h"
#include "data/dir.h"
#include "base/os/os.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static bool matches_row(struct gguf_str name,
                        const struct gg_dir_alternative *row)
{
    return name.size >= strlen(row->begin) + strlen(row->end) &&
           gg_str_starts(name, row->begin) && gg_str_ends(name, row->end);
}

/* Find the first name, in byte order, that matches a row. */
static bool find_local(const char *path, const struct gg_dir_alternative *row,
                       char name[256])
{
    const char *x;
    struct gg_os_folder *d = gg_os_folder_open(path);
    *name = 0;
    while (d && (x = gg_os_folder_next(d)) != NULL)
        if (strlen(x) < 256 && matches_row(gg_str_z(x), row) &&
            (!*name || strcmp(x, name) < 0))
            snprintf(name, 256, "%s", x);
    if (d)
        gg_os_folder_close(d);
    return *name;
}

static bool find_remote(const struct gg_dir *f,
                        const struct gg_dir_alternative *row, char name[256])
{
    struct gg_mapfile m;
    bool there = false;
    snprintf(name, 256, "%s%s", row->begin, row->end);
    if (gg_dir_open(f, name, &m, &there, NULL) != GGUF_OK || !there)
        return false;
    gg_mapfile_close(&m);
    return true;
}

/* Find the first row with a matching file in the folder; NULL: none. */
static const struct gg_dir_alternative *
find_row(const struct gg_dir *f, const struct gg_dir_alternative *rows,
         size_t n, char name[256])
{
    const bool far = gg_dir_is_remote(f);
    for (size_t i = 0; i < n; i++)
        if (far ? *rows[i].begin && find_remote(f, &rows[i], name)
                : find_local(f->path, &rows[i], name))
            return &rows[i];
    return NULL;
}

enum gguf_status gg_dir_fail_missing(const struct gg_dir *f, const char *what,
                                     const struct gg_dir_alternative *rows,
                                     size_t n, struct gguf_error *err)
{
    char name[256];
    struct gg_str_esc e;
    const struct gg_dir_alternative *row = find_row(f, rows, n, name);
    return row ? gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                              "%s; '%.60s' %s", what,
                              gg_str_esc(&e, gg_str_z(name)), row->advice)
               : gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET, "%s",
                              what);
}
