/* SPDX-License-Identifier: MIT */
/* journal.c - open, read and append to a journal */
#include "config.h"
#include "base/journal.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "base/outfile_int.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- the bytes ---- */

void gg_journal_put_head(uint8_t b[GG_JOURNAL_HEAD], const char *magic,
                         uint32_t record_size, const XXH128_canonical_t *plan)
{
    memcpy(b, magic, 8);
    gg_bytes_store32le(b + 8, GG_JOURNAL_FORMAT);
    gg_bytes_store32le(b + 12, record_size);
    memcpy(b + 16, plan->digest, 16);
}

void gg_journal_seal(uint8_t *b, size_t size, uint32_t type, uint32_t number)
{
    gg_bytes_store32le(b, type);
    gg_bytes_store32le(b + 4, number);
    gg_bytes_store64le(b + size - 8, XXH3_64bits(b, size - 8));
}

bool gg_journal_is_whole(const uint8_t *b, size_t size)
{
    return XXH3_64bits(b, size - 8) == gg_bytes_load64le(b + size - 8);
}

/* ---- opening ---- */

/* Create a journal. It appears together with its head, so a full disk leaves
 * none and another file is never mistaken for one. */
static enum gguf_status make_journal(const struct gg_journal *j,
                                     const XXH128_canonical_t *plan, bool sync,
                                     struct gguf_error *err)
{
    struct gg_outfile o;
    uint8_t head[GG_JOURNAL_HEAD];
    gg_journal_put_head(head, j->kind->magic, j->kind->record_size, plan);
    GG_TRY(gg_outfile_open(&o, j->allocator, j->path,
                           sync ? 0u : GG_OUTFILE_NO_SYNC, err));
    enum gguf_status st = gg_outfile_write(&o, head, sizeof head, err);
    if (st == GGUF_OK)
        st = gg_outfile_commit(&o, err);
    gg_outfile_abort(&o);
    return st;
}

static enum gguf_status fail_busy(struct gguf_error *err)
{
    return gg_error_set(err, GGUF_E_IO, GGUF_NO_OFFSET,
                        "another process is at work on it");
}

/* Lock the journal. If it is locked already, or was removed before the lock was
 * granted, another run was first. Systems without locks run without one. */
static enum gguf_status lock_journal(const struct gg_journal *j, bool *locked,
                                     struct gguf_error *err)
{
    struct gg_os_stat a, b;
    *locked = gg_os_lock_process(j->fd) == 0;
    if (!*locked && (errno == EACCES || errno == EAGAIN))
        return fail_busy(err);
    bool there =
        gg_os_stat_fd(j->fd, &a) == 0 && gg_os_stat_link(j->path, &b) == 0;
    if (!there && errno != ENOENT)
        return gg_error_set_errno(err, errno, "cannot be looked at");
    return there && a.dev == b.dev && a.ino == b.ino ? GGUF_OK
                                                     : fail_busy(err);
}

static enum gguf_status open_locked(struct gg_journal *j,
                                    const XXH128_canonical_t *plan, bool sync,
                                    bool *locked, struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_str_esc esc;
    enum gguf_status st = gg_file_id_open(j->path, &j->fd, &why);
    j->found = j->fd >= 0;
    if (st == GGUF_OK && !j->found) {
        st = make_journal(j, plan, sync, &why);
        if (st == GGUF_OK)
            st = gg_file_id_open(j->path, &j->fd, &why);
        if (st == GGUF_E_EXIST || (st == GGUF_OK && j->fd < 0))
            st = fail_busy(&why);
    }
    if (st == GGUF_OK)
        st = lock_journal(j, locked, &why);
    if (st != GGUF_OK)
        (void)gg_error_set(err, st, GGUF_NO_OFFSET, "the journal '%s': %s",
                           gg_str_esc(&esc, gg_str_z(j->path)), why.message);
    return st;
}

/* ---- reading ---- */

static enum gguf_status refuse_journal(const struct gg_journal *j,
                                       const char *what,
                                       struct gguf_error *err)
{
    struct gg_str_esc esc;
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "%s is %s; without it the run begins anew",
                        gg_str_esc(&esc, gg_str_z(j->path)), what);
}

/* Apply a record about a file of the output, or pass it to the kind. */
static bool take_record(struct gg_journal *j, const uint8_t *b,
                        gg_journal_record_fn *take, void *user)
{
    const uint32_t type = gg_bytes_load32le(b);
    const uint32_t no = gg_bytes_load32le(b + 4);
    if (!gg_journal_is_whole(b, j->kind->record_size))
        return false;
    if (type >= GG_JOURNAL_OWN)
        return take(user, b);
    if ((type != GG_JOURNAL_PART && type != GG_JOURNAL_NAME) ||
        no >= j->n_files)
        return false;
    if (type == GG_JOURNAL_PART)
        j->files[no].part = gg_bytes_load64le(b + 8);
    else
        j->files[no].named = gg_bytes_load64le(b + 8);
    return true;
}

/* Compare the head, apply all valid records, and cut off the rest. */
static enum gguf_status read_records(struct gg_journal *j,
                                     const XXH128_canonical_t *plan,
                                     gg_journal_record_fn *take, void *user,
                                     struct gguf_error *err)
{
    uint8_t want[GG_JOURNAL_HEAD], head[GG_JOURNAL_HEAD];
    uint8_t b[GG_JOURNAL_MAX_RECORD];
    const size_t size = j->kind->record_size;
    gg_journal_put_head(want, j->kind->magic, j->kind->record_size, plan);
    uint64_t n, at = GG_JOURNAL_HEAD;
    if (gg_os_read_at(j->fd, head, sizeof head, 0, &n) != 0)
        return gg_error_set_errno(err, errno, "the journal cannot be read");
    if (n < GG_JOURNAL_HEAD || memcmp(head, want, 16) != 0)
        return refuse_journal(j, j->kind->is_none, err);
    if (memcmp(head, want, sizeof head) != 0)
        return refuse_journal(j, j->kind->is_other, err);
    for (;; at += size) {
        if (gg_os_read_at(j->fd, b, size, at, &n) != 0)
            /* unreadable bytes are not cut off */
            return gg_error_set_errno(err, errno,
                                      "the journal cannot be read");
        if (n < size || !take_record(j, b, take, user))
            break;
    }
    j->end = at;
    if (gg_os_set_size(j->fd, at) != 0)
        return gg_error_set_errno(err, errno, "the journal cannot be written");
    return GGUF_OK;
}

enum gguf_status gg_journal_open(struct gg_journal *j,
                                 const struct gg_journal_kind *kind,
                                 const XXH128_canonical_t *plan,
                                 const char *path, size_t n_files, bool sync,
                                 gg_journal_record_fn *take, void *user,
                                 const struct gguf_allocator *allocator,
                                 struct gguf_error *err)
{
    const size_t size = strlen(path) + sizeof GG_JOURNAL_SUFFIX;
    bool locked = false;
    *j = (struct gg_journal){ .allocator = allocator, .kind = kind, .fd = -1 };
    if (pthread_mutex_init(&j->lock, NULL))
        return gg_error_set_nomem(err, sizeof j->lock);
    j->has_lock = true;
    j->path = gg_mem_alloc(allocator, size);
    j->files = gg_mem_alloc_zero(allocator, n_files, sizeof *j->files);
    j->n_files = n_files;
    enum gguf_status st =
        j->path && j->files
            ? GGUF_OK
            : gg_error_set_nomem(err, size + n_files * sizeof *j->files);
    if (st == GGUF_OK) {
        snprintf(j->path, size, "%s" GG_JOURNAL_SUFFIX, path);
        st = open_locked(j, plan, sync, &locked, err);
    }
    if (st == GGUF_OK)
        st = read_records(j, plan, take, user, err);
    if (st != GGUF_OK)
        (void)gg_journal_close(j, locked && !j->found);
    return st;
}

/* ---- writing ---- */

/* One thread at a time appends. After a failure the next record overwrites the
 * bytes of the failed one, so the journal has no torn record inside. */
enum gguf_status gg_journal_append(struct gg_journal *j, uint8_t *b,
                                   uint32_t type, uint32_t number,
                                   struct gguf_error *err)
{
    const size_t size = j->kind->record_size;
    enum gguf_status st = GGUF_OK;
    uint64_t done;
    gg_journal_seal(b, size, type, number);
    pthread_mutex_lock(&j->lock);
    if (gg_os_write_at(j->fd, b, size, j->end, &done) == 0)
        j->end += size;
    else
        st = gg_error_set_errno(err, errno, "the journal cannot be written");
    pthread_mutex_unlock(&j->lock);
    return st;
}

enum gguf_status gg_journal_sync(const struct gg_journal *j,
                                 struct gguf_error *err)
{
    return gg_os_sync(j->fd) != 0
               ? gg_error_set_errno(err, errno, "fsync of the journal")
               : GGUF_OK;
}

int gg_journal_close(struct gg_journal *j, bool discard)
{
    struct gg_file_id id;
    int reason = 0;
    if (discard && j->path && j->fd >= 0 &&
        !(gg_file_id_fd(&id, j->fd) && gg_file_id_unlink(&id, j->path)))
        reason = errno == ENOENT ? 0 : errno; /* removed already */
    if (j->fd >= 0)
        gg_os_close(j->fd);
    if (j->has_lock)
        pthread_mutex_destroy(&j->lock);
    gg_mem_free(j->allocator, j->path);
    for (size_t i = 0; j->files && i < j->n_files; i++)
        gg_mem_free(j->allocator, j->files[i].part_path);
    gg_mem_free(j->allocator, j->files);
    *j = (struct gg_journal){ .fd = -1 };
    return reason;
}
