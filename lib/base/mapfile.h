/* SPDX-License-Identifier: MIT */
/* mapfile.h - a regular file, mapped for reading
 *
 * Bytes off .. off+size of a file appear at data. The descriptor stays open,
 * for copies by the file system (outfile_int.h) and to tell files apart.
 *
 * Or they come from a function: then data are addresses that are set aside,
 * which cannot be read before gg_mapfile_fetch has brought their bytes.
 */
#ifndef GG_BASE_MAPFILE_H
#define GG_BASE_MAPFILE_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* Copy size bytes, at least one, from byte off of a whole on, which has them.
 */
typedef enum gguf_status gg_mapfile_read_fn(void *user, uint64_t off,
                                            void *dst, size_t size,
                                            struct gguf_error *err);

struct gg_mapfile {
    const uint8_t *data; /* never NULL when open */
    uint64_t size;       /* bytes at data */
    int fd;              /* own duplicate; -1: memory, not a file */
    uint64_t off;        /* of data in the file */
    void *map;           /* as from mmap; NULL if there is nothing to unmap */
    size_t map_size;
    dev_t dev;
    ino_t ino;
    uint64_t file_size;    /* bytes of the whole file, and */
    struct timespec mtime; /* when it was changed last, when it was opened */
    gg_mapfile_read_fn *read;  /* what gives bytes of the whole; NULL: there is
                               * a file or memory */
    void *user;                /* of read */
    void (*close)(void *user); /* called by gg_mapfile_close; or NULL */
    const char *version;       /* the reader's (gguf/reader.h); or NULL */
};

/* Map the file at path; size 0 means up to its end. GGUF_E_IO (open, mmap; a
 * directory), GGUF_E_INVALID (not a regular file, off after the end),
 * GGUF_E_TRUNCATED (size reaches past the end), GGUF_E_LIMIT (more than the
 * address space). */
enum gguf_status gg_mapfile_open(struct gg_mapfile *m, const char *path,
                                 uint64_t off, uint64_t size,
                                 struct gguf_error *err);

/* The same from a descriptor, which stays the caller's. */
enum gguf_status gg_mapfile_open_fd(struct gg_mapfile *m, int fd, uint64_t off,
                                    uint64_t size, struct gguf_error *err);

/* The same over memory, which is kept. */
enum gguf_status gg_mapfile_open_memory(struct gg_mapfile *m, const void *data,
                                        uint64_t data_size, uint64_t off,
                                        uint64_t size, struct gguf_error *err);

/* The same where read, which is kept, gives the bytes of a whole of total. */
enum gguf_status gg_mapfile_open_reader(struct gg_mapfile *m,
                                        gg_mapfile_read_fn *read, void *user,
                                        uint64_t total, uint64_t off,
                                        uint64_t size, struct gguf_error *err);

/* Of one with such a function: have bytes from .. to, which it has, at data.
 * GGUF_E_IO (no memory), and what the function returns. */
enum gguf_status gg_mapfile_fetch(const struct gg_mapfile *m, uint64_t from,
                                  uint64_t to, struct gguf_error *err);

/* Of bytes from .. to, which were fetched, keep no memory but for pages that
 * have others, too. They may be fetched again. */
void gg_mapfile_drop(const struct gg_mapfile *m, uint64_t from, uint64_t to);

/* Show size bytes of data at the beginning of m, which has them, instead of
 * what the file has there. The file stays as it is. Before anything was read
 * from m: data moves. */
enum gguf_status gg_mapfile_overlay(struct gg_mapfile *m, const void *data,
                                    uint64_t size, struct gguf_error *err);

/* Keep a copy of the first size bytes of m, and of the rest of their last
 * page: from now on they do not change, whatever happens to the file. data
 * stays where it is. GGUF_E_IO (no memory). */
enum gguf_status gg_mapfile_copy_head(struct gg_mapfile *m, uint64_t size,
                                      struct gguf_error *err);

/* Fine on a zeroed struct, and twice. */
void gg_mapfile_close(struct gg_mapfile *m);

/* How bytes off .. off+size will be used; a hint. dontneed touches only pages
 * that lie wholly inside. */
enum gg_mapfile_advice {
    GG_ADVISE_SEQUENTIAL,
    GG_ADVISE_WILLNEED,
    GG_ADVISE_DONTNEED
};
void gg_mapfile_advise(const struct gg_mapfile *m, uint64_t off, uint64_t size,
                       enum gg_mapfile_advice advice);

/* Copy bytes off .. off + size, which m has, as the file has them now, without
 * touching the mapping (but of memory). GGUF_E_IO, GGUF_E_TRUNCATED (the file
 * became shorter). */
enum gguf_status gg_mapfile_read(const struct gg_mapfile *m, uint64_t off,
                                 size_t size, void *dst,
                                 struct gguf_error *err);

/* Is the file that fd has open the one that m maps, as it was then? A file
 * that was truncated reads as zeros up to the end of its last page, without
 * any signal: a caller that has read all of it checks this before it uses the
 * result. fd may be m's own. Fine on memory. GGUF_E_MISMATCH, GGUF_E_IO. */
enum gguf_status gg_mapfile_check_unchanged(const struct gg_mapfile *m, int fd,
                                            struct gguf_error *err);

/* Is m a file, and the one that path leads to? */
bool gg_mapfile_is_path(const struct gg_mapfile *m, const char *path);

#endif
