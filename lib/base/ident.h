/* ident.h - which file it is, and whose
 *
 * A name says little about a file: two may lead to one, and what one leads to
 * may be another file a moment later. Device and inode tell them apart. What
 * is removed by name is looked at first, so that only the file goes away that
 * was made.
 */
#ifndef GG_BASE_IDENT_H
#define GG_BASE_IDENT_H

#include "base/error.h"
#include "gguf/memory.h"

#include <stdbool.h>
#include <sys/types.h>

struct gg_ident {
    dev_t dev;
    ino_t ino;
};

/* Of the regular file that is open as fd; false: it is none. */
bool gg_ident_fd(struct gg_ident *id, int fd);

/* Is path, not followed if it is a link, this regular file? If not, errno is
 * why: ENOENT also where it is another file. */
bool gg_ident_is(const struct gg_ident *id, const char *path);

/* Remove path if it is this file; whether it did, else errno is why. Between
 * look and removal there is a moment; nothing that POSIX has removes by
 * descriptor. */
bool gg_ident_unlink(const struct gg_ident *id, const char *path);

/* May what the file fd says be obeyed, which was found as path? In a folder
 * like /tmp, where anybody may create files but none replace those of others,
 * only if it comes from this user, from the superuser or from owner. Elsewhere
 * who can put a file beside another can as well replace that. GGUF_E_IO,
 * GGUF_E_NOMEM: it could not be told, and *trusted is false. */
enum gguf_status gg_ident_trusted(int fd, const char *path, uid_t owner,
                                  bool *trusted, struct gguf_error *err);

/* Open path, not followed if it is a link, for reading and writing: what an
 * earlier run of this user left there. *fd is -1, with GGUF_OK, if there is
 * nothing. GGUF_E_MISMATCH: it is no regular file, it has another name (a hard
 * link), or it is not to be trusted. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_ident_open(const char *path, int *fd,
                               struct gguf_error *err);

/* Before the name in path: "" or something that ends in '/'. */
size_t gg_ident_folder_size(const char *path);
/* The folder of path, "." if there is none: allocated; NULL: no memory. */
char *gg_ident_folder(const struct gguf_allocator *a, const char *path);

#endif
