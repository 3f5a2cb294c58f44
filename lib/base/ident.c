/* ident.c - which file it is, and whose */
#include "config.h"
#include "base/ident.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

size_t gg_folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

char *gg_folder(const struct gguf_allocator *a, const char *path)
{
    size_t n = gg_folder_size(path);
    char *dir = gg_alloc(a, n + 2);
    if (!dir)
        return NULL;
    memcpy(dir, path, n);
    if (n == 0)
        dir[n++] = '.';
    dir[n] = '\0';
    return dir;
}

static bool take(struct gg_ident *id, int rc, const struct stat *s)
{
    if (rc != 0 || !S_ISREG(s->st_mode))
        return false;
    *id = (struct gg_ident){ s->st_dev, s->st_ino };
    return true;
}

bool gg_ident_fd(struct gg_ident *id, int fd)
{
    struct stat s;
    return take(id, fstat(fd, &s), &s);
}

bool gg_ident_is(const struct gg_ident *id, const char *path)
{
    struct stat s;
    struct gg_ident other;
    return take(&other, lstat(path, &s), &s) && other.dev == id->dev &&
           other.ino == id->ino;
}

bool gg_ident_unlink(const struct gg_ident *id, const char *path)
{
    return gg_ident_is(id, path) && unlink(path) == 0;
}

static bool is_own(uid_t uid, uid_t owner)
{
    return uid == owner || uid == geteuid() || uid == 0;
}

bool gg_ident_trusted(int fd, const char *path, uid_t owner)
{
    struct stat f, s;
    if (fstat(fd, &f) != 0)
        return false;
    if (is_own(f.st_uid, owner))
        return true;
    char *dir = gg_folder(NULL, path);
    bool trusted = dir && stat(dir, &s) == 0 && !(s.st_mode & S_ISVTX);
    gg_free(NULL, dir);
    return trusted;
}

enum gguf_status gg_ident_open(const char *path, int *fd,
                               struct gguf_error *err)
{
    struct stat s;
    /* O_NONBLOCK: a pipe must not make us wait. */
    *fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0 && errno == ENOENT)
        return GGUF_OK;
    const char *why = NULL;
    int e = errno;
    if (*fd < 0 && e != ELOOP && e != EISDIR && e != ENXIO)
        return gg_fail_errno(err, e, "cannot be opened");
    if (*fd < 0 || fstat(*fd, &s) != 0 || !S_ISREG(s.st_mode))
        why = "is no regular file";
    else if (s.st_nlink != 1)
        why = "has another name (a hard link)";
    else if (!gg_ident_trusted(*fd, path, geteuid()))
        why = "belongs to another user";
    if (!why)
        return GGUF_OK;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return gg_fail(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                   "%s: it is left alone", why);
}
