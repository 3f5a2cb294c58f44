/* SPDX-License-Identifier: MIT */
/* resume.c - the journal of a run: read, checked, appended to */
#include "config.h"
#include "quant/resume/resume.h"
#include "quant/resume/record.h"
#include "base/outfile_int.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------- records --- */

static void put_f64(uint8_t *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    gg_bytes_store64le(b, bits);
}

static double get_f64(const uint8_t *b)
{
    uint64_t bits = gg_bytes_load64le(b);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Take a record; false if it is not valid. */
static bool read_record(struct gg_resume *r, const struct gguf_quant *q,
                        const uint8_t *b)
{
    uint32_t kind = gg_bytes_load32le(b), i = gg_bytes_load32le(b + 4);
    if (!gg_resume_record_is(b))
        return false;
    if ((kind == GG_RESUME_NAME || kind == GG_RESUME_PART) &&
        i < q->n_shards) {
        uint64_t ino = gg_bytes_load64le(b + 8);
        if (kind == GG_RESUME_NAME)
            r->files[i].named = ino;
        else
            r->files[i].part = ino;
        return true;
    }
    if (kind != GG_RESUME_TENSOR || i >= q->n_t)
        return false;
    struct gg_resume_tensor *t = &r->tensors[i];
    t->have = true;
    memcpy(t->digest.digest, b + 8, 16);
    t->n_nonfinite = gg_bytes_load64le(b + 24);
    t->nonfinite = (enum gguf_nonfinite)gg_bytes_load32le(b + 32);
    t->loss = (struct gguf_quant_loss){
        .measured = (int)gg_bytes_load32le(b + 36),
        .rms = get_f64(b + 40),
        .max = get_f64(b + 48),
        .rms_in = get_f64(b + 56),
        .weighted = get_f64(b + 64),
        .snr = get_f64(b + 72),
        .seconds = get_f64(b + 80),
    };
    t->first_nonfinite = gg_bytes_load64le(b + 88);
    return true;
}

/* A record after the last. The next record overwrites what a failing call
 * wrote of one, so records stay whole; threads append one after the other. */
static enum gguf_status append(struct gg_resume *r, uint8_t *b,
                               struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    gg_bytes_store64le(b + GG_RESUME_RECORD - 8,
                       XXH3_64bits(b, GG_RESUME_RECORD - 8));
    pthread_mutex_lock(&r->lock);
    for (size_t at = 0; at < GG_RESUME_RECORD && st == GGUF_OK;) {
        ssize_t n =
            pwrite(r->fd, b + at, GG_RESUME_RECORD - at, (off_t)(r->end + at));
        if (n < 0 && errno != EINTR)
            st = gg_error_set_errno(err, errno,
                                    "the journal cannot be written");
        at += n > 0 ? (size_t)n : 0;
    }
    r->end += st == GGUF_OK ? GG_RESUME_RECORD : 0;
    pthread_mutex_unlock(&r->lock);
    return st;
}

enum gguf_status gg_resume_add(struct gg_resume *r, size_t i,
                               struct gguf_error *err)
{
    const struct gg_resume_tensor *t = &r->tensors[i];
    uint8_t b[GG_RESUME_RECORD];
    gg_bytes_store32le(b, GG_RESUME_TENSOR);
    gg_bytes_store32le(b + 4, (uint32_t)i);
    memcpy(b + 8, t->digest.digest, 16);
    gg_bytes_store64le(b + 24, t->n_nonfinite);
    gg_bytes_store32le(b + 32, (uint32_t)t->nonfinite);
    gg_bytes_store32le(b + 36, (uint32_t)t->loss.measured);
    put_f64(b + 40, t->loss.rms);
    put_f64(b + 48, t->loss.max);
    put_f64(b + 56, t->loss.rms_in);
    put_f64(b + 64, t->loss.weighted);
    put_f64(b + 72, t->loss.snr);
    put_f64(b + 80, t->loss.seconds);
    gg_bytes_store64le(b + 88, t->first_nonfinite);
    return append(r, b, err);
}

/* --------------------------------------------------------------- files --- */

static char *part_of(const struct gg_resume *r, const char *path)
{
    size_t size = strlen(path) + sizeof GG_OUTFILE_PART;
    char *part = gg_mem_alloc(r->allocator, size);
    if (part)
        snprintf(part, size, "%s%s", path, GG_OUTFILE_PART);
    return part;
}

static enum gguf_status append_file(struct gg_resume *r, uint32_t kind,
                                    size_t no, uint64_t inode,
                                    struct gguf_error *err)
{
    uint8_t b[GG_RESUME_RECORD] = { 0 };
    gg_bytes_store32le(b, kind);
    gg_bytes_store32le(b + 4, (uint32_t)no);
    gg_bytes_store64le(b + 8, inode);
    return append(r, b, err);
}

/* Is the file fd, found as part, the one of file no? It is known by its inode;
 * or an earlier run was killed right after making it: then there is a journal,
 * and the file is empty. */
static enum gguf_status take_part(struct gg_resume *r, size_t no,
                                  const char *part, int fd,
                                  struct gguf_error *err)
{
    struct gg_resume_file *f = &r->files[no];
    struct gg_str_esc esc;
    struct stat s;
    if (fstat(fd, &s) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    if (f->part == s.st_ino)
        return GGUF_OK;
    if (!r->found || f->part || s.st_size || s.st_uid != geteuid())
        return gg_error_set(
            err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
            "'%s' is of no run that the journal knows: it is left "
            "alone",
            gg_str_esc(&esc, gg_str_z(part)));
    f->part = s.st_ino;
    return append_file(r, GG_RESUME_PART, no, s.st_ino, err);
}

/* part is taken if the file is made. */
static enum gguf_status make_part(struct gg_resume *r, size_t no, char *part,
                                  struct gguf_error *err)
{
    struct gg_resume_file *f = &r->files[no];
    int fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return gg_error_set_errno(err, errno, "cannot open a file beside it");
    bool made = gg_file_id_fd(&f->made, fd);
    int e = errno;
    close(fd);
    if (!made) {
        unlink(part);
        return gg_error_set_errno(err, e, "a new file cannot be looked at");
    }
    f->made_path = part;
    f->part = f->made.ino;
    return append_file(r, GG_RESUME_PART, no, f->part, err);
}

enum gguf_status gg_resume_part(struct gg_resume *r, size_t no,
                                const char *path, struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_str_esc esc;
    int fd = -1;
    char *part = part_of(r, path);
    if (!part)
        return gg_error_set_nomem(err, strlen(path));
    enum gguf_status st = gg_file_id_open(part, &fd, &why);
    if (st != GGUF_OK)
        (void)gg_error_set(err, st, GGUF_NO_OFFSET, "'%s' %s",
                           gg_str_esc(&esc, gg_str_z(part)), why.message);
    else
        st = fd >= 0 ? take_part(r, no, part, fd, err)
                     : make_part(r, no, part, err);
    if (fd >= 0)
        close(fd);
    if (r->files[no].made_path != part)
        gg_mem_free(r->allocator, part);
    return st;
}

enum gguf_status gg_resume_add_name(struct gg_resume *r, size_t no,
                                    struct gguf_error *err)
{
    r->files[no].named = r->files[no].part;
    return append_file(r, GG_RESUME_NAME, no, r->files[no].part, err);
}

enum gguf_status gg_resume_sync(struct gg_resume *r, struct gguf_error *err)
{
    return fsync(r->fd)
               ? gg_error_set_errno(err, errno, "fsync of the journal")
               : GGUF_OK;
}

enum gguf_status gg_resume_unname(const struct gg_resume *r, size_t no,
                                  const char *path, uint64_t size,
                                  struct gguf_error *err)
{
    struct stat st;
    uint64_t named = r->files[no].named;
    char *part = part_of(r, path);
    if (!part)
        return gg_error_set_nomem(err, strlen(path));
    bool ours = named && lstat(part, &st) != 0 && lstat(path, &st) == 0 &&
                S_ISREG(st.st_mode) && st.st_ino == named &&
                (uint64_t)st.st_size == size;
    int bad = ours && rename(path, part), reason = errno;
    gg_mem_free(r->allocator, part);
    return bad ? gg_error_set_errno(err, reason, "cannot be renamed")
               : GGUF_OK;
}

void gg_resume_discard_part(const struct gg_resume *r, size_t no)
{
    const struct gg_resume_file *f = &r->files[no];
    if (f->made_path)
        (void)gg_file_id_unlink(&f->made, f->made_path);
}

/* ---------------------------------------------------------- the journal --- */

static void put_head(uint8_t *b, const XXH128_canonical_t *plan)
{
    memset(b, 0, GG_RESUME_HEAD);
    memcpy(b, GG_RESUME_MAGIC, 8);
    gg_bytes_store32le(b + 8, GG_RESUME_FORMAT);
    memcpy(b + 16, plan->digest, 16);
}

/* A new one, which appears with its head: a full disk leaves none, and nobody
 * takes another file for one. */
static enum gguf_status make_journal(const struct gg_resume *r,
                                     const XXH128_canonical_t *plan, bool sync,
                                     struct gguf_error *err)
{
    struct gg_outfile o;
    uint8_t head[GG_RESUME_HEAD];
    put_head(head, plan);
    GG_TRY(gg_outfile_open(&o, r->allocator, r->path,
                           sync ? 0u : GG_OUTFILE_NO_SYNC, err));
    enum gguf_status st = gg_outfile_write(&o, head, GG_RESUME_HEAD, err);
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

/* A run that finds it locked, or finds after locking that it was removed, came
 * second. Where the system has no locks, a run works without one. */
static enum gguf_status lock_journal(const struct gg_resume *r, bool *locked,
                                     struct gguf_error *err)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct stat a, b;
    *locked = fcntl(r->fd, F_SETLK, &lock) == 0;
    if (!*locked && (errno == EACCES || errno == EAGAIN))
        return fail_busy(err);
    bool there = fstat(r->fd, &a) == 0 && lstat(r->path, &b) == 0;
    if (!there && errno != ENOENT)
        return gg_error_set_errno(err, errno, "cannot be looked at");
    return there && a.st_dev == b.st_dev && a.st_ino == b.st_ino
               ? GGUF_OK
               : fail_busy(err);
}

static enum gguf_status open_locked(struct gg_resume *r,
                                    const XXH128_canonical_t *plan, bool sync,
                                    bool *locked, struct gguf_error *err)
{
    struct gguf_error why;
    struct gg_str_esc esc;
    enum gguf_status st = gg_file_id_open(r->path, &r->fd, &why);
    r->found = r->fd >= 0;
    if (st == GGUF_OK && !r->found) {
        st = make_journal(r, plan, sync, &why);
        if (st == GGUF_OK)
            st = gg_file_id_open(r->path, &r->fd, &why);
        if (st == GGUF_E_EXIST || (st == GGUF_OK && r->fd < 0))
            st = fail_busy(&why);
    }
    if (st == GGUF_OK)
        st = lock_journal(r, locked, &why);
    if (st != GGUF_OK)
        (void)gg_error_set(err, st, GGUF_NO_OFFSET, "the journal '%s': %s",
                           gg_str_esc(&esc, gg_str_z(r->path)), why.message);
    return st;
}

static enum gguf_status mismatch(const struct gg_resume *r, const char *what,
                                 struct gguf_error *err)
{
    struct gg_str_esc esc;
    return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                        "%s is %s; without it the run begins anew",
                        gg_str_esc(&esc, gg_str_z(r->path)), what);
}

/* Up to size bytes at off: how many there are, or -1. */
static ssize_t read_at(int fd, uint8_t *b, size_t size, off_t off)
{
    size_t at = 0;
    while (at < size) {
        ssize_t n = pread(fd, b + at, size - at, off + (off_t)at);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0)
            at += (size_t)n;
    }
    return (ssize_t)at;
}

/* Compare the head; take the records that are good, and cut off what
 * follows. */
static enum gguf_status read_all(struct gg_resume *r,
                                 const struct gguf_quant *q,
                                 const XXH128_canonical_t *plan,
                                 struct gguf_error *err)
{
    uint8_t want[GG_RESUME_HEAD], head[GG_RESUME_HEAD], b[GG_RESUME_RECORD];
    put_head(want, plan);
    ssize_t n = read_at(r->fd, head, GG_RESUME_HEAD, 0);
    if (n < 0)
        return gg_error_set_errno(err, errno, "the journal cannot be read");
    if (n < GG_RESUME_HEAD || memcmp(head, want, 16) != 0)
        return mismatch(r, "no journal of this program", err);
    if (memcmp(head, want, GG_RESUME_HEAD) != 0)
        return mismatch(r,
                        "the journal of a run of another input, recipe, "
                        "option or version",
                        err);
    off_t at = GG_RESUME_HEAD;
    while ((n = read_at(r->fd, b, GG_RESUME_RECORD, at)) == GG_RESUME_RECORD &&
           read_record(r, q, b))
        at += GG_RESUME_RECORD;
    if (n < 0) /* nothing is cut off that could not be read */
        return gg_error_set_errno(err, errno, "the journal cannot be read");
    r->end = (uint64_t)at;
    if (ftruncate(r->fd, at))
        return gg_error_set_errno(err, errno, "the journal cannot be written");
    return GGUF_OK;
}

enum gguf_status gg_resume_open(struct gg_resume *r,
                                const struct gguf_quant *q, const char *path,
                                bool sync, struct gguf_error *err)
{
    const struct gguf_allocator *a = q->p.allocator;
    size_t size = strlen(path) + sizeof GG_RESUME;
    *r = (struct gg_resume){ .allocator = a, .fd = -1 };
    if (pthread_mutex_init(&r->lock, NULL))
        return gg_error_set_nomem(err, sizeof r->lock);
    r->has_lock = true;
    r->path = gg_mem_alloc(a, size);
    r->tensors = gg_mem_alloc_zero(a, q->n_t, sizeof *r->tensors);
    r->files = gg_mem_alloc_zero(a, q->n_shards, sizeof *r->files);
    r->n_files = q->n_shards;
    XXH128_canonical_t plan;
    bool locked = false;
    enum gguf_status st = gg_resume_plan(q, &plan, err);
    if (st == GGUF_OK && (!r->path || !r->tensors || !r->files))
        st = gg_error_set_nomem(err, size + q->n_t * sizeof *r->tensors);
    if (st == GGUF_OK) {
        snprintf(r->path, size, "%s" GG_RESUME, path);
        st = open_locked(r, &plan, sync, &locked, err);
    }
    if (st == GGUF_OK)
        st = read_all(r, q, &plan, err);
    if (st != GGUF_OK)
        (void)gg_resume_close(r, locked && !r->found);
    return st;
}

int gg_resume_close(struct gg_resume *r, bool discard)
{
    struct gg_file_id id;
    int reason = 0;
    if (discard && r->path && r->fd >= 0 &&
        !(gg_file_id_fd(&id, r->fd) && gg_file_id_unlink(&id, r->path)))
        reason = errno == ENOENT ? 0 : errno; /* gone is as good */
    if (r->fd >= 0)
        close(r->fd);
    if (r->has_lock)
        pthread_mutex_destroy(&r->lock);
    gg_mem_free(r->allocator, r->path);
    gg_mem_free(r->allocator, r->tensors);
    for (size_t i = 0; r->files && i < r->n_files; i++)
        gg_mem_free(r->allocator, r->files[i].made_path);
    gg_mem_free(r->allocator, r->files);
    *r = (struct gg_resume){ .fd = -1 };
    return reason;
}
