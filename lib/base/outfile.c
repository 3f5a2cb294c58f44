/* SPDX-License-Identifier: MIT */
/* outfile.c - open and publish a file that appears complete or not at all */
#include "config.h"
#include "base/outfile_int.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "base/os/os_path.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *base_of(const char *path)
{
    return path + gg_file_id_folder_size(path);
}

static char *copy_of(const struct gguf_allocator *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *c = gg_mem_alloc(a, n);
    return c ? memcpy(c, s, n) : NULL;
}

/* Format the name of a temporary beside the target: ".NAME.PID-N.tmp". */
static char *temp_name(const struct gg_outfile *o, unsigned n)
{
    const char *base = base_of(o->path);
    size_t dir = (size_t)(base - o->path), size = strlen(o->path) + 48;
    char *t = gg_mem_alloc(o->allocator, size);
    if (t)
        snprintf(t, size, "%.*s.%.200s.%ld-%u.tmp", (int)dir, o->path, base,
                 gg_os_process_id(), n);
    return t;
}

/* Create a file without a name for a folder that does not exist, on the file
 * system where it will be. */
static enum gguf_status open_above(struct gg_outfile *o, char *dir,
                                   struct gguf_error *err)
{
    dir[gg_os_path_trim(dir, strlen(dir))] = 0;
    char *above = gg_file_id_folder(o->allocator, dir);
    if (!above)
        return gg_error_set_nomem(err, strlen(dir));
    if (!(o->flags & GG_OUTFILE_NAMED))
        o->fd = gg_os_open_nameless(above);
    gg_mem_free(o->allocator, above);
    return o->fd >= 0 ? GGUF_OK
                      : gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                     "needs its folder first");
}

static enum gguf_status open_named(struct gg_outfile *o,
                                   struct gguf_error *err)
{
    for (unsigned n = 0; n < 1000; n++) {
        char *t = temp_name(o, n);
        if (!t)
            return gg_error_set_nomem(err, strlen(o->path) + 48);
        int fd = gg_os_open(t, GG_OS_NEW);
        if (fd >= 0) {
            o->fd = fd;
            o->temp = t;
            return GGUF_OK;
        }
        int e = errno;
        gg_mem_free(o->allocator, t);
        if (e != EEXIST)
            return gg_error_set_errno(err, e,
                                      "cannot create a file beside it");
    }
    return gg_error_set_errno(err, EEXIST,
                              "no name for a temporary beside it");
}

/* Create the partial temporary, or with GG_OUTFILE_RESUME open the one of an
 * earlier run. */
static enum gguf_status open_partial(struct gg_outfile *o,
                                     struct gguf_error *err)
{
    size_t n = strlen(o->path), size = n + sizeof GG_OUTFILE_PART;
    struct gg_str_esc esc;
    o->temp = gg_mem_alloc(o->allocator, size);
    if (!o->temp)
        return gg_error_set_nomem(err, size);
    memcpy(o->temp, o->path, n);
    memcpy(o->temp + n, GG_OUTFILE_PART, sizeof GG_OUTFILE_PART);
    if (o->flags & GG_OUTFILE_RESUME)
        GG_TRY(gg_file_id_open(o->temp, &o->fd, err));
    if (o->fd < 0)
        o->fd = gg_os_open(o->temp, GG_OS_NEW);
    if (o->fd >= 0)
        return GGUF_OK;
    if (errno == EEXIST)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "'%s' exists already: it is left alone",
                            gg_str_esc(&esc, gg_str_z(o->temp)));
    return gg_error_set_errno(err, errno, "cannot open a file beside it");
}

/* Copy mode, owner and group of a file, the latter as far as this user may give
 * files away. */
static enum gguf_status take_after(const struct gg_outfile *o,
                                   const struct gg_os_stat *like,
                                   struct gguf_error *err)
{
    struct gg_os_stat s;
    if (gg_os_stat_fd(o->fd, &s) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    if (gg_os_copy_access(o->fd, &s, like) != 0)
        return gg_error_set_errno(err, errno,
                                  "cannot set the mode of the output");
    return GGUF_OK;
}

enum gguf_status gg_outfile_copy_mode(const struct gg_outfile *o, int fd,
                                      struct gguf_error *err)
{
    struct gg_os_stat s;
    if (gg_os_stat_fd(fd, &s) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    return take_after(o, &s, err);
}

enum gguf_status gg_outfile_open(struct gg_outfile *o,
                                 const struct gguf_allocator *a,
                                 const char *path, unsigned flags,
                                 struct gguf_error *err)
{
    *o = (struct gg_outfile){ .allocator = a, .fd = -1, .flags = flags };
    struct gg_os_stat s;
    bool exists = gg_os_stat(path, &s) == 0;
    if (!exists && errno != ENOENT && errno != ENOTDIR)
        return gg_error_set_errno(err, errno, "cannot be looked at");
    if (!exists && !(flags & GG_OUTFILE_FORCE) &&
        gg_os_stat_link(path, &s) == 0)
        return gg_error_set(
            err, GGUF_E_EXIST, GGUF_NO_OFFSET,
            "is a symbolic link to a missing file: not written");
    if (exists && s.kind != GG_OS_FILE)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "is not a regular file: it cannot be an output");
    if (exists && !(flags & GG_OUTFILE_FORCE))
        return gg_error_set_errno(err, EEXIST, "not written");
    if (!*base_of(path))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the output has no name");
    char *dir = gg_file_id_folder(a, path);
    o->path = copy_of(a, path);
    o->buf = gg_mem_alloc(a, GG_OUTFILE_BUF);
    enum gguf_status st = GGUF_OK;
    if (!dir || !o->path || !o->buf) {
        st = gg_error_set_nomem(err, GG_OUTFILE_BUF);
        goto out;
    }
    if (!(flags & (GG_OUTFILE_NAMED | GG_OUTFILE_PARTIAL)))
        o->fd = gg_os_open_nameless(dir);
    if (flags & GG_OUTFILE_PARTIAL)
        st = open_partial(o, err);
    else if (o->fd < 0 && flags & GG_OUTFILE_NEW_FOLDER)
        st = open_above(o, dir, err);
    else if (o->fd < 0)
        st = open_named(o, err);
    if (st == GGUF_OK)
        (void)gg_file_id_fd(&o->id, o->fd);
    if (st == GGUF_OK && exists)
        st = take_after(o, &s, err);
out:
    gg_mem_free(a, dir);
    if (st != GGUF_OK)
        gg_outfile_abort(o);
    return st;
}

/* Sync the folder. The complete file has its name already when this fails. It
 * is then unknown whether the name would survive a crash, and nothing is
 * undone. */
enum gguf_status gg_outfile_sync_folder(const struct gg_outfile *o,
                                        struct gguf_error *err)
{
    if (o->flags & GG_OUTFILE_NO_SYNC)
        return GGUF_OK;
    char *dir = gg_file_id_folder(o->allocator, o->path);
    if (!dir)
        return gg_error_set_nomem(err, strlen(o->path));
    int bad = gg_os_sync_folder(dir), e = errno;
    gg_mem_free(o->allocator, dir);
    return bad ? gg_error_set_errno(err, e,
                                    "is complete, but its name may not be "
                                    "on the disk yet: fsync of the folder")
               : GGUF_OK;
}

/* Link the file itself, or the file at its path, under a temporary name. */
static int link_temp(const struct gg_outfile *o, bool old, const char *to)
{
    return old ? gg_os_link(o->path, to) : gg_os_link_fd(o->fd, to);
}

/* Find a free temporary name and link one of them under it: *temp. */
static enum gguf_status give_temp_name(struct gg_outfile *o, bool old,
                                       char **temp, struct gguf_error *err)
{
    for (unsigned n = 0; n < 1000; n++) {
        char *t = temp_name(o, n);
        if (!t)
            return gg_error_set_nomem(err, strlen(o->path) + 48);
        if (link_temp(o, old, t) == 0) {
            *temp = t;
            return GGUF_OK;
        }
        int e = errno;
        gg_mem_free(o->allocator, t);
        if (e != EEXIST)
            return gg_error_set_errno(err, e, "cannot name the output");
    }
    return gg_error_set_errno(err, EEXIST,
                              "no name for a temporary beside it");
}

/* Give the file that is replaced a second name, so that it can be restored. If
 * the file system has no links, it cannot be. A full or failing disk is an
 * error, so that the old file is not lost. */
static enum gguf_status keep_old_one(struct gg_outfile *o,
                                     struct gguf_error *err)
{
    struct gg_os_stat s;
    struct gguf_error why;
    if (gg_os_stat_link(o->path, &s) != 0)
        return errno == ENOENT
                   ? GGUF_OK
                   : gg_error_set_errno(err, errno, "cannot be looked at");
    gguf_error_clear(&why);
    enum gguf_status st = give_temp_name(o, true, &o->old, &why);
    o->lost = why.sys_errno == EPERM || why.sys_errno == EACCES ||
              why.sys_errno == EMLINK || why.sys_errno == ENOSYS ||
              why.sys_errno == EOPNOTSUPP;
    if (st == GGUF_OK || o->lost)
        return GGUF_OK;
    return gg_error_set_errno(
        err, why.sys_errno,
        "the file that it replaces cannot be kept meanwhile");
}

/* Replace the file of that name, by renaming: linking does not replace. */
static enum gguf_status replace_target(struct gg_outfile *o, bool keep_old,
                                       struct gguf_error *err)
{
    if (!o->temp)
        GG_TRY(give_temp_name(o, false, &o->temp, err));
    if (keep_old)
        GG_TRY(keep_old_one(o, err));
    if (gg_os_rename(o->temp, o->path) != 0)
        return gg_error_set_errno(err, errno, "cannot rename the output");
    gg_mem_free(o->allocator, o->temp);
    o->temp = NULL;
    return GGUF_OK;
}

static enum gguf_status give_name(struct gg_outfile *o, struct gguf_error *err)
{
    if (!o->temp) {
        if (gg_os_link_fd(o->fd, o->path) != 0)
            return gg_error_set_errno(err, errno, "cannot name the output");
        return GGUF_OK;
    }
    if (gg_os_rename_new(o->temp, o->path) == 0) {
        gg_mem_free(o->allocator, o->temp);
        o->temp = NULL;
        return GGUF_OK;
    }
    if (errno == EEXIST)
        return gg_error_set_errno(err, errno, "cannot name the output");
    /* Link the new name, if it is free, then remove the old one. */
    if (gg_os_link(o->temp, o->path) != 0)
        return gg_error_set_errno(err, errno, "cannot name the output");
    (void)gg_file_id_unlink(&o->id, o->temp);
    gg_mem_free(o->allocator, o->temp);
    o->temp = NULL;
    return GGUF_OK;
}

enum gguf_status gg_outfile_publish(struct gg_outfile *o, bool keep_old,
                                    struct gguf_error *err)
{
    enum gguf_status st = o->flags & GG_OUTFILE_FORCE
                              ? replace_target(o, keep_old, err)
                              : give_name(o, err);
    o->named = st == GGUF_OK;
    return st;
}

/* Give a partial file its temporary name back, unless that is taken. The file
 * that was replaced is never without a name, so for a moment it has two. */
static bool take_temp_name(struct gg_outfile *o)
{
    size_t n = strlen(o->path), size = n + sizeof GG_OUTFILE_PART;
    struct gg_os_stat s;
    o->temp = gg_mem_alloc(o->allocator, size);
    if (!o->temp)
        return false;
    memcpy(o->temp, o->path, n);
    memcpy(o->temp + n, GG_OUTFILE_PART, sizeof GG_OUTFILE_PART);
    if (o->old)
        return gg_os_link(o->path, o->temp) == 0;
    return gg_os_stat_link(o->temp, &s) != 0 &&
           gg_os_rename(o->path, o->temp) == 0;
}

void gg_outfile_unpublish(struct gg_outfile *o)
{
    bool partial = o->flags & GG_OUTFILE_PARTIAL;
    if (!o->named || o->lost || !gg_file_id_is(&o->id, o->path) ||
        (partial && !take_temp_name(o)))
        return;
    o->named = false;
    if (o->old && gg_os_rename(o->old, o->path) == 0) {
        gg_mem_free(o->allocator, o->old);
        o->old = NULL;
    } else if (!o->old && !partial) {
        (void)gg_os_remove(o->path);
    }
}

enum gguf_status gg_outfile_publish_all(gg_outfile_at_fn *at, void *user,
                                        size_t n, bool keep_old, size_t *bad,
                                        struct gguf_error *err)
{
    for (size_t i = 0; i < n; i++) {
        enum gguf_status st = gg_outfile_publish(at(user, i), keep_old, err);
        if (st == GGUF_OK)
            continue;
        *bad = i;
        while (i--)
            gg_outfile_unpublish(at(user, i));
        return st;
    }
    return GGUF_OK;
}

enum gguf_status gg_outfile_finish(struct gg_outfile *o,
                                   struct gguf_error *err)
{
    GG_TRY(gg_outfile_flush(o, err));
    if (gg_os_set_size(o->fd, o->pos) != 0)
        return gg_error_set_errno(err, errno,
                                  "cannot set the size to %" PRIu64, o->pos);
    if (!(o->flags & GG_OUTFILE_NO_SYNC) && gg_os_sync(o->fd) != 0)
        return gg_error_set_errno(err, errno, "fsync");
    gg_mem_free(o->allocator, o->buf);
    o->buf = NULL;
    return GGUF_OK;
}

enum gguf_status gg_outfile_park(struct gg_outfile *o, struct gguf_error *err)
{
    if (!o->temp)
        GG_TRY(give_temp_name(o, false, &o->temp, err));
    gg_os_close(o->fd);
    o->fd = -1;
    return GGUF_OK;
}

enum gguf_status gg_outfile_commit(struct gg_outfile *o,
                                   struct gguf_error *err)
{
    enum gguf_status st = gg_outfile_finish(o, err);
    if (st == GGUF_OK)
        st = gg_outfile_publish(o, false, err);
    if (st == GGUF_OK)
        st = gg_outfile_sync_folder(o, err);
    gg_outfile_abort(o);
    return st;
}

void gg_outfile_abort(struct gg_outfile *o)
{
    if (!o->path && !o->buf)
        return; /* not opened, or closed */
    if (o->temp && !(o->flags & GG_OUTFILE_PARTIAL))
        (void)gg_file_id_unlink(&o->id, o->temp);
    if (o->old)
        (void)gg_os_remove(o->old);
    if (o->fd >= 0)
        gg_os_close(o->fd);
    gg_mem_free(o->allocator, o->temp);
    gg_mem_free(o->allocator, o->old);
    gg_mem_free(o->allocator, o->path);
    gg_mem_free(o->allocator, o->buf);
    *o = (struct gg_outfile){ .fd = -1 };
}
