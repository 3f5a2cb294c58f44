/* SPDX-License-Identifier: MIT */
/* edit_journal.c - save a header beside its file while it is written in
 * place */
#include "config.h"
#include "file/edit_journal.h"
#include "base/bytes.h"
#include "base/file_id.h"
#include "base/journal.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "base/outfile_int.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <xxhash.h>

static const char MAGIC[] = "GGUFEDIT";
enum {
    HEADER = GG_JOURNAL_OWN, /* type of the one record: the header */
    AFTER = 1 << 16          /* bytes after the header that are digested */
};

/* Path of the journal, beside the target if path is a symbolic link. */
static char *journal_path(const struct gguf_allocator *a, const char *path)
{
    struct gg_os_stat s;
    char *real = NULL;
    if (gg_os_stat_link(path, &s) == 0 && s.kind == GG_OS_LINK)
        real = gg_os_real_path(path);
    path = real ? real : path;
    size_t size = strlen(path) + sizeof GG_EDIT_JOURNAL;
    char *p = gg_mem_alloc(a, size);
    if (p)
        snprintf(p, size, "%s" GG_EDIT_JOURNAL, path);
    free(real);
    return p;
}

/* Compute the digest that identifies m, whose new header has size bytes: inode,
 * size, and bytes after the header. */
static void digest_file(const struct gg_mapfile *m, uint64_t size,
                        XXH128_canonical_t *out)
{
    const uint64_t after = GG_MIN(m->size - size, (uint64_t)AFTER);
    uint8_t b[32];
    gg_bytes_store64le(b, m->ino);
    gg_bytes_store64le(b + 8, m->size);
    gg_bytes_store64le(b + 16, size);
    gg_bytes_store64le(b + 24, XXH3_64bits(m->data + size, (size_t)after));
    XXH128_canonicalFromHash(out, XXH3_128bits(b, sizeof b));
}

/* Encode the head of a journal of m with a header of size bytes. */
static void put_head(uint8_t b[GG_JOURNAL_HEAD], const struct gg_mapfile *m,
                     uint64_t size)
{
    XXH128_canonical_t file;
    digest_file(m, size, &file);
    gg_journal_put_head(b, MAGIC, (uint32_t)(GG_JOURNAL_FRAME + size), &file);
}

/* Does the failure to open `name' prove that no journal exists? A file that
 * cannot be read may be one, if its owner may write the edited file. */
static bool is_none(const char *name, const struct gg_os_stat *file,
                    const struct gguf_error *why)
{
    struct gg_os_stat s;
    switch (why->sys_errno) {
    case 0: /* not a regular file */
    case EISDIR:
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG: return true;
    case EACCES:
        return gg_os_stat_link(name, &s) == 0 && s.owner != file->owner &&
               s.owner != gg_os_user() && s.owner != 0;
    default: /* possibly too many open files */
        return gg_os_stat_link(name, &s) != 0 &&
               (errno == ENOENT || errno == ENOTDIR);
    }
}

static enum gguf_status open_journal(struct gg_edit_journal *j,
                                     const char *name,
                                     const struct gg_mapfile *m,
                                     struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_str_esc e;
    struct gg_os_stat file;
    gguf_error_clear(&why);
    if (gg_os_stat_fd(m->fd, &file) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    if (gg_mapfile_open(&j->map, name, 0, 0, &why) == GGUF_OK) {
        bool good = false; /* its owner may write the file */
        enum gguf_status st =
            gg_file_id_trusted(j->map.fd, name, file.owner, &good, err);
        if (!good)
            gg_edit_journal_close(j);
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

/* Does the journal belong to the file m, and is it complete? Sets j->size. */
static bool is_of_file(struct gg_edit_journal *j, const struct gg_mapfile *m)
{
    enum { AROUND = GG_JOURNAL_HEAD + GG_JOURNAL_FRAME };
    uint8_t head[GG_JOURNAL_HEAD];
    if (j->map.size < AROUND || j->map.size - AROUND > m->size ||
        j->map.size - AROUND > GG_HEADER_KEPT)
        return false;
    j->size = j->map.size - AROUND;
    put_head(head, m, j->size);
    return !memcmp(head, j->map.data, sizeof head) &&
           gg_journal_is_whole(j->map.data + GG_JOURNAL_HEAD,
                               (size_t)j->size + GG_JOURNAL_FRAME);
}

enum gguf_status gg_edit_journal_find(struct gg_edit_journal *j,
                                      const struct gguf_allocator *a,
                                      const char *path,
                                      const struct gg_mapfile *m,
                                      struct gguf_error *err)
{
    *j = (struct gg_edit_journal){ .map.fd = -1 };
    char *name = journal_path(a, path);
    if (!name)
        return gg_error_set_nomem(err, strlen(path));
    enum gguf_status st = open_journal(j, name, m, err);
    gg_mem_free(a, name);
    if (st != GGUF_OK || j->map.fd < 0)
        return st;
    if (is_of_file(j, m)) {
        j->header = j->map.data + GG_JOURNAL_HEAD + 8;
        return GGUF_OK;
    }
    gg_edit_journal_close(j);
    return GGUF_OK;
}

void gg_edit_journal_close(struct gg_edit_journal *j)
{
    gg_mapfile_close(&j->map);
}

/* Refuse to replace a file that has the journal's name and is not a journal. */
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
            err, why.sys_errno, "'%s' exists and cannot be read",
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

/* Publish the journal o and wait for the disk. A failure leaves none. */
static enum gguf_status publish_journal(struct gg_outfile *o,
                                        struct gguf_error *err)
{
    GG_TRY(gg_outfile_finish(o, err));
    GG_TRY(gg_outfile_publish(o, true, err));
    struct gguf_error why;
    gguf_error_clear(&why);
    enum gguf_status st = gg_outfile_sync_folder(o, &why);
    if (st == GGUF_OK)
        return st;
    gg_outfile_unpublish(o);
    if (st == GGUF_E_NOMEM)
        return gg_error_set(err, st, GGUF_NO_OFFSET, "%s", why.message);
    return gg_error_set_errno(
        err, why.sys_errno,
        "nothing was changed, because the edit's journal could not "
        "be synced: fsync of the folder");
}

/* Encode the journal of m with the header. The caller frees it. NULL: out of
 * memory. */
static uint8_t *make_journal(const struct gguf_allocator *a,
                             const struct gg_mapfile *m, const void *header,
                             uint64_t size)
{
    const size_t record = GG_JOURNAL_FRAME + (size_t)size;
    uint8_t *b = gg_mem_alloc(a, GG_JOURNAL_HEAD + record);
    if (!b)
        return NULL;
    put_head(b, m, size);
    memcpy(b + GG_JOURNAL_HEAD + 8, header, (size_t)size);
    gg_journal_seal(b + GG_JOURNAL_HEAD, record, HEADER, 0);
    return b;
}

static enum gguf_status write_journal(const struct gguf_allocator *a,
                                      const char *name,
                                      const struct gg_mapfile *m,
                                      const uint8_t *journal, uint64_t size,
                                      struct gguf_error *err)
{
    struct gg_outfile o;
    GG_TRY(check_stranger(name, err));
    GG_TRY(gg_outfile_open(&o, a, name, GG_OUTFILE_FORCE, err));
    enum gguf_status st = gg_outfile_copy_mode(&o, m->fd, err);
    if (st == GGUF_OK)
        st = gg_outfile_write(&o, journal, size, err);
    if (st == GGUF_OK)
        st = publish_journal(&o, err);
    gg_outfile_abort(&o);
    return st;
}

enum gguf_status gg_edit_journal_save(const struct gguf_allocator *a,
                                      const char *path,
                                      const struct gg_mapfile *m,
                                      const void *header, uint64_t size,
                                      struct gguf_error *err)
{
    char *name = journal_path(a, path);
    uint8_t *journal = name ? make_journal(a, m, header, size) : NULL;
    enum gguf_status st =
        journal ? write_journal(a, name, m, journal,
                                GG_JOURNAL_HEAD + GG_JOURNAL_FRAME + size, err)
                : gg_error_set_nomem(err, strlen(path));
    gg_mem_free(a, journal);
    gg_mem_free(a, name);
    return st;
}

enum gguf_status gg_edit_journal_remove(const struct gguf_allocator *a,
                                        const char *path,
                                        struct gguf_error *err)
{
    char *name = journal_path(a, path);
    if (!name)
        return gg_error_set_nomem(err, strlen(path));
    enum gguf_status st = GGUF_OK;
    if (gg_os_remove(name) != 0 && errno != ENOENT)
        st = gg_error_set_errno(err, errno,
                                "the edit is complete, but its journal "
                                "cannot be removed");
    gg_mem_free(a, name);
    return st;
}

enum gguf_status gg_header_lock(const char *path, const struct gg_mapfile *m,
                                int *fd, struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    *fd = gg_os_open(path, GG_OS_WRITE);
    if (*fd < 0)
        return gg_error_set_errno(err, errno, "cannot be opened for writing");
    if (gg_os_lock_fd(*fd) != 0 && errno == EWOULDBLOCK)
        st = gg_error_set_errno(err, errno,
                                "is being edited by another program");
    if (st == GGUF_OK)
        st = gg_mapfile_check_unchanged(m, *fd, err);
    if (st != GGUF_OK) {
        gg_os_close(*fd);
        *fd = -1;
    }
    return st;
}

void gg_header_unlock(int fd)
{
    if (fd < 0)
        return;
    gg_os_unlock_fd(fd);
    gg_os_close(fd);
}

/* Make sure that the file's modification time differs from old, even if the
 * clock ticks slowly: readers detect by it that the file was written. */
static void change_time(int fd, const struct timespec *old)
{
    struct gg_os_stat s;
    for (int i = 0; i < 50; i++) {
        if (gg_os_stat_fd(fd, &s) != 0 || s.mtime.tv_sec != old->tv_sec ||
            s.mtime.tv_nsec != old->tv_nsec)
            return;
        gg_os_sleep(1000000);
        (void)gg_os_touch(fd);
    }
}

/* Complete the message of an edit that failed while it wrote the header. */
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
    uint64_t done;
    const int bad = gg_os_write_at(fd, header, size, 0, &done);
    *begun = done > 0;
    if (bad) {
        const enum gguf_status st = gg_error_set_errno(
            err, errno, "writing the header at byte %" PRIu64, done);
        return *begun ? left_over(st, err) : st;
    }
    change_time(fd, &m->mtime);
    if (gg_os_sync(fd) != 0)
        return left_over(gg_error_set_errno(err, errno, "fsync"), err);
    return GGUF_OK;
}
