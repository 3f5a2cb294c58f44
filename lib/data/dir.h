/* SPDX-License-Identifier: MIT */
/* dir.h - files of a folder, local or remote
 *
 * A folder is local, or it is one that an opener takes (gguf/reader.h): its
 * files are then requested by the folder's path, "/" and their name.
 */
#ifndef GG_DATA_DIR_H
#define GG_DATA_DIR_H

#include "base/mapfile.h"
#include "base/mem.h"
#include "gguf/paths.h"
#include "gguf/reader.h"

struct gg_dir {
    const char *path;                 /* kept */
    const struct gguf_opener *opener; /* kept; NULL: local folders only */
    const struct gguf_allocator *allocator;
    struct gguf_paths *opened; /* records each local file that is opened, as an
                                * input; NULL: none */
};

/* Open a file that may be missing: *there is false then, and m is not open.
 * Data of a remote file are not loaded yet. err does not name the file.
 * Statuses: those of gg_mapfile_open and of the opener. */
enum gguf_status gg_dir_open(const struct gg_dir *f, const char *name,
                             struct gg_mapfile *m, bool *there,
                             struct gguf_error *err);
/* Open a file that may be missing, and load all of it. GGUF_E_LIMIT: it is
 * larger than most bytes. GGUF_E_FORMAT: it has a foreign format
 * (foreign_format.h), and is neither a model card nor a template.
 * GGUF_E_TRUNCATED: an empty JSON file. Other statuses: those of
 * gg_dir_open. */
enum gguf_status gg_dir_map(const struct gg_dir *f, const char *name,
                            uint64_t most, struct gg_mapfile *m, bool *there,
                            struct gguf_error *err);

/* A file that may be present in place of a required one: begin and end of its
 * name, and advice that follows the name in a message. */
struct gg_dir_alternative {
    const char *begin, *end, *advice;
};
/* Fail with GGUF_E_NOTFOUND. The message is `what', which names a missing file.
 * If the folder has a file that one of the n rows describes, its
 * name and the first such row's advice are added. Remote files cannot be
 * listed: there only the name of begin and end is tried. */
enum gguf_status gg_dir_fail_missing(const struct gg_dir *f, const char *what,
                                     const struct gg_dir_alternative *rows,
                                     size_t n, struct gguf_error *err);

/* Does an opener take this folder? */
bool gg_dir_is_remote(const struct gg_dir *f);

#endif
