/* SPDX-License-Identifier: MIT */
/* journal_part.c - temporaries that a journal lists, and their names */
#include "config.h"
#include "base/bytes.h"
#include "base/journal.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "base/outfile_int.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char *make_part_path(const struct gg_journal *j, const char *path)
{
    size_t size = strlen(path) + sizeof GG_OUTFILE_PART;
    char *part = gg_mem_alloc(j->allocator, size);
    if (part)
        snprintf(part, size, "%s%s", path, GG_OUTFILE_PART);
    return part;
}

static enum gguf_status append_inode(struct gg_journal *j, uint32_t type,
                                     size_t no, uint64_t inode,
                                     struct gguf_error *err)
{
    uint8_t b[GG_JOURNAL_MAX_RECORD] = { 0 };
    gg_bytes_store64le(b + 8, inode);
    return gg_journal_append(j, b, type, (uint32_t)no, err);
}

/* Check that the file fd, found as part, is the temporary of file no: the
 * journal has its inode, or an earlier run was killed right after creating it.
 * In that case the journal existed before and the file is empty. */
static enum gguf_status check_part(const struct gg_journal *j, size_t no,
                                   const char *part, int fd,
                                   struct gguf_error *err)
{
    const struct gg_journal_file *f = &j->files[no];
    struct gg_str_esc esc;
    struct gg_os_stat s;
    if (gg_os_stat_fd(fd, &s) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    if (f->part == s.ino)
        return GGUF_OK;
    if (!j->found || f->part || s.size || s.owner != gg_os_user())
        return gg_error_set(
            err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
            "'%s' is not a file of a run in the journal: it is left "
            "unchanged",
            gg_str_esc(&esc, gg_str_z(part)));
    return GGUF_OK;
}

/* Create a temporary, open as *fd. It is removed again if its inode cannot be
 * read. */
static enum gguf_status make_part(const char *part, int *fd,
                                  struct gg_file_id *id,
                                  struct gguf_error *err)
{
    *fd = gg_os_open(part, GG_OS_NEW);
    if (*fd < 0)
        return gg_error_set_errno(err, errno, "cannot open a file beside it");
    if (gg_file_id_fd(id, *fd))
        return GGUF_OK;
    const int reason = errno;
    (void)gg_os_remove(part);
    return gg_error_set_errno(err, reason, "a new file cannot be looked at");
}

enum gguf_status gg_journal_open_part(struct gg_journal *j, size_t no,
                                      const char *path, bool *made,
                                      struct gguf_error *err)
{
    struct gg_journal_file *f = &j->files[no];
    struct gguf_error why;
    struct gg_str_esc esc;
    int fd = -1;
    char *part = make_part_path(j, path);
    if (!part)
        return gg_error_set_nomem(err, strlen(path));
    enum gguf_status st = gg_file_id_open(part, &fd, &why);
    if (st != GGUF_OK)
        (void)gg_error_set(err, st, GGUF_NO_OFFSET, "'%s' %s",
                           gg_str_esc(&esc, gg_str_z(part)), why.message);
    else if (fd < 0)
        st = make_part(part, &fd, &f->id, err);
    else if ((st = check_part(j, no, part, fd, err)) == GGUF_OK &&
             !gg_file_id_fd(&f->id, fd))
        st = gg_error_set_errno(err, errno, "fstat");
    if (fd >= 0)
        gg_os_close(fd);
    if (st != GGUF_OK) {
        gg_mem_free(j->allocator, part);
        return st;
    }
    gg_mem_free(j->allocator, f->part_path);
    f->part_path = part;
    const bool noted = f->part == f->id.ino;
    f->part = f->id.ino;
    if (made)
        *made = !noted;
    return noted ? GGUF_OK
                 : append_inode(j, GG_JOURNAL_PART, no, f->part, err);
}

enum gguf_status gg_journal_note_publish(struct gg_journal *j, size_t no,
                                         struct gguf_error *err)
{
    j->files[no].named = j->files[no].part;
    return append_inode(j, GG_JOURNAL_NAME, no, j->files[no].part, err);
}

enum gguf_status gg_journal_unpublish(const struct gg_journal *j, size_t no,
                                      const char *path, uint64_t size,
                                      struct gguf_error *err)
{
    struct gg_os_stat s;
    uint64_t named = j->files[no].named;
    char *part = make_part_path(j, path);
    if (!part)
        return gg_error_set_nomem(err, strlen(path));
    bool ours = named && gg_os_stat_link(part, &s) != 0 &&
                gg_os_stat_link(path, &s) == 0 && s.kind == GG_OS_FILE &&
                s.ino == named && s.size == size;
    int bad = ours && gg_os_rename(path, part) != 0, reason = errno;
    gg_mem_free(j->allocator, part);
    return bad ? gg_error_set_errno(err, reason, "cannot be renamed")
               : GGUF_OK;
}

void gg_journal_discard_parts(const struct gg_journal *j)
{
    for (size_t i = 0; j->files && i < j->n_files; i++)
        if (j->files[i].part_path)
            (void)gg_file_id_unlink(&j->files[i].id, j->files[i].part_path);
}

/* ---- discarding without a run ---- */

/* Is fd a journal of this kind that belongs to this user and that no process
 * holds? */
static bool is_left(int fd, const struct gg_journal_kind *kind)
{
    uint8_t head[GG_JOURNAL_HEAD];
    struct gg_os_stat s;
    uint64_t n;
    return gg_os_stat_fd(fd, &s) == 0 && s.owner == gg_os_user() &&
           gg_os_read_at(fd, head, sizeof head, 0, &n) == 0 &&
           n == sizeof head && !memcmp(head, kind->magic, 8) &&
           gg_os_lock_process(fd) == 0;
}

/* Does the journal fd list a temporary with this inode? */
static bool notes_inode(int fd, const struct gg_journal_kind *kind,
                        uint64_t inode)
{
    uint8_t b[GG_JOURNAL_MAX_RECORD];
    const size_t size = kind->record_size;
    uint64_t at = GG_JOURNAL_HEAD, n;
    for (; gg_os_read_at(fd, b, size, at, &n) == 0 && n == size; at += size) {
        if (!gg_journal_is_whole(b, size))
            return false;
        if (gg_bytes_load32le(b) == GG_JOURNAL_PART &&
            gg_bytes_load64le(b + 8) == inode)
            return true;
    }
    return false;
}

static bool is_part_name(const char *name)
{
    const size_t n = strlen(name), m = sizeof GG_OUTFILE_PART - 1;
    return n > m && !strcmp(name + n - m, GG_OUTFILE_PART);
}

/* Remove the temporaries in folder that the journal fd lists. */
static enum gguf_status discard_noted(int fd,
                                      const struct gg_journal_kind *kind,
                                      const char *folder, size_t *n,
                                      struct gguf_error *err)
{
    struct gg_os_folder *d = gg_os_folder_open(folder);
    if (!d)
        return gg_error_set_errno(err, errno, "a folder cannot be read");
    enum gguf_status st = GGUF_OK;
    for (const char *e; st == GGUF_OK && (e = gg_os_folder_next(d)) != NULL;) {
        struct gg_os_stat s;
        if (!is_part_name(e) || gg_os_folder_stat(d, e, &s) != 0 ||
            s.kind != GG_OS_FILE || s.n_links != 1 ||
            s.owner != gg_os_user() || !notes_inode(fd, kind, s.ino))
            continue;
        if (gg_os_folder_remove(d, e) == 0)
            ++*n;
        else
            st = gg_error_set_errno(err, errno, "a file cannot be removed");
    }
    gg_os_folder_close(d);
    return st;
}

enum gguf_status gg_journal_discard(const struct gg_journal_kind *kind,
                                    const char *path, size_t *n,
                                    struct gguf_error *err)
{
    const size_t size = strlen(path) + sizeof GG_JOURNAL_SUFFIX;
    char *name = gg_mem_alloc(NULL, size);
    char *folder = gg_file_id_folder(NULL, path);
    struct gg_file_id id;
    int fd = -1;
    enum gguf_status st = GGUF_OK;
    *n = 0;
    if (!name || !folder)
        st = gg_error_set_nomem(err, size);
    else
        snprintf(name, size, "%s" GG_JOURNAL_SUFFIX, path);
    /* a file that cannot be opened is not this user's, and stays */
    if (st == GGUF_OK && gg_file_id_open(name, &fd, NULL) == GGUF_OK &&
        fd >= 0 && is_left(fd, kind)) {
        st = discard_noted(fd, kind, folder, n, err);
        if (st == GGUF_OK && gg_file_id_fd(&id, fd) &&
            gg_file_id_unlink(&id, name))
            ++*n;
    }
    if (fd >= 0)
        gg_os_close(fd);
    gg_mem_free(NULL, name);
    gg_mem_free(NULL, folder);
    return st;
}
