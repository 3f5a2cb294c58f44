/* SPDX-License-Identifier: MIT */
/* mapfile.h - a regular file that is mapped for reading
 *
 * A part of the file appears at data. The descriptor stays open, for copies by
 * the file system (outfile_int.h) and to identify the file.
 *
 * The bytes may also come from a function. data is then a reserved range of
 * addresses, which can be read after gg_mapfile_fetch() has fetched the bytes.
 */
#ifndef GG_BASE_MAPFILE_H
#define GG_BASE_MAPFILE_H

#include "base/error.h"

#include <stdbool.h>
#include <time.h>

/* Copy size bytes, at least one, from byte off of the file to dst. The file has
 * these bytes. */
typedef enum gguf_status gg_mapfile_read_fn(void *user, uint64_t off,
                                            void *dst, size_t size,
                                            struct gguf_error *err);

struct gg_mapfile {
    const uint8_t *data;       /* first byte; not NULL while it is open */
    uint64_t size;             /* bytes at data */
    int fd;                    /* own descriptor; -1: memory or a function */
    uint64_t off;              /* byte of the file that is at data */
    void *map;                 /* result of mmap(); NULL: nothing to unmap */
    size_t map_size;           /* bytes at map */
    uint64_t dev;              /* device of the file */
    uint64_t ino;              /* inode of the file */
    uint64_t file_size;        /* bytes of the whole file when it was opened */
    struct timespec mtime;     /* its modification time when it was opened */
    gg_mapfile_read_fn *read;  /* reads the bytes; NULL: a file or memory */
    void *user;                /* first argument of read and close */
    void (*close)(void *user); /* called by gg_mapfile_close(); may be NULL */
    const char *version;       /* version of the reader (gguf/reader.h), or
                                * NULL */
};

/* Map a part of the file at path.
 *
 * off    First byte.
 * size   Number of bytes; 0: up to the end of the file.
 *
 * Close m with gg_mapfile_close(), but not after a failure.
 *
 * GGUF_E_IO: the file cannot be opened or mapped, or is a folder.
 * GGUF_E_INVALID: not a regular file, or off is after its end.
 * GGUF_E_TRUNCATED: size reaches past the end. GGUF_E_LIMIT: larger than the
 * address space. */
enum gguf_status gg_mapfile_open(struct gg_mapfile *m, const char *path,
                                 uint64_t off, uint64_t size,
                                 struct gguf_error *err);

/* Map a part of the file that fd has open. fd stays the caller's. Fails like
 * gg_mapfile_open(). */
enum gguf_status gg_mapfile_open_fd(struct gg_mapfile *m, int fd, uint64_t off,
                                    uint64_t size, struct gguf_error *err);

/* Open a part of memory, which must outlive m. Fails like gg_mapfile_open(). */
enum gguf_status gg_mapfile_open_memory(struct gg_mapfile *m, const void *data,
                                        uint64_t data_size, uint64_t off,
                                        uint64_t size, struct gguf_error *err);

/* Open a part of a file of total bytes that a function reads. Fails like
 * gg_mapfile_open(). */
enum gguf_status gg_mapfile_open_reader(struct gg_mapfile *m,
                                        gg_mapfile_read_fn *read, void *user,
                                        uint64_t total, uint64_t off,
                                        uint64_t size, struct gguf_error *err);

/* Fetch bytes [from, to) of a file with a function to their place at data.
 * GGUF_E_IO: out of memory. Other statuses are those of the function. */
enum gguf_status gg_mapfile_fetch(const struct gg_mapfile *m, uint64_t from,
                                  uint64_t to, struct gguf_error *err);

/* Release the memory of fetched bytes [from, to), except for pages that hold
 * other bytes, too. They can be fetched again. */
void gg_mapfile_drop(const struct gg_mapfile *m, uint64_t from, uint64_t to);

/* Replace the first size bytes of the mapping by those at data. The file does
 * not change. m->data moves: call it before anything refers to it. */
enum gguf_status gg_mapfile_overlay(struct gg_mapfile *m, const void *data,
                                    uint64_t size, struct gguf_error *err);

/* Copy the first size bytes, up to the end of their last page, into memory, so
 * that they do not change when the file does. m->data does not move. GGUF_E_IO:
 * out of memory. */
enum gguf_status gg_mapfile_copy_head(struct gg_mapfile *m, uint64_t size,
                                      struct gguf_error *err);

/* Close m. A zeroed struct and a closed one are allowed. */
void gg_mapfile_close(struct gg_mapfile *m);

/* Use of bytes in the near future. */
enum gg_mapfile_advice {
    GG_ADVISE_SEQUENTIAL, /* read from front to back */
    GG_ADVISE_WILLNEED,   /* needed soon */
    GG_ADVISE_DONTNEED    /* not needed: release pages that lie inside */
};
/* Tell the system how size bytes from off will be used. A hint: never fails. */
void gg_mapfile_advise(const struct gg_mapfile *m, uint64_t off, uint64_t size,
                       enum gg_mapfile_advice advice);

/* Read size bytes from off of m to dst, from the file, not from the mapping.
 * GGUF_E_TRUNCATED: the file has become shorter. GGUF_E_IO. */
enum gguf_status gg_mapfile_read(const struct gg_mapfile *m, uint64_t off,
                                 size_t size, void *dst,
                                 struct gguf_error *err);

/* Check that the file open as fd is the one that m maps, and unchanged.
 *
 * A file that was truncated reads as zeros up to the end of its last page,
 * without a signal. So check this after reading, before the result is used. fd
 * may be m->fd. Memory never changes.
 *
 * GGUF_E_MISMATCH: another file, or changed. GGUF_E_IO. */
enum gguf_status gg_mapfile_check_unchanged(const struct gg_mapfile *m, int fd,
                                            struct gguf_error *err);

/* Does path lead to the file that m maps? */
bool gg_mapfile_is_path(const struct gg_mapfile *m, const char *path);

#endif
