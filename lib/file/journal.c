/* journal.c - a header that is being written in place, saved beside its file
 */
#include "config.h"
#include "file/journal.h"
#include "base/bytes.h"
#include "base/ident.h"
#include "base/mem.h"
#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#if HAVE_FLOCK
# include <sys/file.h>
#endif

enum { HEAD = 8 + 4 + 4 + 8 + 8 + 8 + 8 + 8, BEHIND = 1 << 16 };

/* Beside the file itself, whatever symbolic link led to it. */
static char *journal_path(const struct gguf_allocator *a, const char *path)
{
    struct stat s;
    char *real = NULL;
    if (lstat(path, &s) == 0 && S_ISLNK(s.st_mode))
        real = realpath(path, NULL);
    path = real ? real : path;
    size_t size = strlen(path) + sizeof GG_JOURNAL;
    char *p = gg_alloc(a, size);
    if (p)
        snprintf(p, size, "%s" GG_JOURNAL, path);
    free(real);
    return p;
}

static void put_head(uint8_t *b, const struct gg_mapfile *m,
                     const void *header, uint64_t size)
{
    memcpy(b, "GGUFEDIT", 8);
    gg_store32le(b + 8, 1);
    gg_store32le(b + 12, 0);
    gg_store64le(b + 16, (uint64_t)m->ino);
    gg_store64le(b + 24, m->size);
    uint64_t behind = GG_MIN(m->size - size, (uint64_t)BEHIND);
    gg_store64le(b + 32, XXH3_64bits(m->data + size, (size_t)behind));
    gg_store64le(b + 40, size);
    gg_store64le(b + 48, XXH3_64bits(header, (size_t)size));
}

/* Does the journal come from who may write the file? (ident.h) */
static enum gguf_status is_trusted(const char *name, int journal, int file,
                                   bool *yes, struct gguf_error *err)
{
    struct stat f;
    if (fstat(file, &f) != 0)
        return gg_fail_errno(err, errno, "fstat");
    return gg_ident_trusted(journal, name, f.st_uid, yes, err);
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
        return gg_fail_nomem(err, strlen(path));
    bool good = false;
    if (gg_mapfile_open(&j->map, name, 0, 0, NULL) != GGUF_OK) {
        gg_free(a, name);
        return GGUF_OK; /* none, or none that can be read */
    }
    enum gguf_status st = is_trusted(name, j->map.fd, m->fd, &good, err);
    gg_free(a, name);
    if (st != GGUF_OK) {
        gg_journal_close(j);
        return st;
    }
    if (good && j->map.size >= HEAD && j->map.size - HEAD <= m->size) {
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

enum gguf_status gg_journal_save(const struct gguf_allocator *a,
                                 const char *path, const struct gg_mapfile *m,
                                 const void *header, uint64_t size,
                                 struct gguf_error *err)
{
    struct gg_outfile o;
    uint8_t head[HEAD];
    char *name = journal_path(a, path);
    if (!name)
        return gg_fail_nomem(err, strlen(path));
    put_head(head, m, header, size);
    enum gguf_status st =
        gg_outfile_open(&o, a, name, GG_OUTFILE_FORCE, err);
    if (st == GGUF_OK)
        st = gg_outfile_write(&o, head, HEAD, err);
    if (st == GGUF_OK)
        st = gg_outfile_write(&o, header, size, err);
    if (st == GGUF_OK)
        st = gg_outfile_commit(&o, err);
    gg_outfile_abort(&o);
    gg_free(a, name);
    return st;
}

enum gguf_status gg_journal_remove(const struct gguf_allocator *a,
                                   const char *path, struct gguf_error *err)
{
    char *name = journal_path(a, path);
    if (!name)
        return gg_fail_nomem(err, strlen(path));
    enum gguf_status st = GGUF_OK;
    if (unlink(name) != 0 && errno != ENOENT)
        st = gg_fail_errno(err, errno, "cannot remove the edit journal");
    gg_free(a, name);
    return st;
}

static enum gguf_status write_all(int fd, const uint8_t *p, uint64_t size,
                                  struct gguf_error *err)
{
    for (uint64_t off = 0; off < size;) {
        ssize_t n = pwrite(fd, p + off, (size_t)(size - off), (off_t)off);
        if (n < 0 && errno != EINTR)
            return gg_fail_errno(err, errno, "writing the header at byte %"
                                 PRIu64, off);
        off += n > 0 ? (uint64_t)n : 0;
    }
    return GGUF_OK;
}

enum gguf_status gg_header_lock(const char *path, const struct gg_mapfile *m,
                                int *fd, struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    *fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return gg_fail_errno(err, errno, "cannot be opened for writing");
#if HAVE_FLOCK
    /* Other failures: a file system without locks. */
    if (flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        st = gg_fail_errno(err, errno, "is being edited by another program");
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

enum gguf_status gg_header_overwrite(int fd, const void *header, uint64_t size,
                                     struct gguf_error *err)
{
    GG_TRY(write_all(fd, header, size, err));
    return fsync(fd) == 0 ? GGUF_OK : gg_fail_errno(err, errno, "fsync");
}
