/* SPDX-License-Identifier: MIT */
/* journal.c - a header that is being written in place, saved beside its file
 */
#include "config.h"
#include "file/journal.h"
#include "base/bytes.h"
#include "base/file_id.h"
#include "base/mem.h"
#include "base/outfile_int.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>
#if HAVE_FLOCK
#include <sys/file.h>
#endif

static const char MAGIC[] = "GGUFEDIT";
enum { HEAD = 8 + 4 + 4 + 8 + 8 + 8 + 8 + 8, AFTER = 1 << 16 };

/* Beside the file itself, whatever symbolic link led to it. */
static char *journal_path(const struct gguf_allocator *a, const char *path)
{
    struct stat s;
    char *real = NULL;
    if (lstat(path, &s) == 0 && S_ISLNK(s.st_mode))
        real = realpath(path, NULL);
    path = real ? real : path;
    size_t size = strlen(path) + sizeof GG_JOURNAL;
    char *p = gg_mem_alloc(a, size);
    if (p)
        snprintf(p, size, "%s" GG_JOURNAL, path);
    free(real);
    return p;
}

static void put_head(uint8_t *b, const struct gg_mapfile *m,
                     const void *header, uint64_t size)
{
    memcpy(b, MAGIC, sizeof MAGIC - 1);
    gg_bytes_store32le(b + 8, 1);
    gg_bytes_store32le(b + 12, 0);
    gg_bytes_store64le(b + 16, (uint64_t)m->ino);
    gg_bytes_store64le(b + 24, m->size);
    uint64_t after = GG_MIN(m->size - size, (uint64_t)AFTER);
    gg_bytes_store64le(b + 32, XXH3_64bits(m->data + size, (size_t)after));
    gg_bytes_store64le(b + 40, size);
    gg_bytes_store64le(b + 48, XXH3_64bits(header, (size_t)size));
}

/* Is there no journal, if name could not be opened for this reason? A file
 * that cannot be read, and that belongs to a user who may write the file, may
 * be one. */
static bool is_none(const char *name, const struct stat *file,
                    const struct gguf_error *why)
{
    struct stat s;
    switch (why->sys_errno) {
    case 0: /* no regular file */
    case EISDIR:
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG: return true;
    case EACCES:
        return lstat(name, &s) == 0 && s.st_uid != file->st_uid &&
               s.st_uid != geteuid() && s.st_uid != 0;
    default: /* such as too many open files */
        return lstat(name, &s) != 0 && (errno == ENOENT || errno == ENOTDIR);
    }
}

static enum gguf_status open_journal(struct gg_journal *j, const char *name,
                                     const struct gg_mapfile *m,
                                     struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_str_esc e;
    struct stat file;
    gguf_error_clear(&why);
    if (fstat(m->fd, &file) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    if (gg_mapfile_open(&j->map, name, 0, 0, &why) == GGUF_OK) {
        bool good = false; /* it comes from a user who may write the file */
        enum gguf_status st =
            gg_file_id_trusted(j->map.fd, name, file.st_uid, &good, err);
        if (!good)
            gg_journal_close(j);
        return st;
    }
    if (is_none(name, &file, &why))
        return GGUF_OK;
    return gg_error_set_errno(
        err, why.sys_errno,
        "an edit may have been interrupted, and its journal "
        "'%s' cannot be read",
        gg_str_esc(&e, gg_str_z(name + gg_file_id_folder_size(name))));
}

enum gguf_status gg_journal_find(struct gg_journal *j,
                                 const struct gguf_allocator *a,
                                 const char *path, const struct gg_mapfile *m,
                                 struct gguf_error *err)
{
    uint8_t head[HEAD];
    *j = (struct gg_journal){ .map.fd = -1 };
    char *name = journal_path(a, path);
    if (!name)
        return gg_error_set_nomem(err, strlen(path));
    enum gguf_status st = open_journal(j, name, m, err);
    gg_mem_free(a, name);
    if (st != GGUF_OK || j->map.fd < 0)
        return st;
    if (j->map.size >= HEAD && j->map.size - HEAD <= m->size) {
        j->size = j->map.size - HEAD;
        put_head(head, m, j->map.data + HEAD, j->size);
        if (!memcmp(head, j->map.data, HEAD)) {
            j->header = j->map.data + HEAD;
            return GGUF_OK;
        }
    }
    gg_journal_close(j);
    return GGUF_OK;
}

void gg_journal_close(struct gg_journal *j)
{
    gg_mapfile_close(&j->map);
}

/* A file that has a journal's name and is not a journal is left alone. */
static enum gguf_status check_stranger(const char *name,
                                       struct gguf_error *err)
{
    struct gg_mapfile m;
    struct gguf_error why;
    struct gg_str_esc e;
    gguf_error_clear(&why);
    enum gguf_status st = gg_mapfile_open(&m, name, 0, 0, &why);
    if (st != GGUF_OK && why.sys_errno == ENOENT)
        return GGUF_OK;
    if (st != GGUF_OK && why.sys_errno != 0)
        return gg_error_set_errno(
            err, why.sys_errno, "what lies at '%s' cannot be read",
            gg_str_esc(&e, gg_str_z(name + gg_file_id_folder_size(name))));
    bool ours = st == GGUF_OK && m.size >= sizeof MAGIC - 1 &&
                !memcmp(m.data, MAGIC, sizeof MAGIC - 1);
    if (st == GGUF_OK)
        gg_mapfile_close(&m);
    if (ours)
        return GGUF_OK;
    return gg_error_set(
        err, GGUF_E_EXIST, GGUF_NO_OFFSET,
        "'%s' exists and is not the journal of an edit: it is left "
        "alone",
        gg_str_esc(&e, gg_str_z(name + gg_file_id_folder_size(name))));
}

/* The journal o under its name, and on the disk; or not at all. */
static enum gguf_status publish(struct gg_outfile *o, struct gguf_error *err)
{
    GG_TRY(gg_outfile_finish(o, err));
    GG_TRY(gg_outfile_name(o, true, err));
    struct gguf_error why;
    gguf_error_clear(&why);
    enum gguf_status st = gg_outfile_sync_folder(o, &why);
    if (st == GGUF_OK)
        return st;
    gg_outfile_unname(o);
    if (st == GGUF_E_NOMEM)
        return gg_error_set(err, st, GGUF_NO_OFFSET, "%s", why.message);
    return gg_error_set_errno(
        err, why.sys_errno,
        "nothing was changed, since the edit's journal does "
        "not get to the disk: fsync of the folder");
}

enum gguf_status gg_journal_save(const struct gguf_allocator *a,
                                 const char *path, const struct gg_mapfile *m,
                                 const void *header, uint64_t size,
                                 struct gguf_error *err)
{
    struct gg_outfile o = { .fd = -1 };
    uint8_t head[HEAD];
    char *name = journal_path(a, path);
    if (!name)
        return gg_error_set_nomem(err, strlen(path));
    put_head(head, m, header, size);
    enum gguf_status st = check_stranger(name, err);
    if (st == GGUF_OK)
        st = gg_outfile_open(&o, a, name, GG_OUTFILE_FORCE, err);
    if (st == GGUF_OK)
        st = gg_outfile_like(&o, m->fd, err);
    if (st == GGUF_OK)
        st = gg_outfile_write(&o, head, HEAD, err);
    if (st == GGUF_OK)
        st = gg_outfile_write(&o, header, size, err);
    if (st == GGUF_OK)
        st = publish(&o, err);
    gg_outfile_abort(&o);
    gg_mem_free(a, name);
    return st;
}

enum gguf_status gg_journal_remove(const struct gguf_allocator *a,
                                   const char *path, struct gguf_error *err)
{
    char *name = journal_path(a, path);
    if (!name)
        return gg_error_set_nomem(err, strlen(path));
    enum gguf_status st = GGUF_OK;
    if (unlink(name) != 0 && errno != ENOENT)
        st = gg_error_set_errno(err, errno,
                                "the edit is complete, but its journal "
                                "cannot be removed");
    gg_mem_free(a, name);
    return st;
}

static enum gguf_status write_all(int fd, const uint8_t *p, uint64_t size,
                                  bool *begun, struct gguf_error *err)
{
    for (uint64_t off = 0; off < size;) {
        ssize_t n = pwrite(fd, p + off, (size_t)(size - off), (off_t)off);
        if (n < 0 && errno != EINTR)
            return gg_error_set_errno(
                err, errno, "writing the header at byte %" PRIu64, off);
        off += n > 0 ? (uint64_t)n : 0;
        *begun |= n > 0;
    }
    return GGUF_OK;
}

enum gguf_status gg_header_lock(const char *path, const struct gg_mapfile *m,
                                int *fd, struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    *fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return gg_error_set_errno(err, errno, "cannot be opened for writing");
#if HAVE_FLOCK
    /* Other failures: a file system without locks. */
    if (flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        st = gg_error_set_errno(err, errno,
                                "is being edited by another program");
#endif
    if (st == GGUF_OK)
        st = gg_mapfile_check(m, *fd, err);
    if (st != GGUF_OK) {
        close(*fd);
        *fd = -1;
    }
    return st;
}

void gg_header_unlock(int fd)
{
    if (fd < 0)
        return;
#if HAVE_FLOCK
    flock(fd, LOCK_UN); /* a child that was forked may hold it, too */
#endif
    close(fd);
}

/* Set the file's time to another one than old, even where clocks tick slowly:
 * readers see by it that the file was written to. */
static void change_time(int fd, const struct timespec *old)
{
    struct stat s;
    for (int i = 0; i < 50; i++) {
        if (fstat(fd, &s) != 0 || s.st_mtim.tv_sec != old->tv_sec ||
            s.st_mtim.tv_nsec != old->tv_nsec)
            return;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        (void)futimens(fd, NULL);
    }
}

/* What is left of an edit that failed after the header was begun. */
static enum gguf_status left_over(enum gguf_status st, struct gguf_error *err)
{
    if (err) {
        char old[sizeof err->message];
        memcpy(old, err->message, sizeof old);
        snprintf(err->message, sizeof err->message,
                 "%.110s; the header may be half written, all of it is in the "
                 "edit journal, from which --recover finishes it",
                 old);
    }
    return st;
}

enum gguf_status gg_header_overwrite(int fd, const struct gg_mapfile *m,
                                     const void *header, uint64_t size,
                                     bool *begun, struct gguf_error *err)
{
    *begun = false;
    enum gguf_status st = write_all(fd, header, size, begun, err);
    if (st != GGUF_OK)
        return *begun ? left_over(st, err) : st;
    change_time(fd, &m->mtime);
    if (fsync(fd) != 0)
        return left_over(gg_error_set_errno(err, errno, "fsync"), err);
    return GGUF_OK;
}
