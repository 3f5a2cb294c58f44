/* SPDX-License-Identifier: MIT */
/* file_id.h - which file it is, and whose
 *
 * A name says little about a file: two may lead to one, and what one leads to
 * may be another file a moment later. Device and inode tell them apart. Before
 * a file is removed by name it is compared, so that only the intended file is
 * removed.
 */
#ifndef GG_BASE_FILE_ID_H
#define GG_BASE_FILE_ID_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>
#include <sys/types.h>

struct gg_file_id {
    dev_t dev;
    ino_t ino;
};

/* The identity of the regular file open as fd; false: not a regular file. */
bool gg_file_id_fd(struct gg_file_id *id, int fd);

/* Is path, not followed if it is a link, this regular file? If not, errno says
 * why; it is ENOENT also if path is another file. */
bool gg_file_id_is(const struct gg_file_id *id, const char *path);

/* Remove path if it is this file: true if removed, else errno says why. The
 * file could change between check and removal: POSIX cannot remove by
 * descriptor. */
bool gg_file_id_unlink(const struct gg_file_id *id, const char *path);

/* May the contents of the file fd, found as path, be trusted? In a folder like
 * /tmp, where anybody may create files but nobody may replace those of others,
 * only if it belongs to this user, to the superuser or to owner. Elsewhere, a
 * user who can put a file beside another can replace that too. GGUF_E_IO,
 * GGUF_E_NOMEM: undecided, and *trusted is false. */
enum gguf_status gg_file_id_trusted(int fd, const char *path, uid_t owner,
                                    bool *trusted, struct gguf_error *err);

/* Open path, not followed if it is a link, for reading and writing: a file
 * that an earlier run of this user left there. *fd is -1, with GGUF_OK, if
 * there is none. GGUF_E_MISMATCH: it is not a regular file, it has another
 * name (a hard link), or it is not trusted. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_file_id_open(const char *path, int *fd,
                                 struct gguf_error *err);

/* The part of path before the name: "" or text that ends in '/'. */
size_t gg_file_id_folder_size(const char *path);
/* The folder of path, "." if there is none: allocated; NULL: no memory. */
char *gg_file_id_folder(const struct gguf_allocator *a, const char *path);

#endif
