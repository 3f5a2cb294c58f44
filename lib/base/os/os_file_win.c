/* SPDX-License-Identifier: MIT */
/* os_file_win.c - files, their facts and bytes, and locks, on Windows */
#include "config.h"
#include "base/os/os.h"
#include "base/os/os_win.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

/* ---- facts ---- */

/* Convert a FILETIME: units of 100 ns since 1601. */
static struct timespec time_of(FILETIME t)
{
    const uint64_t units = (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
    const uint64_t unix_begin = UINT64_C(116444736000000000);
    const uint64_t since = units > unix_begin ? units - unix_begin : 0;
    return (struct timespec){ .tv_sec = (time_t)(since / 10000000),
                              .tv_nsec = (long)(since % 10000000 * 100) };
}

/* Is it a symbolic link or a junction? Other reparse points are files that the
 * file system keeps elsewhere or compressed. */
static bool is_link(HANDLE h, DWORD attributes)
{
    FILE_ATTRIBUTE_TAG_INFO tag;
    return attributes & FILE_ATTRIBUTE_REPARSE_POINT &&
           GetFileInformationByHandleEx(h, FileAttributeTagInfo, &tag,
                                        sizeof tag) &&
           (tag.ReparseTag == IO_REPARSE_TAG_SYMLINK ||
            tag.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT);
}

static int stat_handle(HANDLE h, struct gg_os_stat *s)
{
    BY_HANDLE_FILE_INFORMATION x;
    FILE_STANDARD_INFO more;
    const DWORD type = GetFileType(h);
    *s = (struct gg_os_stat){ .kind = type == FILE_TYPE_CHAR ? GG_OS_CHARACTERS
                                      : type == FILE_TYPE_PIPE ? GG_OS_PIPE
                                                               : GG_OS_OTHER };
    if (type != FILE_TYPE_DISK)
        return 0;
    if (!GetFileInformationByHandle(h, &x))
        return gg_os_win_fail_last();
    s->kind = is_link(h, x.dwFileAttributes)                  ? GG_OS_LINK
              : x.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? GG_OS_FOLDER
                                                              : GG_OS_FILE;
    s->dev = x.dwVolumeSerialNumber;
    s->ino = (uint64_t)x.nFileIndexHigh << 32 | x.nFileIndexLow;
    s->size = (uint64_t)x.nFileSizeHigh << 32 | x.nFileSizeLow;
    s->disk_size = s->size;
    if (GetFileInformationByHandleEx(h, FileStandardInfo, &more, sizeof more))
        s->disk_size = (uint64_t)more.AllocationSize.QuadPart;
    s->n_links = x.nNumberOfLinks;
    s->mtime = time_of(x.ftLastWriteTime);
    return 0;
}

static int stat_path(const char *path, DWORD flags, struct gg_os_stat *s)
{
    HANDLE h = gg_os_win_open(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS | flags);
    if (h == INVALID_HANDLE_VALUE)
        return -1;
    const int rc = stat_handle(h, s), e = errno;
    CloseHandle(h);
    errno = e;
    return rc;
}

int gg_os_stat(const char *path, struct gg_os_stat *s)
{
    return stat_path(path, 0, s);
}

int gg_os_stat_link(const char *path, struct gg_os_stat *s)
{
    return stat_path(path, FILE_FLAG_OPEN_REPARSE_POINT, s);
}

int gg_os_stat_fd(int fd, struct gg_os_stat *s)
{
    HANDLE h = gg_os_win_handle(fd);
    return h == INVALID_HANDLE_VALUE ? -1 : stat_handle(h, s);
}

/* ---- opening ---- */

/* Refuse a handle that leads to a symbolic link. */
static HANDLE refuse_link(HANDLE h)
{
    struct gg_os_stat s;
    if (h == INVALID_HANDLE_VALUE || stat_handle(h, &s) != 0 ||
        s.kind != GG_OS_LINK)
        return h;
    CloseHandle(h);
    errno = ELOOP;
    return INVALID_HANDLE_VALUE;
}

int gg_os_open(const char *path, enum gg_os_open how)
{
    static const struct {
        DWORD access, create, flags;
    } ways[] = {
        /* folders can be opened, too, as with POSIX */
        [GG_OS_READ] = { GENERIC_READ, OPEN_EXISTING,
                         FILE_FLAG_BACKUP_SEMANTICS },
        [GG_OS_WRITE] = { GENERIC_WRITE | FILE_READ_ATTRIBUTES, OPEN_EXISTING,
                          0 },
        [GG_OS_UPDATE] = { GENERIC_READ | GENERIC_WRITE, OPEN_EXISTING,
                           FILE_FLAG_OPEN_REPARSE_POINT },
        [GG_OS_NEW] = { GENERIC_READ | GENERIC_WRITE, CREATE_NEW, 0 },
    };
    HANDLE h = gg_os_win_open(path, ways[how].access, ways[how].create,
                              ways[how].flags);
    if (how == GG_OS_UPDATE)
        h = refuse_link(h);
    if (h != INVALID_HANDLE_VALUE)
        return gg_os_win_descriptor(h, 0);
    struct gg_os_stat s;
    const int e = errno;
    const bool folder = e == EACCES && how != GG_OS_READ &&
                        gg_os_stat(path, &s) == 0 && s.kind == GG_OS_FOLDER;
    errno = folder ? EISDIR : e;
    return -1;
}

int gg_os_open_nameless(const char *folder)
{
    (void)folder;
    errno = ENOSYS;
    return -1;
}

int gg_os_duplicate(int fd)
{
    HANDLE to;
    HANDLE h = gg_os_win_handle(fd), me = GetCurrentProcess();
    if (h == INVALID_HANDLE_VALUE)
        return -1;
    if (!DuplicateHandle(me, h, me, &to, 0, FALSE, DUPLICATE_SAME_ACCESS))
        return gg_os_win_fail_last();
    return gg_os_win_descriptor(to, 0);
}

void gg_os_close(int fd)
{
    (void)_close(fd);
}

FILE *gg_os_stream_open(const char *path, const char *mode)
{
    const char *binary = *mode == 'r' ? "rb" : *mode == 'w' ? "wb" : "ab";
    HANDLE h =
        *mode == 'r' ? gg_os_win_open(path, GENERIC_READ, OPEN_EXISTING, 0)
        : *mode == 'w'
            ? gg_os_win_open(path, GENERIC_WRITE | FILE_READ_ATTRIBUTES,
                             CREATE_ALWAYS, 0)
            : gg_os_win_open(path, FILE_APPEND_DATA | FILE_READ_ATTRIBUTES,
                             OPEN_ALWAYS, 0);
    if (h == INVALID_HANDLE_VALUE)
        return NULL;
    const int fd = gg_os_win_descriptor(h, *mode == 'a' ? _O_APPEND : 0);
    FILE *f = fd < 0 ? NULL : _fdopen(fd, binary);
    if (fd >= 0 && !f)
        (void)_close(fd);
    return f;
}

/* ---- bytes ---- */

int gg_os_read_at(int fd, void *data, uint64_t size, uint64_t off,
                  uint64_t *done)
{
    enum { MAX_TRANSFER = 1 << 30 };
    char *p = data;
    HANDLE h = gg_os_win_handle(fd);
    *done = 0;
    if (h == INVALID_HANDLE_VALUE)
        return -1;
    while (*done < size) {
        const uint64_t at = off + *done, left = size - *done;
        OVERLAPPED o = { .Offset = (DWORD)at,
                         .OffsetHigh = (DWORD)(at >> 32) };
        DWORD n = 0;
        if (!ReadFile(h, p + *done,
                      (DWORD)(left < MAX_TRANSFER ? left : MAX_TRANSFER), &n,
                      &o) &&
            GetLastError() != ERROR_HANDLE_EOF)
            return gg_os_win_fail_last();
        if (n == 0)
            break;
        *done += n;
    }
    return 0;
}

int gg_os_write_at(int fd, const void *data, uint64_t size, uint64_t off,
                   uint64_t *done)
{
    OVERLAPPED o = { .Offset = (DWORD)off, .OffsetHigh = (DWORD)(off >> 32) };
    HANDLE h = gg_os_win_handle(fd);
    *done = 0;
    return h == INVALID_HANDLE_VALUE
               ? -1
               : gg_os_win_write(h, data, size, &o, done);
}

int gg_os_set_size(int fd, uint64_t size)
{
    const LONGLONG end = (LONGLONG)size;
    HANDLE h = gg_os_win_handle(fd);
    return h == INVALID_HANDLE_VALUE
               ? -1
               : gg_os_win_set_information(h, FileEndOfFileInfo, &end,
                                           sizeof end);
}

int gg_os_touch(int fd)
{
    FILETIME now;
    HANDLE h = gg_os_win_handle(fd);
    if (h == INVALID_HANDLE_VALUE)
        return -1;
    GetSystemTimePreciseAsFileTime(&now);
    return SetFileTime(h, NULL, NULL, &now) ? 0 : gg_os_win_fail_last();
}

int gg_os_copy_access(int fd, const struct gg_os_stat *own,
                      const struct gg_os_stat *like)
{
    (void)fd, (void)own, (void)like;
    return 0;
}

/* ---- locks ---- */

/* Other processes cannot read or write locked bytes. So each kind of lock is a
 * byte that no file has. */
enum lock_kind { LOCK_PROCESS, LOCK_FD };

static OVERLAPPED byte_of(enum lock_kind kind)
{
    return (OVERLAPPED){ .Offset = (DWORD)kind, .OffsetHigh = 0x7fffffff };
}

/* Returns the errno `taken' if another handle has the lock. */
static int lock_byte(int fd, enum lock_kind kind, int taken)
{
    OVERLAPPED at = byte_of(kind);
    HANDLE h = gg_os_win_handle(fd);
    if (h == INVALID_HANDLE_VALUE)
        return -1;
    if (LockFileEx(h, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0,
                   1, 0, &at))
        return 0;
    const DWORD error = GetLastError();
    if (error != ERROR_LOCK_VIOLATION && error != ERROR_IO_PENDING)
        return gg_os_win_fail(error);
    errno = taken;
    return -1;
}

int gg_os_lock_process(int fd)
{
    return lock_byte(fd, LOCK_PROCESS, EAGAIN);
}

int gg_os_lock_fd(int fd)
{
    return lock_byte(fd, LOCK_FD, EWOULDBLOCK);
}

void gg_os_unlock_fd(int fd)
{
    OVERLAPPED at = byte_of(LOCK_FD);
    HANDLE h = gg_os_win_handle(fd);
    if (h != INVALID_HANDLE_VALUE)
        (void)UnlockFileEx(h, 0, 1, 0, &at);
}
