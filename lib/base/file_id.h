/* SPDX-License-Identifier: MIT */
/* file_id.h - identity and owner of files
 *
 * Two names may lead to one file, and a name may lead to another file a moment
 * later. Device and inode identify a file. A file is compared with its identity
 * before it is removed by name, so that no other file is removed.
 */
#ifndef GG_BASE_FILE_ID_H
#define GG_BASE_FILE_ID_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_file_id {
    uint64_t dev, ino;
};

/* Get the identity of the regular file open as fd. Returns false if it is not a
 * regular file. */
bool gg_file_id_fd(struct gg_file_id *id, int fd);

/* Is path this regular file? Symbolic links are not followed. If not, errno is
 * the reason; it is ENOENT if path is another file. */
bool gg_file_id_is(const struct gg_file_id *id, const char *path);

/* Remove path if it is this file. Returns whether it was removed; if not, errno
 * is the reason. The name could change between check and removal, as POSIX
 * cannot remove by descriptor. */
bool gg_file_id_unlink(const struct gg_file_id *id, const char *path);

/* Can the contents of the file fd, found as path, be trusted?
 *
 * In a folder like /tmp, anybody may create files but nobody may replace those
 * of others: there the file must belong to this user, to the superuser or to
 * owner. In other folders, a user who can create a file beside another can
 * replace that one, too, so the file is trusted.
 *
 * GGUF_E_IO, GGUF_E_NOMEM: undecided; *trusted is false. */
enum gguf_status gg_file_id_trusted(int fd, const char *path, uint64_t owner,
                                    bool *trusted, struct gguf_error *err);

/* Open a file that an earlier run of this user left, for reading and writing.
 *
 * path   Path of the file. Symbolic links are not followed.
 * fd     Receives the descriptor; -1, with GGUF_OK, if path does not exist.
 *
 * GGUF_E_MISMATCH: not a regular file, a file with a second name (hard link),
 * or not trusted. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_file_id_open(const char *path, int *fd,
                                 struct gguf_error *err);

/* Length of the folder in path: of "" or of text that ends in '/'. */
size_t gg_file_id_folder_size(const char *path);
/* Folder of path, "." if path has no slash. Free it with gg_mem_free(). NULL:
 * out of memory. */
char *gg_file_id_folder(const struct gguf_allocator *a, const char *path);

#endif
