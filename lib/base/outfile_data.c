/* SPDX-License-Identifier: MIT */
/* outfile_data.c - write, copy and read the bytes of an outfile */
#include "config.h"
#include "base/outfile_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#if HAVE_SYS_IOCTL_H
#include <sys/ioctl.h>
#endif
#if HAVE_LINUX_FS_H
#include <linux/fs.h>
#endif

enum { PAGE = 4096, SYNC_PIECE = 4 << 20, SYNC_AHEAD = 64 << 20 };

/* Linux caps one transfer a little below 2 GiB; this also keeps a copy
 * interruptible. */
#define MAX_TRANSFER (UINT64_C(1) << 30)

static enum gguf_status write_all(const struct gg_outfile *o, uint64_t off,
                                  const void *data, uint64_t size,
                                  struct gguf_error *err)
{
    const char *p = data;
    while (size) {
        ssize_t n =
            pwrite(o->fd, p, (size_t)GG_MIN(size, MAX_TRANSFER), (off_t)off);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return gg_error_set_errno(
                err, errno, "writing %" PRIu64 " bytes at byte %" PRIu64, size,
                off);
        p += n;
        off += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return GGUF_OK;
}

enum gguf_status gg_outfile_flush(struct gg_outfile *o, struct gguf_error *err)
{
    size_t n = o->n_buf;
    o->n_buf = 0;
    return write_all(o, o->pos - n, o->buf, n, err);
}

enum gguf_status gg_outfile_reserve(struct gg_outfile *o, uint64_t size,
                                    bool allocate, struct gguf_error *err)
{
    struct statvfs v;
    struct stat s;
    /* a resumed file has space already, in blocks of 512 bytes */
    uint64_t has = fstat(o->fd, &s) == 0 ? (uint64_t)s.st_blocks * 512 : 0;
    if (size > has && fstatvfs(o->fd, &v) == 0 && v.f_frsize > 0 &&
        v.f_blocks > 0 && (size - has) / v.f_frsize >= v.f_bavail)
        return gg_error_set(
            err, GGUF_E_NOSPACE, GGUF_NO_OFFSET,
            "needs %" PRIu64 " bytes, the file system has %" PRIu64 " free",
            size - has, (uint64_t)v.f_bavail * (uint64_t)v.f_frsize);
#if HAVE_FALLOCATE
    /* Not posix_fallocate(): it writes every block if the file system cannot
     * allocate. */
    if (allocate && size > 0 && fallocate(o->fd, 0, 0, (off_t)size) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return gg_error_set_errno(err, errno, "no room for %" PRIu64 " bytes",
                                  size);
#else
    (void)allocate;
#endif
    return GGUF_OK;
}

enum gguf_status gg_outfile_set_complete(struct gg_outfile *o, uint64_t size,
                                         struct gguf_error *err)
{
    GG_TRY(gg_outfile_flush(o, err));
    o->have = size;
    return GGUF_OK;
}

uint64_t gg_outfile_skip_complete(struct gg_outfile *o, uint64_t size)
{
    const uint64_t n = o->pos < o->have ? GG_MIN(size, o->have - o->pos) : 0;
    o->pos += n;
    return n;
}

enum gguf_status gg_outfile_write(struct gg_outfile *o, const void *data,
                                  uint64_t size, struct gguf_error *err)
{
    const uint64_t passed = gg_outfile_skip_complete(o, size);
    data = (const char *)data + passed;
    size -= passed;
    if (size > GG_OUTFILE_BUF - o->n_buf)
        GG_TRY(gg_outfile_flush(o, err));
    if (size >= GG_OUTFILE_BUF) {
        GG_TRY(write_all(o, o->pos, data, size, err));
    } else if (size) {
        memcpy(o->buf + o->n_buf, data, (size_t)size);
        o->n_buf += (size_t)size;
    }
    o->pos += size;
    return GGUF_OK;
}

enum gguf_status gg_outfile_zeros(struct gg_outfile *o, uint64_t size,
                                  struct gguf_error *err)
{
    static const uint8_t zeros[4096];
    while (size) {
        uint64_t n = GG_MIN(size, (uint64_t)sizeof zeros);
        GG_TRY(gg_outfile_write(o, zeros, n, err));
        size -= n;
    }
    return GGUF_OK;
}

/* Let the file system copy up to size bytes; *done is their number. Sets no_cfr
 * if that does not work here at all. If the two offsets differ within a page,
 * nothing can be shared, and the system copies each page in two parts: then
 * reading and writing is faster. */
static enum gguf_status copy_inside(struct gg_outfile *o, int in_fd,
                                    uint64_t in_off, uint64_t size,
                                    uint64_t *done, struct gguf_error *err)
{
    *done = 0;
#if HAVE_COPY_FILE_RANGE
    if ((in_off - o->pos) % PAGE)
        return GGUF_OK;
    while (*done < size && !o->no_cfr) {
        off_t from = (off_t)(in_off + *done), to = (off_t)(o->pos + *done);
        ssize_t n =
            copy_file_range(in_fd, &from, o->fd, &to,
                            (size_t)GG_MIN(size - *done, MAX_TRANSFER), 0);
        if (n > 0)
            *done += (uint64_t)n;
        else if (n < 0 && errno == EINTR)
            continue;
        else if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
            return gg_error_set_errno(err, errno, "copying to byte %" PRIu64,
                                      o->pos + *done);
        else
            o->no_cfr = true; /* other file system, old kernel, end of file */
    }
#else
    (void)in_fd, (void)in_off, (void)size, (void)err;
    o->no_cfr = true;
#endif
    return GGUF_OK;
}

enum gguf_status gg_outfile_copy(struct gg_outfile *o, int in_fd,
                                 uint64_t in_off, uint64_t size,
                                 struct gguf_error *err)
{
    GG_TRY(gg_outfile_flush(o, err));
    uint64_t done;
    GG_TRY(copy_inside(o, in_fd, in_off, size, &done, err));
    o->pos += done;
    while (done < size) {
        ssize_t n =
            pread(in_fd, o->buf,
                  (size_t)GG_MIN(size - done, (uint64_t)GG_OUTFILE_BUF),
                  (off_t)(in_off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return gg_error_set_errno(err, errno,
                                      "reading the input at byte %" PRIu64,
                                      in_off + done);
        if (n == 0)
            return gg_error_set(err, GGUF_E_TRUNCATED, in_off + done,
                                "the input ends at byte %" PRIu64 ", %" PRIu64
                                " bytes early",
                                in_off + done, size - done);
        GG_TRY(write_all(o, o->pos, o->buf, (uint64_t)n, err));
        o->pos += (uint64_t)n;
        done += (uint64_t)n;
    }
    return GGUF_OK;
}

bool gg_outfile_can_share(const struct gg_outfile *o, int in_fd)
{
#if HAVE_LINUX_FS_H && HAVE_SYS_IOCTL_H && defined(FICLONERANGE)
    struct stat s;
    if (fstat(in_fd, &s) != 0 || s.st_size == 0)
        return false;
    struct file_clone_range one = { .src_fd = in_fd };
    if (s.st_size > s.st_blksize) /* otherwise 0: up to the end */
        one.src_length = (uint64_t)s.st_blksize;
    return ioctl(o->fd, FICLONERANGE, &one) == 0 && ftruncate(o->fd, 0) == 0;
#else
    (void)o, (void)in_fd;
    return false;
#endif
}

bool gg_outfile_clone(struct gg_outfile *o, int in_fd, uint64_t size)
{
#if HAVE_LINUX_FS_H && HAVE_SYS_IOCTL_H && defined(FICLONE)
    if (ioctl(o->fd, FICLONE, in_fd) == 0) {
        o->pos = size;
        return true;
    }
#else
    (void)o, (void)in_fd, (void)size;
#endif
    return false;
}

enum gguf_status gg_outfile_write_at(struct gg_outfile *o, uint64_t off,
                                     const void *data, uint64_t size,
                                     struct gguf_error *err)
{
    return write_all(o, off, data, size, err);
}

enum gguf_status gg_outfile_read_at(const struct gg_outfile *o, uint64_t off,
                                    void *data, uint64_t size,
                                    struct gguf_error *err)
{
    char *p = data;
    while (size) {
        ssize_t n =
            pread(o->fd, p, (size_t)GG_MIN(size, MAX_TRANSFER), (off_t)off);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return gg_error_set_errno(err, errno, "reading back byte %" PRIu64,
                                      off);
        if (n == 0)
            return gg_error_set(err, GGUF_E_TRUNCATED, off,
                                "%" PRIu64 " bytes have not been written yet",
                                size);
        p += n;
        off += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return GGUF_OK;
}

enum gguf_status gg_outfile_skip(struct gg_outfile *o, uint64_t size,
                                 struct gguf_error *err)
{
    GG_TRY(gg_outfile_flush(o, err));
    o->pos += size;
    return GGUF_OK;
}

enum gguf_status gg_outfile_sync_some(const struct gg_outfile *o, uint64_t *at,
                                      uint64_t end, struct gguf_error *err)
{
#ifdef SYNC_FILE_RANGE_WRITE
    uint64_t off = *at, n = GG_MIN(end - off, (uint64_t)SYNC_PIECE);
    if (!(o->flags & GG_OUTFILE_NO_SYNC)) {
        *at += n;
        /* start writing the next ones while waiting for this one */
        int bad = sync_file_range(o->fd, (off_t)off, SYNC_AHEAD,
                                  SYNC_FILE_RANGE_WRITE) != 0 ||
                  sync_file_range(o->fd, (off_t)off, (off_t)n,
                                  SYNC_FILE_RANGE_WAIT_BEFORE |
                                      SYNC_FILE_RANGE_WRITE |
                                      SYNC_FILE_RANGE_WAIT_AFTER) != 0;
        /* fsync() does not report a failure that this call has reported */
        if (bad && (errno == EIO || errno == ENOSPC || errno == EDQUOT))
            return gg_error_set_errno(err, errno, "fsync");
        if (!bad)
            return GGUF_OK;
    }
#else
    (void)o;
    (void)err;
#endif
    *at = end;
    return GGUF_OK;
}
