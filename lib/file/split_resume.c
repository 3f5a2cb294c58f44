/* SPDX-License-Identifier: MIT */
/* split_resume.c - a merge that goes on where an earlier one ended */
#include "config.h"
#include "file/split_resume.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "base/str.h"
#include "file/file_int.h"
#include "file/version_int.h"
#include "gguf/version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "GGUFMERG"

enum {
    FORMAT = 1,
    PLAN = 16, /* where things are in the journal */
    INODE = 32,
    DONE = 40,
    DIGEST = 48,
    SUM = 64,
    SIZE = 72,
    PIECE = 1 << 20 /* bytes read back at once */
};

/* ---- what the output depends on ---- */

static enum gguf_status add_output(XXH3_state_t *s, struct gguf_writer *w,
                                   const struct gg_file_split_layout *l,
                                   struct gguf_error *err)
{
    const void *header;
    size_t size;
    GG_TRY(gguf_writer_header(w, &header, &size, err));
    (void)XXH3_128bits_update(s, header, size);
    gg_file_add_number(s, gguf_writer_file_size(w));
    gg_file_add_number(s, l->size);
    gg_file_add_number(s, l->n_gaps);
    if (l->gaps)
        (void)XXH3_128bits_update(s, l->gaps, (size_t)l->n_gaps);
    for (uint64_t i = 0; l->off && i < l->n; i++)
        gg_file_add_number(s, l->off[i]);
    return GGUF_OK;
}

static enum gguf_status add_all(XXH3_state_t *s, const struct gguf_split *set,
                                struct gguf_writer *w,
                                const struct gg_file_split_layout *l,
                                struct gguf_error *err)
{
    const char *version = gguf_version_string();
    (void)XXH3_128bits_reset(s);
    (void)XXH3_128bits_update(s, version, strlen(version) + 1);
    GG_TRY(add_output(s, w, l, err));
    for (size_t i = 0; i < gguf_split_n_files(set); i++) {
        const struct gguf_file *f = gguf_split_file(set, i);
        GG_TRY(gg_file_add_version(s, &f->map,
                                   GG_MIN(f->data_off, f->map.size), err));
    }
    return GGUF_OK;
}

/* ---- the journal ---- */

static void put(const struct gg_split_resume *r, uint8_t b[SIZE])
{
    memset(b, 0, SIZE);
    memcpy(b, MAGIC, 8);
    gg_bytes_store32le(b + 8, FORMAT);
    memcpy(b + PLAN, r->plan.digest, 16);
    gg_bytes_store64le(b + INODE, r->inode);
    gg_bytes_store64le(b + DONE, r->done);
    memcpy(b + DIGEST, r->digest.digest, 16);
    gg_bytes_store64le(b + SUM, XXH3_64bits(b, SUM));
}

static enum gguf_status write_journal(const struct gg_split_resume *r,
                                      struct gguf_error *err)
{
    uint8_t b[SIZE];
    put(r, b);
    return pwrite(r->fd, b, SIZE, 0) == SIZE
               ? GGUF_OK
               : gg_error_set_errno(err, errno,
                                    "the journal cannot be written");
}

static enum gguf_status mismatch(const struct gg_split_resume *r,
                                 const char *what, struct gguf_error *err)
{
    struct gg_str_esc esc;
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "%s is %s; without it the run begins anew",
                        gg_str_esc(&esc, gg_str_z(r->path)), what);
}

static enum gguf_status read_journal(struct gg_split_resume *r,
                                     struct gguf_error *err)
{
    uint8_t b[SIZE], want[SIZE];
    put(r, want);
    const ssize_t n = pread(r->fd, b, SIZE, 0);
    if (n < 0)
        return gg_error_set_errno(err, errno, "the journal cannot be read");
    if (n < INODE || memcmp(b, want, PLAN) != 0)
        return mismatch(r, "no journal of a merge", err);
    if (memcmp(b, want, INODE) != 0)
        return mismatch(
            r, "the journal of a merge of another input or version", err);
    if (n < SIZE || XXH3_64bits(b, SUM) != gg_bytes_load64le(b + SUM))
        return GGUF_OK; /* torn */
    r->inode = gg_bytes_load64le(b + INODE);
    r->done = gg_bytes_load64le(b + DONE);
    memcpy(r->digest.digest, b + DIGEST, 16);
    return GGUF_OK;
}

/* It appears with what it says: nobody takes another file for one. */
static enum gguf_status make_journal(struct gg_split_resume *r,
                                     struct gguf_error *err)
{
    struct gg_outfile o;
    uint8_t b[SIZE];
    put(r, b);
    GG_TRY(
        gg_outfile_open(&o, r->allocator, r->path, GG_OUTFILE_NO_SYNC, err));
    enum gguf_status st = gg_outfile_write(&o, b, SIZE, err);
    if (st == GGUF_OK)
        st = gg_outfile_commit(&o, err);
    gg_outfile_abort(&o);
    return st == GGUF_OK ? gg_file_id_open(r->path, &r->fd, err) : st;
}

static enum gguf_status lock_journal(struct gg_split_resume *r,
                                     struct gguf_error *err)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct gg_file_id id;
    /* where the system has no locks, a run works without one */
    const bool busy = fcntl(r->fd, F_SETLK, &lock) != 0 &&
                      (errno == EACCES || errno == EAGAIN);
    if (!busy && gg_file_id_fd(&id, r->fd) && gg_file_id_is(&id, r->path))
        return GGUF_OK;
    r->found = true; /* it is the other one's */
    return gg_error_set(err, GGUF_E_IO, GGUF_NO_OFFSET,
                        "another process is at work on it");
}

static enum gguf_status open_journal(struct gg_split_resume *r,
                                     struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_str_esc esc;
    enum gguf_status st = gg_file_id_open(r->path, &r->fd, &why);
    r->found = r->fd >= 0;
    if (st == GGUF_OK && !r->found)
        st = make_journal(r, &why);
    if (st == GGUF_OK && r->fd < 0)
        st = gg_error_set(&why, GGUF_E_IO, GGUF_NO_OFFSET,
                          "another process is at work on it");
    if (st == GGUF_OK)
        st = lock_journal(r, &why);
    if (st != GGUF_OK)
        return gg_error_set(err, st, GGUF_NO_OFFSET, "the journal '%s': %s",
                            gg_str_esc(&esc, gg_str_z(r->path)), why.message);
    return r->found ? read_journal(r, err) : GGUF_OK;
}

/* ---- the data ---- */

/* The file of the data is the one that the journal knows; or there is none as
 * yet, or an empty one that was made right before its run was killed. */
static enum gguf_status open_part(struct gg_split_resume *r,
                                  struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_str_esc esc;
    struct stat s;
    int fd = -1;
    const enum gguf_status st = gg_file_id_open(r->part, &fd, &why);
    if (st != GGUF_OK)
        return gg_error_set(err, st, GGUF_NO_OFFSET, "'%s' %s",
                            gg_str_esc(&esc, gg_str_z(r->part)), why.message);
    const bool there = fd >= 0;
    if (!there)
        fd = open(r->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return gg_error_set_errno(err, errno, "cannot open a file beside it");
    const int bad = fstat(fd, &s);
    close(fd);
    if (bad)
        return gg_error_set_errno(err, errno, "fstat");
    const bool known = s.st_ino == r->inode;
    if (there && !known && (s.st_size || !r->found || r->inode))
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "'%s' is of no run that the journal knows: it is "
                            "left alone",
                            gg_str_esc(&esc, gg_str_z(r->part)));
    if (!known)
        r->done = 0;
    r->inode = s.st_ino;
    return write_journal(r, err);
}

/* Add bytes of o from r->state's end on, up to byte to. */
static enum gguf_status read_back(struct gg_split_resume *r,
                                  const struct gg_outfile *o, uint64_t from,
                                  uint64_t to, struct gguf_error *err)
{
    for (uint64_t n; from < to; from += n) {
        n = GG_MIN(to - from, (uint64_t)PIECE);
        GG_TRY(gg_outfile_read_at(o, from, r->buffer, n, err));
        (void)XXH3_128bits_update(r->state, r->buffer, (size_t)n);
    }
    return GGUF_OK;
}

/* ---- the run ---- */

enum gguf_status gg_split_resume_open(struct gg_split_resume *r,
                                      const struct gguf_split *set,
                                      struct gguf_writer *w,
                                      const struct gg_file_split_layout *l,
                                      const char *path, struct gguf_error *err)
{
    const struct gguf_allocator *a = gg_file_split_allocator(set);
    const size_t size =
        strlen(path) + sizeof GG_OUTFILE_PART + sizeof GG_SPLIT_JOURNAL;
    *r = (struct gg_split_resume){ .allocator = a, .fd = -1 };
    r->path = gg_mem_alloc(a, size);
    r->part = gg_mem_alloc(a, size);
    r->buffer = gg_mem_alloc(a, PIECE);
    r->state = XXH3_createState();
    if (!r->path || !r->part || !r->buffer || !r->state)
        return gg_error_set_nomem(err, 2 * size + PIECE);
    snprintf(r->path, size, "%s" GG_SPLIT_JOURNAL, path);
    snprintf(r->part, size, "%s" GG_OUTFILE_PART, path);
    GG_TRY(add_all(r->state, set, w, l, err));
    XXH128_canonicalFromHash(&r->plan, XXH3_128bits_digest(r->state));
    (void)XXH3_128bits_reset(r->state);
    GG_TRY(open_journal(r, err));
    GG_TRY(open_part(r, err));
    r->ready = true;
    return GGUF_OK;
}

enum gguf_status gg_split_resume_take(struct gg_split_resume *r,
                                      struct gg_outfile *o,
                                      struct gguf_error *err)
{
    XXH128_canonical_t digest;
    /* a file that ends before has not what the journal says */
    if (read_back(r, o, 0, r->done, NULL) == GGUF_OK)
        XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(r->state));
    else
        r->done = 0;
    if (!r->done || memcmp(&digest, &r->digest, sizeof digest) != 0) {
        r->done = 0;
        (void)XXH3_128bits_reset(r->state);
    }
    return gg_outfile_have(o, r->done, err);
}

enum gguf_status gg_split_resume_note(struct gg_split_resume *r,
                                      struct gg_outfile *o,
                                      struct gguf_error *err)
{
    if (o->pos <= r->done)
        return GGUF_OK;
    GG_TRY(gg_outfile_flush(o, err));
    GG_TRY(read_back(r, o, r->done, o->pos, err));
    r->done = o->pos;
    XXH128_canonicalFromHash(&r->digest, XXH3_128bits_digest(r->state));
    return write_journal(r, err);
}

/* The file of the data, if it is still what it was. */
static void remove_part(const struct gg_split_resume *r)
{
    struct gg_file_id id;
    int fd = -1;
    if (gg_file_id_open(r->part, &fd, NULL) != GGUF_OK || fd < 0)
        return;
    if (gg_file_id_fd(&id, fd) && id.ino == r->inode)
        (void)gg_file_id_unlink(&id, r->part);
    close(fd);
}

int gg_split_resume_close(struct gg_split_resume *r, bool done)
{
    struct gg_file_id id;
    int reason = 0;
    if (r->ready && !done && !r->done)
        remove_part(r);
    if (r->fd >= 0 && (done || (!r->done && (r->ready || !r->found))) &&
        !(gg_file_id_fd(&id, r->fd) && gg_file_id_unlink(&id, r->path)))
        reason = errno == ENOENT ? 0 : errno; /* gone is as good */
    if (r->fd >= 0)
        close(r->fd);
    (void)XXH3_freeState(r->state);
    gg_mem_free(r->allocator, r->buffer);
    gg_mem_free(r->allocator, r->part);
    gg_mem_free(r->allocator, r->path);
    *r = (struct gg_split_resume){ .fd = -1 };
    return reason;
}
