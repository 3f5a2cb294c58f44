/* resume.c - the journal of a run: read, checked, appended to */
#include "config.h"
#include "quant/resume.h"
#include "base/bytes.h"
#include "base/outfile.h"
#include "base/str.h"
#include "gguf/version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "GGUFRESU";

enum {
    FORMAT = 2,
    HEAD_SIZE = 32,
    RECORD_SIZE = 104,
    RECORD_TENSOR = 1,
    RECORD_NAME = 2
};

/* ------------------------------------------------------------ the plan --- */

static void update_u64(XXH3_state_t *s, uint64_t v)
{
    uint8_t b[8];
    gg_store64le(b, v);
    (void)XXH3_128bits_update(s, b, sizeof b);
}

/* The headers of the output: metadata, names, types, shapes, places. */
static enum gguf_status add_headers(XXH3_state_t *s,
                                    const struct gguf_quant *q,
                                    struct gguf_error *err)
{
    update_u64(s, q->n_shards);
    for (size_t no = 0; no < q->n_shards; no++) {
        struct gguf_writer *w;
        const void *data;
        size_t size;
        GG_TRY(gg_job_writer(q, no, &w, err));
        enum gguf_status st = gguf_writer_header(w, &data, &size, err);
        if (st == GGUF_OK) {
            update_u64(s, size);
            (void)XXH3_128bits_update(s, data, size);
        }
        gguf_writer_destroy(w);
        GG_TRY(st);
    }
    return GGUF_OK;
}

/* The files of the input, as well as can be told without reading them. */
static enum gguf_status add_inputs(XXH3_state_t *s,
                                   const struct gguf_quant *q,
                                   struct gguf_error *err)
{
    for (size_t i = 0; i < gguf_split_n_files(q->set); i++) {
        struct stat st;
        if (stat(gguf_split_path(q->set, i), &st) != 0)
            return gg_fail_errno(err, errno, "the input");
        update_u64(s, (uint64_t)st.st_size);
        update_u64(s, (uint64_t)st.st_mtime);
    }
    return GGUF_OK;
}

/* Where each tensor comes from, and with which importances. */
static enum gguf_status add_tensors(XXH3_state_t *s,
                                    const struct gguf_quant *q,
                                    struct gguf_error *err)
{
    for (size_t i = 0; i < q->n_t; i++) {
        const struct gg_job_tensor *t = &q->t[i];
        size_t ne0 = (size_t)t->pub.ne[0];
        update_u64(s, t->src->file_no);
        update_u64(s, t->src->info->off);
        update_u64(s, t->pub.from);
        update_u64(s, t->imatrix != NULL);
        if (!t->imatrix)
            continue;
        float *row = gg_alloc(q->p.allocator, ne0 * sizeof *row);
        if (!row)
            return gg_fail_nomem(err, ne0 * sizeof *row);
        for (uint64_t at = 0; at < t->imatrix->n_values; at += ne0) {
            gg_imatrix_weights(t->imatrix, at, ne0, row);
            (void)XXH3_128bits_update(s, row, ne0 * sizeof *row);
        }
        gg_free(q->p.allocator, row);
    }
    return GGUF_OK;
}

/* Everything that decides about the bytes of the output. */
static enum gguf_status plan_digest(const struct gguf_quant *q,
                                    XXH128_canonical_t *out,
                                    struct gguf_error *err)
{
    XXH3_state_t *s = XXH3_createState();
    if (!s)
        return gg_fail(err, GGUF_E_NOMEM, GGUF_NO_OFFSET,
                       "no memory for a digest");
    const char *version = gguf_version_string();
    (void)XXH3_128bits_reset(s);
    (void)XXH3_128bits_update(s, version, strlen(version) + 1);
    enum gguf_status st = add_headers(s, q, err);
    if (st == GGUF_OK)
        st = add_inputs(s, q, err);
    if (st == GGUF_OK)
        st = add_tensors(s, q, err);
    XXH128_canonicalFromHash(out, XXH3_128bits_digest(s));
    (void)XXH3_freeState(s);
    return st;
}

/* ------------------------------------------------------------- records --- */

static void put_f64(uint8_t *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    gg_store64le(b, bits);
}

static double get_f64(const uint8_t *b)
{
    uint64_t bits = gg_load64le(b);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Take a record; false if it is none. */
static bool read_record(struct gg_resume *r, const struct gguf_quant *q,
                        const uint8_t *b)
{
    uint32_t kind = gg_load32le(b), i = gg_load32le(b + 4);
    if (XXH3_64bits(b, RECORD_SIZE - 8) != gg_load64le(b + RECORD_SIZE - 8))
        return false;
    if (kind == RECORD_NAME && i < q->n_shards) {
        r->inodes[i] = gg_load64le(b + 8);
        return true;
    }
    if (kind != RECORD_TENSOR || i >= q->n_t)
        return false;
    struct gg_resume_tensor *t = &r->tensors[i];
    t->have = true;
    memcpy(t->digest.digest, b + 8, 16);
    t->n_nonfinite = gg_load64le(b + 24);
    t->nonfinite = (enum gguf_nonfinite)gg_load32le(b + 32);
    t->loss = (struct gguf_quant_loss){
        .measured = (int)gg_load32le(b + 36), .rms = get_f64(b + 40),
        .max = get_f64(b + 48), .rms_in = get_f64(b + 56),
        .weighted = get_f64(b + 64), .snr = get_f64(b + 72),
        .seconds = get_f64(b + 80),
    };
    t->first_nonfinite = gg_load64le(b + 88);
    return true;
}

/* One call of write, so that records of several threads do not mix. */
static enum gguf_status append(struct gg_resume *r, uint8_t *b,
                               struct gguf_error *err)
{
    gg_store64le(b + RECORD_SIZE - 8, XXH3_64bits(b, RECORD_SIZE - 8));
    ssize_t n = write(r->fd, b, RECORD_SIZE);
    if (n == RECORD_SIZE)
        return GGUF_OK;
    return gg_fail_errno(err, n < 0 ? errno : ENOSPC,
                         "the journal cannot be written");
}

enum gguf_status gg_resume_add(struct gg_resume *r, size_t i,
                               struct gguf_error *err)
{
    const struct gg_resume_tensor *t = &r->tensors[i];
    uint8_t b[RECORD_SIZE];
    gg_store32le(b, RECORD_TENSOR);
    gg_store32le(b + 4, (uint32_t)i);
    memcpy(b + 8, t->digest.digest, 16);
    gg_store64le(b + 24, t->n_nonfinite);
    gg_store32le(b + 32, (uint32_t)t->nonfinite);
    gg_store32le(b + 36, (uint32_t)t->loss.measured);
    put_f64(b + 40, t->loss.rms);
    put_f64(b + 48, t->loss.max);
    put_f64(b + 56, t->loss.rms_in);
    put_f64(b + 64, t->loss.weighted);
    put_f64(b + 72, t->loss.snr);
    put_f64(b + 80, t->loss.seconds);
    gg_store64le(b + 88, t->first_nonfinite);
    return append(r, b, err);
}

/* --------------------------------------------------------------- names --- */

static char *part_of(const struct gg_resume *r, const char *path)
{
    size_t size = strlen(path) + sizeof GG_OUTFILE_PART;
    char *part = gg_alloc(r->allocator, size);
    if (part)
        snprintf(part, size, "%s%s", path, GG_OUTFILE_PART);
    return part;
}

enum gguf_status gg_resume_add_name(struct gg_resume *r, size_t no,
                                    const char *path, struct gguf_error *err)
{
    uint8_t b[RECORD_SIZE] = { 0 };
    struct stat st;
    char *part = part_of(r, path);
    if (!part)
        return gg_fail_nomem(err, strlen(path));
    int rc = stat(part, &st), reason = errno;
    gg_free(r->allocator, part);
    if (rc)
        return gg_fail_errno(err, reason, "what was written is gone");
    r->inodes[no] = st.st_ino;
    gg_store32le(b, RECORD_NAME);
    gg_store32le(b + 4, (uint32_t)no);
    gg_store64le(b + 8, st.st_ino);
    return append(r, b, err);
}

enum gguf_status gg_resume_sync(struct gg_resume *r, struct gguf_error *err)
{
    return fsync(r->fd) ? gg_fail_errno(err, errno, "fsync of the journal")
                        : GGUF_OK;
}

enum gguf_status gg_resume_unname(const struct gg_resume *r, size_t no,
                                  const char *path, uint64_t size,
                                  struct gguf_error *err)
{
    struct stat st;
    char *part = part_of(r, path);
    if (!part)
        return gg_fail_nomem(err, strlen(path));
    bool ours = r->inodes[no] && lstat(part, &st) != 0 &&
                lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
                st.st_ino == r->inodes[no] && (uint64_t)st.st_size == size;
    int bad = ours && rename(path, part), reason = errno;
    gg_free(r->allocator, part);
    return bad ? gg_fail_errno(err, reason, "cannot be renamed") : GGUF_OK;
}

void gg_resume_discard_part(const struct gg_resume *r, const char *path)
{
    char *part = part_of(r, path);
    if (part)
        unlink(part);
    gg_free(r->allocator, part);
}

/* ---------------------------------------------------------- the journal --- */

/* Open and lock. Who finds it locked, or finds after the lock that it was
 * removed, was second. */
static enum gguf_status open_locked(struct gg_resume *r,
                                    struct gguf_error *err)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct stat a, b;
    r->fd = open(r->path,
                 O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (r->fd < 0)
        return gg_fail_errno(err, errno, "the journal cannot be opened");
    bool locked = fcntl(r->fd, F_SETLK, &lock) == 0;
    if (!locked && (errno == EACCES || errno == EAGAIN))
        return gg_fail(err, GGUF_E_EXIST, GGUF_NO_OFFSET,
                       "another process is writing it");
    if (fstat(r->fd, &a) || stat(r->path, &b) || a.st_ino != b.st_ino ||
        !S_ISREG(a.st_mode))
        return gg_fail(err, GGUF_E_EXIST, GGUF_NO_OFFSET,
                       "another process wrote it");
    return GGUF_OK; /* where there are no locks, without one */
}

static enum gguf_status mismatch(const struct gg_resume *r, const char *what,
                                 struct gguf_error *err)
{
    struct gg_esc esc;
    return gg_fail(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                   "%s is %s; without it the run begins anew",
                   gg_esc(&esc, gg_strz(r->path)), what);
}

/* Compare the head, or write it; take the records that are good, and cut off
 * what follows. */
static enum gguf_status read_all(struct gg_resume *r,
                                 const struct gguf_quant *q,
                                 const XXH128_canonical_t *plan,
                                 struct gguf_error *err)
{
    uint8_t want[HEAD_SIZE] = { 0 }, head[HEAD_SIZE], b[RECORD_SIZE];
    memcpy(want, magic, sizeof magic);
    gg_store32le(want + 8, FORMAT);
    memcpy(want + 16, plan->digest, 16);
    ssize_t n = pread(r->fd, head, HEAD_SIZE, 0);
    if (n < 0)
        return gg_fail_errno(err, errno, "the journal cannot be read");
    if (n < HEAD_SIZE && !memcmp(head, want, (size_t)n)) {
        /* empty, or torn at once */
        if (ftruncate(r->fd, 0) || write(r->fd, want, HEAD_SIZE) != HEAD_SIZE)
            return gg_fail_errno(err, errno, "the journal cannot be written");
        return GGUF_OK;
    }
    if (n < HEAD_SIZE || memcmp(head, want, 16))
        return mismatch(r, "no journal of this program", err);
    if (memcmp(head, want, HEAD_SIZE))
        return mismatch(r, "the journal of a run of another input, recipe, "
                           "option or version", err);
    r->found = true;
    off_t at = HEAD_SIZE;
    while (pread(r->fd, b, RECORD_SIZE, at) == RECORD_SIZE &&
           read_record(r, q, b))
        at += RECORD_SIZE;
    if (ftruncate(r->fd, at))
        return gg_fail_errno(err, errno, "the journal cannot be written");
    return GGUF_OK;
}

enum gguf_status gg_resume_open(struct gg_resume *r,
                                const struct gguf_quant *q, const char *path,
                                struct gguf_error *err)
{
    const struct gguf_allocator *a = q->p.allocator;
    size_t size = strlen(path) + sizeof ".resume";
    *r = (struct gg_resume){ .allocator = a, .fd = -1 };
    r->path = gg_alloc(a, size);
    r->tensors = gg_alloc_zero(a, q->n_t, sizeof *r->tensors);
    r->inodes = gg_alloc_zero(a, q->n_shards, sizeof *r->inodes);
    XXH128_canonical_t plan;
    enum gguf_status st = plan_digest(q, &plan, err);
    if (st == GGUF_OK && (!r->path || !r->tensors || !r->inodes))
        st = gg_fail_nomem(err, size + q->n_t * sizeof *r->tensors);
    if (st == GGUF_OK) {
        snprintf(r->path, size, "%s.resume", path);
        st = open_locked(r, err);
    }
    if (st == GGUF_OK)
        st = read_all(r, q, &plan, err);
    if (st != GGUF_OK)
        gg_resume_close(r, false);
    return st;
}

void gg_resume_close(struct gg_resume *r, bool discard)
{
    if (discard && r->path && r->fd >= 0)
        unlink(r->path);
    if (r->fd >= 0)
        close(r->fd);
    gg_free(r->allocator, r->path);
    gg_free(r->allocator, r->tensors);
    gg_free(r->allocator, r->inodes);
    *r = (struct gg_resume){ .fd = -1 };
}
