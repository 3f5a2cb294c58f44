/* SPDX-License-Identifier: MIT */
/* file_id.c - identity and owner of files */
#include "config.h"
#include "base/file_id.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "base/os/os_path.h"

#include <errno.h>
#include <string.h>

size_t gg_file_id_folder_size(const char *path)
{
    return gg_os_path_folder_size(path, strlen(path));
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

static bool take_ident(struct gg_file_id *id, int rc,
                       const struct gg_os_stat *s)
{
    if (rc != 0 || s->kind != GG_OS_FILE)
        return false;
    *id = (struct gg_file_id){ s->dev, s->ino };
    return true;
}

bool gg_file_id_fd(struct gg_file_id *id, int fd)
{
    struct gg_os_stat s;
    return take_ident(id, gg_os_stat_fd(fd, &s), &s);
}

bool gg_file_id_is(const struct gg_file_id *id, const char *path)
{
    struct gg_os_stat s;
    struct gg_file_id other;
    int rc = gg_os_stat_link(path, &s);
    if (take_ident(&other, rc, &s) && other.dev == id->dev &&
        other.ino == id->ino)
        return true;
    if (rc == 0)
        errno = ENOENT;
    return false;
}

bool gg_file_id_unlink(const struct gg_file_id *id, const char *path)
{
    return gg_file_id_is(id, path) && gg_os_remove(path) == 0;
}

static bool is_own(uint64_t user, uint64_t owner)
{
    return user == owner || user == gg_os_user() || user == 0;
}

enum gguf_status gg_file_id_trusted(int fd, const char *path, uint64_t owner,
                                    bool *trusted, struct gguf_error *err)
{
    struct gg_os_stat s;
    *trusted = false;
    if (gg_os_stat_fd(fd, &s) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    if (is_own(s.owner, owner)) {
        *trusted = true;
        return GGUF_OK;
    }
    char *dir = gg_file_id_folder(NULL, path);
    if (!dir)
        return gg_error_set_nomem(err, strlen(path));
    int rc = gg_os_stat(dir, &s), e = errno;
    gg_mem_free(NULL, dir);
    if (rc != 0)
        return gg_error_set_errno(err, e, "the folder cannot be looked at");
    *trusted = !s.sticky;
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
    struct gg_os_stat s;
    bool trusted;
    if (gg_os_stat_fd(fd, &s) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    if (s.kind != GG_OS_FILE)
        return refuse_file("is not a regular file", err);
    if (s.n_links != 1)
        return refuse_file("has a second name (a hard link)", err);
    GG_TRY(gg_file_id_trusted(fd, path, gg_os_user(), &trusted, err));
    return trusted ? GGUF_OK : refuse_file("belongs to another user", err);
}

enum gguf_status gg_file_id_open(const char *path, int *fd,
                                 struct gguf_error *err)
{
    *fd = gg_os_open(path, GG_OS_UPDATE);
    int e = errno;
    if (*fd < 0 && e == ENOENT)
        return GGUF_OK;
    if (*fd < 0 && (e == ELOOP || e == EISDIR || e == ENXIO))
        return refuse_file("is not a regular file", err);
    if (*fd < 0)
        return gg_error_set_errno(err, e, "cannot be opened");
    enum gguf_status st = check_left(path, *fd, err);
    if (st != GGUF_OK) {
        gg_os_close(*fd);
        *fd = -1;
    }
    return st;
}
