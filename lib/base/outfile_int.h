/* SPDX-License-Identifier: MIT */
/* outfile_int.h - write a file that appears complete or not at all
 *
 * The bytes go to a file without a name on the target's file system
 * (O_TMPFILE), or to a temporary beside the target if that does not work. A
 * commit syncs the file and publishes it: gives it the target's name. Otherwise
 * the target stays as it was and the temporary is removed.
 */
#ifndef GG_BASE_OUTFILE_INT_H
#define GG_BASE_OUTFILE_INT_H

#include "base/error.h"
#include "base/file_id.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_outfile {
    const struct gguf_allocator *allocator;
    int fd;               /* descriptor; -1: not open */
    char *path;           /* path of the target */
    char *temp;           /* path of the temporary; NULL: without a name */
    char *old;            /* path of the replaced file, kept for
                           * gg_outfile_unpublish(); NULL: none */
    struct gg_file_id id; /* identity of the file */
    bool named;           /* the file has the target's name */
    bool lost;            /* the replaced file cannot be restored */
    unsigned flags;       /* GG_OUTFILE_... */
    uint64_t pos;         /* bytes appended, buffered ones included */
    uint64_t have;        /* bytes complete: gg_outfile_set_complete() */
    uint8_t *buf;         /* buffer of appended bytes */
    size_t n_buf;         /* bytes in buf that are not yet in the file */
    bool no_cfr;          /* copy_file_range() does not work with the input */
};

enum {
    GG_OUTFILE_FORCE = 1,   /* replace an existing regular file */
    GG_OUTFILE_NO_SYNC = 2, /* do not wait for the disk */
    GG_OUTFILE_NAMED = 4,   /* use a temporary with a name, as on systems
                             * without O_TMPFILE */

    /* Use path + GG_OUTFILE_PART as the temporary, and keep it without a
     * commit. An existing one is refused: GGUF_E_MISMATCH. */
    GG_OUTFILE_PARTIAL = 8,

    /* With GG_OUTFILE_PARTIAL: continue an existing temporary with its
     * contents, if gg_file_id_open() accepts it. */
    GG_OUTFILE_RESUME = 16,

    /* The folder of path need not exist before the file is published. Until
     * then the file is in the folder above. GGUF_E_UNSUPPORTED on systems
     * without O_TMPFILE: create the folder first there. */
    GG_OUTFILE_NEW_FOLDER = 32
};

#define GG_OUTFILE_PART ".resume-data"

enum { GG_OUTFILE_BUF = 1 << 18 }; /* bytes of buf */

/* Begin a file.
 *
 * path    Path of the target. A symbolic link is replaced itself, not its
 *         target.
 * flags   GG_OUTFILE_... or 0.
 *
 * The new file gets the mode of the file that it replaces and, if this user may
 * give files away, its owner. End with gg_outfile_commit() or
 * gg_outfile_abort().
 *
 * GGUF_E_EXIST: path exists, without GG_OUTFILE_FORCE. It is checked again at
 * the commit. GGUF_E_INVALID: path is not a regular file. GGUF_E_IO,
 * GGUF_E_NOMEM. */
enum gguf_status gg_outfile_open(struct gg_outfile *o,
                                 const struct gguf_allocator *a,
                                 const char *path, unsigned flags,
                                 struct gguf_error *err);

/* Give the new file the mode of the file fd and, if this user may give files
 * away, its owner. */
enum gguf_status gg_outfile_copy_mode(const struct gg_outfile *o, int fd,
                                      struct gguf_error *err);

/* Make sure that a file of size bytes fits on the disk. With allocate, its
 * space is allocated; otherwise only the free space is compared.
 * GGUF_E_NOSPACE: it does not fit; the message has both numbers. */
enum gguf_status gg_outfile_reserve(struct gg_outfile *o, uint64_t size,
                                    bool allocate, struct gguf_error *err);
/* Check that a file of size bytes fits, for a program's outfile
 * (gguf/outfile.h). GGUF_E_NOSPACE. */
struct gguf_outfile;
enum gguf_status gg_outfile_check_room(struct gguf_outfile *f, uint64_t size,
                                       struct gguf_error *err);

/* Declare the first size bytes of a resumed file complete. Bytes that are
 * appended at their place are not written again. */
enum gguf_status gg_outfile_set_complete(struct gg_outfile *o, uint64_t size,
                                         struct gguf_error *err);
/* Skip those of the next size bytes that are complete. Returns their number. */
uint64_t gg_outfile_skip_complete(struct gg_outfile *o, uint64_t size);

/* Append size bytes. Small pieces are buffered. */
enum gguf_status gg_outfile_write(struct gg_outfile *o, const void *data,
                                  uint64_t size, struct gguf_error *err);
/* Write the buffer to the file. */
enum gguf_status gg_outfile_flush(struct gg_outfile *o,
                                  struct gguf_error *err);
/* Append size zeros. */
enum gguf_status gg_outfile_zeros(struct gg_outfile *o, uint64_t size,
                                  struct gguf_error *err);

/* Append size bytes from in_off of the file in_fd. The file system copies them
 * itself if it can. The position of in_fd does not move. GGUF_E_TRUNCATED: the
 * file ends earlier. */
enum gguf_status gg_outfile_copy(struct gg_outfile *o, int in_fd,
                                 uint64_t in_off, uint64_t size,
                                 struct gguf_error *err);

/* Can this file share extents with the file in_fd, so that copies of whole
 * pages at the same offset within a page take no space? Finds out by trying:
 * the file must be empty, and is empty afterwards. */
bool gg_outfile_can_share(const struct gg_outfile *o, int in_fd);

/* Make the empty file a clone of the file in_fd of size bytes, which shares its
 * extents; bytes are then appended after them. Returns false, and changes
 * nothing, if the file system cannot do that. */
bool gg_outfile_clone(struct gg_outfile *o, int in_fd, uint64_t size);

/* Write size bytes at off: after the appended bytes, or into space that
 * gg_outfile_skip() left. Any thread may call this. */
enum gguf_status gg_outfile_write_at(struct gg_outfile *o, uint64_t off,
                                     const void *data, uint64_t size,
                                     struct gguf_error *err);

/* Read size bytes at off, which must have been written. Any thread may call
 * this. GGUF_E_TRUNCATED: the file ends earlier. */
enum gguf_status gg_outfile_read_at(const struct gg_outfile *o, uint64_t off,
                                    void *data, uint64_t size,
                                    struct gguf_error *err);

/* Skip size bytes: continue appending after them. They are zeros until
 * gg_outfile_write_at() writes them. */
enum gguf_status gg_outfile_skip(struct gg_outfile *o, uint64_t size,
                                 struct gguf_error *err);

/* Sync a few megabytes from *at on, so that the commit does not have to wait
 * for all of the file. *at moves after them, at most to end. If the system
 * cannot do this, or with GG_OUTFILE_NO_SYNC, *at becomes end. */
enum gguf_status gg_outfile_sync_some(const struct gg_outfile *o, uint64_t *at,
                                      uint64_t end, struct gguf_error *err);

/* Flush, set the length to pos, sync, publish, and sync the folder. The object
 * is closed afterwards, also after a failure. If only the last step fails, the
 * file has its name already, and the message says so. */
enum gguf_status gg_outfile_commit(struct gg_outfile *o,
                                   struct gguf_error *err);

/* The steps of a commit, for several files that get their names all or none:
 *
 *   gg_outfile_finish()        for each file: everything before the name
 *   gg_outfile_publish()       for each file: the name. With keep_old, the
 *                              replaced file is kept until gg_outfile_abort(),
 *                              if the file system has hard links
 *   gg_outfile_sync_folder()   for each folder
 *
 * After a failure, gg_outfile_unpublish() takes a name back if the file still
 * has it: the replaced file is restored, and a partial file is the temporary
 * again. */
enum gguf_status gg_outfile_finish(struct gg_outfile *o,
                                   struct gguf_error *err);
/* Close the descriptor of a finished file and give it a temporary name, so that
 * many files can wait to be published. */
enum gguf_status gg_outfile_park(struct gg_outfile *o, struct gguf_error *err);
enum gguf_status gg_outfile_publish(struct gg_outfile *o, bool keep_old,
                                    struct gguf_error *err);
void gg_outfile_unpublish(struct gg_outfile *o);
/* Publish n finished files, or none of them. at() returns file i. After a
 * failure, *bad is the index of the file that failed. */
typedef struct gg_outfile *gg_outfile_at_fn(void *user, size_t i);
enum gguf_status gg_outfile_publish_all(gg_outfile_at_fn *at, void *user,
                                        size_t n, bool keep_old, size_t *bad,
                                        struct gguf_error *err);
enum gguf_status gg_outfile_sync_folder(const struct gg_outfile *o,
                                        struct gguf_error *err);

/* Close the file. If it was not published it is removed, unless it is partial.
 * A zeroed struct and a closed one are allowed. */
void gg_outfile_abort(struct gg_outfile *o);

#endif
