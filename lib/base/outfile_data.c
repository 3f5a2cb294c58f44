/* SPDX-License-Identifier: MIT */
/* outfile_data.c - write, copy and read the bytes of an outfile */
#include "config.h"
#include "base/outfile_int.h"
#include "base/os/os.h"

#include <errno.h>
#include <string.h>

enum { PAGE = 4096, SYNC_PIECE = 4 << 20, SYNC_AHEAD = 64 << 20 };

static enum gguf_status write_all(const struct gg_outfile *o, uint64_t off,
                                  const void *data, uint64_t size,
                                  struct gguf_error *err)
{
    uint64_t done;
    if (gg_os_write_at(o->fd, data, size, off, &done) != 0)
        return gg_error_set_errno(err, errno,
                                  "writing %" PRIu64 " bytes at byte %" PRIu64,
                                  size - done, off + done);
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
    struct gg_os_stat s;
    uint64_t n_free;
    /* a resumed file has space already */
    uint64_t has = gg_os_stat_fd(o->fd, &s) == 0 ? s.disk_size : 0;
    if (size > has && gg_os_free_space_fd(o->fd, &n_free) == 0 &&
        size - has >= n_free)
        return gg_error_set(err, GGUF_E_NOSPACE, GGUF_NO_OFFSET,
                            "needs %" PRIu64
                            " bytes, the file system has %" PRIu64 " free",
                            size - has, n_free);
    if (allocate && size > 0 && gg_os_reserve_space(o->fd, size) != 0 &&
        (gg_os_error_is_full(errno) || errno == EFBIG))
        return gg_error_set_errno(err, errno, "no room for %" PRIu64 " bytes",
                                  size);
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
    if ((in_off - o->pos) % PAGE || o->no_cfr)
        return GGUF_OK;
    if (gg_os_copy_range(in_fd, in_off, o->fd, o->pos, size, done) != 0)
        return gg_error_set_errno(err, errno, "copying to byte %" PRIu64,
                                  o->pos + *done);
    o->no_cfr = *done < size;
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
        const uint64_t n = GG_MIN(size - done, (uint64_t)GG_OUTFILE_BUF);
        uint64_t got;
        if (gg_os_read_at(in_fd, o->buf, n, in_off + done, &got) != 0)
            return gg_error_set_errno(err, errno,
                                      "reading the input at byte %" PRIu64,
                                      in_off + done + got);
        GG_TRY(write_all(o, o->pos, o->buf, got, err));
        o->pos += got;
        done += got;
        if (got < n)
            return gg_error_set(err, GGUF_E_TRUNCATED, in_off + done,
                                "the input ends at byte %" PRIu64 ", %" PRIu64
                                " bytes early",
                                in_off + done, size - done);
    }
    return GGUF_OK;
}

bool gg_outfile_can_share(const struct gg_outfile *o, int in_fd)
{
    return gg_os_can_share(o->fd, in_fd);
}

bool gg_outfile_clone(struct gg_outfile *o, int in_fd, uint64_t size)
{
    const bool good = gg_os_clone(o->fd, in_fd) == 0;
    if (good)
        o->pos = size;
    return good;
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
    uint64_t done;
    if (gg_os_read_at(o->fd, data, size, off, &done) != 0)
        return gg_error_set_errno(err, errno, "reading back byte %" PRIu64,
                                  off + done);
    if (done < size)
        return gg_error_set(err, GGUF_E_TRUNCATED, off + done,
                            "%" PRIu64 " bytes have not been written yet",
                            size - done);
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
    const uint64_t off = *at, n = GG_MIN(end - off, (uint64_t)SYNC_PIECE);
    if (!(o->flags & GG_OUTFILE_NO_SYNC)) {
        *at += n;
        /* the next ones are written while this one is waited for */
        if (gg_os_sync_range(o->fd, off, n, SYNC_AHEAD) == 0)
            return GGUF_OK;
        /* fsync() does not report a failure that this call has reported */
        if (gg_os_error_is_full(errno) || errno == EIO)
            return gg_error_set_errno(err, errno, "fsync");
    }
    *at = end;
    return GGUF_OK;
}
