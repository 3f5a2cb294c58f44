/* SPDX-License-Identifier: MIT */
/* dir.h - the files of a folder, wherever it is
 *
 * A folder is one of this machine, or what an opener (gguf/reader.h) takes: its
 * files are then asked for by the folder's path, "/", and their name.
 */
#ifndef GG_DATA_DIR_H
#define GG_DATA_DIR_H

#include "base/mapfile.h"
#include "base/mem.h"
#include "gguf/paths.h"
#include "gguf/reader.h"

struct gg_dir {
    const char *path;                 /* kept */
    const struct gguf_opener *opener; /* kept; NULL: there is none */
    const struct gguf_allocator *allocator;
    struct gguf_paths *opened; /* notes each file of this machine that is
                                * opened, as an input; NULL: nothing does */
};

/* Open the file name, which may be no file: *there is false then, and m is not
 * open. Of an opener's file nothing is at m->data as yet. What gg_mapfile_open
 * and the opener return; err does not say which file it is about. */
enum gguf_status gg_dir_open(const struct gg_dir *f, const char *name,
                             struct gg_mapfile *m, bool *there,
                             struct gguf_error *err);
/* The same, and have all of it in memory. GGUF_E_LIMIT: it has more than most
 * bytes; GGUF_E_FORMAT: it has a foreign format (foreign_format.h), and is
 * neither card nor template; GGUF_E_TRUNCATED: it is JSON and empty. */
enum gguf_status gg_dir_map(const struct gg_dir *f, const char *name,
                            uint64_t most, struct gg_mapfile *m, bool *there,
                            struct gguf_error *err);

/* A file that is there in place of one that is read, by how its name begins and
 * ends; and what to do then, a clause after the name. */
struct gg_dir_alternative {
    const char *begin, *end, *advice;
};
/* Return GGUF_E_NOTFOUND with the message `what', such as "there is no
 * config.json". If the folder has a file of one of the n rows, the message also
 * has that file's name and the advice of the first such row. Files of an opener
 * cannot be listed: it is asked for the name that is begin and end alone. */
enum gguf_status gg_dir_fail_missing(const struct gg_dir *f, const char *what,
                                     const struct gg_dir_alternative *rows,
                                     size_t n, struct gguf_error *err);

/* Is it an opener's? */
bool gg_dir_is_remote(const struct gg_dir *f);

#endif
