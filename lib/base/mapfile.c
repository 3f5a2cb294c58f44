/* SPDX-License-Identifier: MIT */
/* mapfile.c - a regular file that is mapped for reading */
#include "config.h"
#include "base/mapfile.h"
#include "base/ckd.h"
#include "base/os/os.h"

#include <errno.h>
#include <string.h>

static enum gguf_status fail_kind(enum gg_os_kind kind, struct gguf_error *err)
{
    if (kind == GG_OS_FOLDER) {
        (void)gg_error_set(err, GGUF_E_IO, GGUF_NO_OFFSET,
                           "is a folder, not a file");
        if (err)
            err->sys_errno = EISDIR;
        return GGUF_E_IO;
    }
    const char *name = kind == GG_OS_PIPE         ? "a pipe"
                       : kind == GG_OS_CHARACTERS ? "a character device"
                       : kind == GG_OS_BLOCKS     ? "a block device"
                       : kind == GG_OS_SOCKET     ? "a socket"
                                                  : "something else";
    return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                        "is not a regular file but %s: it cannot be mapped",
                        name);
}

/* Check the part of size bytes from off of total bytes. Size 0 becomes the
 * rest. */
static enum gguf_status choose_range(uint64_t total, uint64_t off,
                                     uint64_t *size, struct gguf_error *err)
{
    if (off > total)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "offset %" PRIu64
                            " lies after the end of the file "
                            "of %" PRIu64 " bytes",
                            off, total);
    if (*size > total - off)
        return gg_error_set(err, GGUF_E_TRUNCATED, GGUF_NO_OFFSET,
                            "%" PRIu64 " bytes from offset %" PRIu64
                            " reach past the end of the file of %" PRIu64
                            " bytes",
                            *size, off, total);
    if (*size == 0)
        *size = total - off;
    return GGUF_OK;
}

/* Map fd, which is closed after a failure. */
static enum gguf_status map_fd(struct gg_mapfile *m, int fd, uint64_t off,
                               uint64_t size, struct gguf_error *err)
{
    enum gguf_status st;
    struct gg_os_stat s;
    *m = (struct gg_mapfile){ .data = (const uint8_t *)"", .fd = fd };
    if (gg_os_stat_fd(fd, &s) != 0) {
        st = gg_error_set_errno(err, errno, "fstat");
        goto fail;
    }
    if (s.kind != GG_OS_FILE) {
        st = fail_kind(s.kind, err);
        goto fail;
    }
    st = choose_range(s.size, off, &size, err);
    if (st != GGUF_OK)
        goto fail;
    m->dev = s.dev;
    m->ino = s.ino;
    m->file_size = s.size;
    m->mtime = s.mtime;
    m->off = off;
    m->size = size;
    if (size == 0)
        return GGUF_OK;

    uint64_t skip = off % gg_os_map_step();
    if (size > PTRDIFF_MAX - skip) {
        st = gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                          "%" PRIu64 " bytes do not fit the address space",
                          size);
        goto fail;
    }
    m->map_size = (size_t)(size + skip);
    void *p = gg_os_map(fd, off - skip, m->map_size, GG_OS_MAP_SHARED);
    if (!p) {
        st = gg_error_set_errno(err, errno, "mmap of %" PRIu64 " bytes", size);
        goto fail;
    }
    m->map = p;
    m->data = (const uint8_t *)p + skip;
    return GGUF_OK;
fail:
    gg_mapfile_close(m);
    return st;
}

enum gguf_status gg_mapfile_open(struct gg_mapfile *m, const char *path,
                                 uint64_t off, uint64_t size,
                                 struct gguf_error *err)
{
    *m = (struct gg_mapfile){ .fd = -1 };
    int fd = gg_os_open(path, GG_OS_READ);
    if (fd < 0)
        return gg_error_set_errno(err, errno, "cannot be opened");
    return map_fd(m, fd, off, size, err);
}

enum gguf_status gg_mapfile_open_fd(struct gg_mapfile *m, int fd, uint64_t off,
                                    uint64_t size, struct gguf_error *err)
{
    *m = (struct gg_mapfile){ .fd = -1 };
    int own = gg_os_duplicate(fd);
    if (own < 0)
        return gg_error_set_errno(err, errno, "descriptor %d", fd);
    return map_fd(m, own, off, size, err);
}

enum gguf_status gg_mapfile_open_memory(struct gg_mapfile *m, const void *data,
                                        uint64_t data_size, uint64_t off,
                                        uint64_t size, struct gguf_error *err)
{
    *m = (struct gg_mapfile){ .fd = -1 };
    GG_TRY(choose_range(data_size, off, &size, err));
    m->data = data ? (const uint8_t *)data + off : (const uint8_t *)"";
    m->size = size;
    m->off = off;
    return GGUF_OK;
}

enum gguf_status gg_mapfile_open_reader(struct gg_mapfile *m,
                                        gg_mapfile_read_fn *read, void *user,
                                        uint64_t total, uint64_t off,
                                        uint64_t size, struct gguf_error *err)
{
    *m = (struct gg_mapfile){ .fd = -1 };
    GG_TRY(choose_range(total, off, &size, err));
    if (size > PTRDIFF_MAX)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "%" PRIu64 " bytes do not fit the address space",
                            size);
    void *p = size ? gg_os_memory_reserve((size_t)size) : NULL;
    if (size && !p)
        return gg_error_set_errno(err, errno, "mmap of %" PRIu64 " bytes",
                                  size);
    *m = (struct gg_mapfile){ .data = p ? p : (const uint8_t *)"",
                              .size = size,
                              .fd = -1,
                              .off = off,
                              .map = p,
                              .map_size = (size_t)size,
                              .file_size = total,
                              .read = read,
                              .user = user };
    return GGUF_OK;
}

/* Make a range writable. Systems limit the number of ranges with different
 * protection to some ten thousands, and scattered rows would reach that. So the
 * ranges are aligned to a few thousand parts of the file. */
static int make_room(const struct gg_mapfile *m, uint64_t from, uint64_t to)
{
    enum { PARTS = 4096 };
    const uint64_t page = gg_os_page_size();
    const uint64_t part = (m->map_size / PARTS / page + 1) * page;
    const uint64_t first = from - from % part;
    const uint64_t end = GG_MIN((to + part - 1) / part * part, m->map_size);
    uint8_t *at = m->map; /* begin of a page */
    if (!gg_os_memory_commit(at + first, (size_t)(end - first)))
        return 0;
    from -= from % page; /* fewer pages, where memory is strictly accounted */
    return gg_os_memory_commit(at + from, (size_t)(to - from));
}

enum gguf_status gg_mapfile_fetch(const struct gg_mapfile *m, uint64_t from,
                                  uint64_t to, struct gguf_error *err)
{
    if (from >= to)
        return GGUF_OK;
    uint8_t *at = m->map;
    if (make_room(m, from, to))
        return gg_error_set_errno(err, errno, "memory for %" PRIu64 " bytes",
                                  to - from);
    return m->read(m->user, m->off + from, at + from, (size_t)(to - from),
                   err);
}

void gg_mapfile_drop(const struct gg_mapfile *m, uint64_t from, uint64_t to)
{
    const uint64_t page = gg_os_page_size();
    const uint64_t first = (from + page - 1) / page * page;
    const uint64_t end = to / page * page;
    if (first < end)
        gg_os_memory_drop((uint8_t *)m->map + first, (size_t)(end - first));
}

enum gguf_status gg_mapfile_overlay(struct gg_mapfile *m, const void *data,
                                    uint64_t size, struct gguf_error *err)
{
    size_t skip = (size_t)(m->data - (const uint8_t *)m->map);
    void *p = gg_os_map(m->fd, m->off - skip, m->map_size, GG_OS_MAP_COPY);
    if (!p)
        return gg_error_set_errno(err, errno, "mmap of %" PRIu64 " bytes",
                                  m->size);
    memcpy((uint8_t *)p + skip, data, (size_t)size);
    gg_os_map_protect(p, m->map_size);
    gg_os_unmap(m->map, m->map_size);
    m->map = p;
    m->data = (const uint8_t *)p + skip;
    return GGUF_OK;
}

/* Write to each page of size bytes at map, which makes copies of them. */
static void copy_pages(void *map, size_t size)
{
    const size_t page = gg_os_page_size();
    for (size_t i = 0; i < size; i += page) {
        volatile uint8_t *first = (uint8_t *)map + i;
        *first = *first;
    }
}

enum gguf_status gg_mapfile_copy_head(struct gg_mapfile *m, uint64_t size,
                                      struct gguf_error *err)
{
    size_t skip = (size_t)(m->data - (const uint8_t *)m->map);
    size_t n = skip + (size_t)GG_MIN(size, m->size);
    if (!m->map || !n)
        return GGUF_OK;
    if (gg_os_map_writable(m->map, n, m->fd, m->off - skip) != 0)
        return gg_error_set_errno(err, errno, "mmap of %zu bytes", n);
    copy_pages(m->map, n);
    gg_os_map_protect(m->map, n);
    return GGUF_OK;
}

void gg_mapfile_close(struct gg_mapfile *m)
{
    if (!m->data && !m->map && m->fd == 0)
        return; /* never opened */
    if (m->map)
        gg_os_unmap(m->map, m->map_size);
    if (m->fd >= 0)
        gg_os_close(m->fd);
    if (m->close)
        m->close(m->user);
    *m = (struct gg_mapfile){ .fd = -1 };
}

void gg_mapfile_advise(const struct gg_mapfile *m, uint64_t off, uint64_t size,
                       enum gg_mapfile_advice advice)
{
    static const enum gg_os_advice how[] = { GG_OS_SEQUENTIAL, GG_OS_WILLNEED,
                                             GG_OS_DONTNEED };
    if (m->map && !m->read && off <= m->size)
        gg_os_map_advise(m->data + off, (size_t)GG_MIN(size, m->size - off),
                         how[advice]);
}

enum gguf_status gg_mapfile_read(const struct gg_mapfile *m, uint64_t off,
                                 size_t size, void *dst,
                                 struct gguf_error *err)
{
    if (m->read)
        return size ? m->read(m->user, m->off + off, dst, size, err) : GGUF_OK;
    if (m->fd < 0) {
        memcpy(dst, m->data + off, size);
        return GGUF_OK;
    }
    uint64_t done;
    if (gg_os_read_at(m->fd, dst, size, m->off + off, &done) != 0)
        return gg_error_set_errno(err, errno, "cannot be read");
    if (done < size)
        return gg_error_set(err, GGUF_E_TRUNCATED, off + done,
                            "has changed since it was opened: it ends at "
                            "byte %" PRIu64,
                            off + done);
    return GGUF_OK;
}

enum gguf_status gg_mapfile_check_unchanged(const struct gg_mapfile *m, int fd,
                                            struct gguf_error *err)
{
    struct gg_os_stat s;
    if (m->fd < 0)
        return GGUF_OK;
    if (gg_os_stat_fd(fd, &s) != 0)
        return gg_error_set_errno(err, errno, "fstat");
    if (s.dev != m->dev || s.ino != m->ino)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "is another file than the one that was opened");
    if (s.size != m->file_size)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "has changed since it was opened: it had %" PRIu64
                            " bytes, and has %" PRIu64,
                            m->file_size, s.size);
    if (s.mtime.tv_sec != m->mtime.tv_sec ||
        s.mtime.tv_nsec != m->mtime.tv_nsec)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "has changed since it was opened");
    return GGUF_OK;
}

bool gg_mapfile_is_path(const struct gg_mapfile *m, const char *path)
{
    struct gg_os_stat s;
    return m->fd >= 0 && gg_os_stat(path, &s) == 0 && s.dev == m->dev &&
           s.ino == m->ino;
}
