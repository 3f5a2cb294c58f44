/* SPDX-License-Identifier: MIT */
/* file_id.c - identity and owner of files */
#include "config.h"
#include "base/file_id.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

size_t gg_file_id_folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

char *gg_file_id_folder(const struct gguf_allocator *a, const char *path)
{
    size_t n = gg_file_id_folder_size(path);
    char *dir = gg_mem_alloc(a, n + 2);
    if (!dir)
        return NULL;
    memcpy(dir, path, n);
    if (n == 0)
        dir[n++] = '.';
    dir[n] = '\0';
    return dir;
}

static bool take_ident(struct gg_file_id *id, int rc, const struct stat *s)
{
    if (rc != 0 || !S_ISREG(s->st_mode))
        return false;
    *id = (struct gg_file_id){ s->st_dev, s->st_ino };
    return true;
}

bool gg_file_id_fd(struct gg_file_id *id, int fd)
{
    struct stat s;
    return take_ident(id, fstat(fd, &s), &s);
}

bool gg_file_id_is(const struct gg_file_id *id, const char *path)
{
    struct stat s;
    struct gg_file_id other;
    int rc = lstat(path, &s);
    if (take_ident(&other, rc, &s) && other.dev == id->dev &&
        other.ino == id->ino)
        return true;
    if (rc == 0)
        errno = ENOENT;
    return false;
}

bool gg_file_id_unlink(const struct gg_file_id *id, const char *path)
{
    return gg_file_id_is(id, path) && unlink(path) == 0;
}

static bool is_own(uid_t uid, uid_t owner)
{
    return uid == owner || uid == geteuid() || uid == 0;
}

enum gguf_status gg_file_id_trusted(int fd, const char *path, uid_t owner,
                                    bool *trusted, struct gguf_error *err)
{
    struct stat s;
    *trusted = false;
    if (fstat(fd, &s) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    if (is_own(s.st_uid, owner)) {
        *trusted = true;
        return GGUF_OK;
    }
    char *dir = gg_file_id_folder(NULL, path);
    if (!dir)
        return gg_error_set_nomem(err, strlen(path));
    int rc = stat(dir, &s), e = errno;
    gg_mem_free(NULL, dir);
    if (rc != 0)
        return gg_error_set_errno(err, e, "the folder cannot be looked at");
    *trusted = !(s.st_mode & S_ISVTX);
    return GGUF_OK;
}

static enum gguf_status refuse_file(const char *why, struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "%s: it is left alone", why);
}

/* Check that the file fd, found as path, was left by an earlier run. */
static enum gguf_status check_left(const char *path, int fd,
                                   struct gguf_error *err)
{
    struct stat s;
    bool trusted;
    if (fstat(fd, &s) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    if (!S_ISREG(s.st_mode))
        return refuse_file("is not a regular file", err);
    if (s.st_nlink != 1)
        return refuse_file("has a second name (a hard link)", err);
    GG_TRY(gg_file_id_trusted(fd, path, geteuid(), &trusted, err));
    return trusted ? GGUF_OK : refuse_file("belongs to another user", err);
}

enum gguf_status gg_file_id_open(const char *path, int *fd,
                                 struct gguf_error *err)
{
    /* O_NONBLOCK: opening a pipe must not block. */
    *fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    int e = errno;
    if (*fd < 0 && e == ENOENT)
        return GGUF_OK;
    if (*fd < 0 && (e == ELOOP || e == EISDIR || e == ENXIO))
        return refuse_file("is not a regular file", err);
    if (*fd < 0)
        return gg_error_set_errno(err, e, "cannot be opened");
    enum gguf_status st = check_left(path, *fd, err);
    if (st != GGUF_OK) {
        close(*fd);
        *fd = -1;
    }
    return st;
}
