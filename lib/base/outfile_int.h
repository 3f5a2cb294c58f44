/* SPDX-License-Identifier: MIT */
/* outfile_int.h - a file that appears complete or not at all
 *
 * Bytes go to a file without a name on the target's file system (O_TMPFILE),
 * or, where that does not work, to a temporary beside the target. A commit
 * syncs it and gives it the target's name; anything else leaves the target as
 * it was and removes the temporary.
 */
#ifndef GG_BASE_OUTFILE_INT_H
#define GG_BASE_OUTFILE_INT_H

#include "base/error.h"
#include "base/file_id.h"
#include "gguf/memory.h"

#include <stdbool.h>

struct gg_outfile {
    const struct gguf_allocator *allocator;
    int fd;     /* -1: not open */
    char *path; /* the target */
    char *temp; /* name of the temporary, or NULL if it has none */
    char *old;  /* where what was replaced is kept; NULL: nothing is */
    struct gg_file_id id;
    bool named; /* it has its name */
    bool lost;  /* the old file could not be kept: it cannot be restored */
    unsigned flags;
    uint64_t pos;  /* bytes written and buffered by gg_outfile_write */
    uint64_t have; /* of gg_outfile_set_complete */
    uint8_t *buf;
    size_t n_buf; /* bytes in buf, not yet in the file */
    bool no_cfr;  /* copy_file_range does not work between these two */
};

enum {
    GG_OUTFILE_FORCE = 1,   /* replace a regular file that exists */
    GG_OUTFILE_NO_SYNC = 2, /* do not wait for the disk */
    GG_OUTFILE_NAMED = 4,   /* never without a name, as on systems without
                            * O_TMPFILE */
    GG_OUTFILE_PARTIAL = 8, /* the temporary is path + GG_OUTFILE_PART, and
                            * stays where there is no commit; one that is there
                            * already is refused: GGUF_E_MISMATCH */
    GG_OUTFILE_RESUME = 16, /* with that: it is taken with what it holds, where
                            * gg_file_id_open takes it */
    /* Its folder may not be there before it gets its name: until then it waits
     * beside the folder. GGUF_E_UNSUPPORTED where files must have names to be:
     * the folder comes first there. */
    GG_OUTFILE_NEW_FOLDER = 32
};

#define GG_OUTFILE_PART ".resume-data"

enum { GG_OUTFILE_BUF = 1 << 18 }; /* bytes of buf */

/* Begin the file that will be path. Without GG_OUTFILE_FORCE an existing path
 * is refused here (GGUF_E_EXIST), and once more at commit. An existing path
 * that is not a regular file is refused: GGUF_E_INVALID. A symbolic link is
 * replaced itself, not what it leads to. The new file has the mode of one that
 * it replaces, and where this user may give files away, the owner. */
enum gguf_status gg_outfile_open(struct gg_outfile *o,
                                 const struct gguf_allocator *a,
                                 const char *path, unsigned flags,
                                 struct gguf_error *err);

/* Mode and owner as those of the file fd, in the same way. */
enum gguf_status gg_outfile_copy_mode(const struct gg_outfile *o, int fd,
                                      struct gguf_error *err);

/* Make sure that size bytes will fit: GGUF_E_NOSPACE with both numbers.
 * allocate takes them from the file system; else the free room is looked at
 * only. */
enum gguf_status gg_outfile_reserve(struct gg_outfile *o, uint64_t size,
                                    bool allocate, struct gguf_error *err);
/* The same of a program's, gguf/outfile.h, whose room is looked at. */
struct gguf_outfile;
enum gguf_status gg_outfile_check_room(struct gguf_outfile *f, uint64_t size,
                                       struct gguf_error *err);

/* The first size bytes of a file that was taken up are there: what is appended
 * at their places is what they are, and is not written again. */
enum gguf_status gg_outfile_set_complete(struct gg_outfile *o, uint64_t size,
                                         struct gguf_error *err);
/* Of size bytes that are to be appended, pass over those that are there; how
 * many. */
uint64_t gg_outfile_skip_complete(struct gg_outfile *o, uint64_t size);

/* Append; small pieces are collected. */
enum gguf_status gg_outfile_write(struct gg_outfile *o, const void *data,
                                  uint64_t size, struct gguf_error *err);
/* Have what is collected written. */
enum gguf_status gg_outfile_flush(struct gg_outfile *o,
                                  struct gguf_error *err);
/* Append size zero bytes. */
enum gguf_status gg_outfile_zeros(struct gg_outfile *o, uint64_t size,
                                  struct gguf_error *err);

/* Append size bytes of the file in_fd from in_off on, by the file system's
 * own copy where it has one. in_fd's own position does not move.
 * GGUF_E_TRUNCATED if the file ends before. */
enum gguf_status gg_outfile_copy(struct gg_outfile *o, int in_fd,
                                 uint64_t in_off, uint64_t size,
                                 struct gguf_error *err);

/* Can blocks of in_fd's file be shared with this one, so that copies of whole
 * pages from like places take no room? Tries it; the file must be empty, and
 * is afterwards. */
bool gg_outfile_can_share(const struct gg_outfile *o, int in_fd);

/* Make the file, which must be empty, a clone of in_fd's size bytes that
 * shares its extents, with the position after them. False where the file
 * system cannot: the file is as it was. */
bool gg_outfile_clone(struct gg_outfile *o, int in_fd, uint64_t size);

/* size bytes at off, past what is appended or into space that
 * gg_outfile_skip left. From any thread. */
enum gguf_status gg_outfile_write_at(struct gg_outfile *o, uint64_t off,
                                     const void *data, uint64_t size,
                                     struct gguf_error *err);

/* Read size bytes at off, which must have been written: GGUF_E_TRUNCATED
 * otherwise. From any thread. */
enum gguf_status gg_outfile_read_at(const struct gg_outfile *o, uint64_t off,
                                    void *data, uint64_t size,
                                    struct gguf_error *err);

/* Go on appending size bytes further, leaving what is between (zeros, until
 * gg_outfile_write_at) alone. */
enum gguf_status gg_outfile_skip(struct gg_outfile *o, uint64_t size,
                                 struct gguf_error *err);

/* Have a few megabytes from *at on written to the disk, and wait for it, so
 * that a commit need not wait for all at once; *at moves on, at most to end;
 * straight to end where the system cannot do this or no sync is wanted. */
enum gguf_status gg_outfile_sync_some(const struct gg_outfile *o, uint64_t *at,
                                      uint64_t end, struct gguf_error *err);

/* Flush, cut or extend to pos, sync, name, sync the folder. The object is
 * closed afterwards, whatever comes back. Where only the last fails, the file
 * has its name, and the message says so. */
enum gguf_status gg_outfile_commit(struct gg_outfile *o,
                                   struct gguf_error *err);

/* The steps of that, for several files that get all of their names or none:
 * first all but the names; then the names, with keep_old so that replaced
 * files stay until gg_outfile_abort (not possible where the file system has no
 * hard links); then the folders. unname takes the name back if the file still
 * has it: the replaced file is restored, a partial one is the temporary
 * again. */
enum gguf_status gg_outfile_finish(struct gg_outfile *o,
                                   struct gguf_error *err);
/* After gg_outfile_finish: no descriptor from now on, but a temporary's
 * name. */
enum gguf_status gg_outfile_park(struct gg_outfile *o, struct gguf_error *err);
enum gguf_status gg_outfile_publish(struct gg_outfile *o, bool keep_old,
                                    struct gguf_error *err);
void gg_outfile_unpublish(struct gg_outfile *o);
/* Name number 0 to n - 1, which at finds, or none: *bad is the one that could
 * not be named. */
typedef struct gg_outfile *gg_outfile_at_fn(void *user, size_t i);
enum gguf_status gg_outfile_publish_all(gg_outfile_at_fn *at, void *user,
                                        size_t n, bool keep_old, size_t *bad,
                                        struct gguf_error *err);
enum gguf_status gg_outfile_sync_folder(const struct gg_outfile *o,
                                        struct gguf_error *err);

/* Close it. Without a name it goes away, but for a partial one, which stays.
 * Fine on a zeroed or closed one. */
void gg_outfile_abort(struct gg_outfile *o);

#endif
