/* SPDX-License-Identifier: MIT */
/* os_win.c - errors, paths and handles of Windows */
#include "config.h"
#include "base/os/os.h"
#include "base/os/os_win.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

static int errno_of(DWORD error)
{
    static const struct {
        DWORD error;
        int e;
    } list[] = {
        { ERROR_FILE_NOT_FOUND, ENOENT },
        { ERROR_PATH_NOT_FOUND, ENOENT },
        { ERROR_BAD_PATHNAME, ENOENT },
        { ERROR_BAD_NETPATH, ENOENT },
        { ERROR_BAD_NET_NAME, ENOENT },
        { ERROR_INVALID_DRIVE, ENOENT },
        { ERROR_MOD_NOT_FOUND, ENOENT },
        { ERROR_PROC_NOT_FOUND, ENOENT },
        { ERROR_NO_MORE_FILES, ENOENT },
        { ERROR_ACCESS_DENIED, EACCES },
        { ERROR_NETWORK_ACCESS_DENIED, EACCES },
        { ERROR_PRIVILEGE_NOT_HELD, EPERM },
        { ERROR_WRITE_PROTECT, EROFS },
        { ERROR_SHARING_VIOLATION, EBUSY },
        { ERROR_USER_MAPPED_FILE, EBUSY },
        { ERROR_BUSY, EBUSY },
        { ERROR_LOCK_VIOLATION, EAGAIN },
        { ERROR_FILE_EXISTS, EEXIST },
        { ERROR_ALREADY_EXISTS, EEXIST },
        { ERROR_DIR_NOT_EMPTY, ENOTEMPTY },
        { ERROR_DIRECTORY, ENOTDIR },
        { ERROR_NOT_SAME_DEVICE, EXDEV },
        { ERROR_TOO_MANY_LINKS, EMLINK },
        { ERROR_CANT_RESOLVE_FILENAME, ELOOP },
        { ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG },
        { ERROR_DISK_FULL, ENOSPC },
        { ERROR_HANDLE_DISK_FULL, ENOSPC },
        { 1295, ENOSPC }, /* ERROR_DISK_QUOTA_EXCEEDED */
        { ERROR_FILE_TOO_LARGE, EFBIG },
        { ERROR_NOT_ENOUGH_MEMORY, ENOMEM },
        { ERROR_OUTOFMEMORY, ENOMEM },
        { ERROR_COMMITMENT_LIMIT, ENOMEM },
        { ERROR_NO_SYSTEM_RESOURCES, ENOMEM },
        { ERROR_WORKING_SET_QUOTA, ENOMEM },
        { ERROR_NOT_ENOUGH_QUOTA, ENOMEM },
        { ERROR_TOO_MANY_OPEN_FILES, EMFILE },
        { ERROR_INVALID_HANDLE, EBADF },
        { ERROR_BROKEN_PIPE, EPIPE },
        { ERROR_NO_DATA, EPIPE },
        { ERROR_PIPE_NOT_CONNECTED, EPIPE },
        { ERROR_NOT_SUPPORTED, ENOSYS },
        { ERROR_INVALID_FUNCTION, ENOSYS },
        { ERROR_CALL_NOT_IMPLEMENTED, ENOSYS },
        { ERROR_INVALID_PARAMETER, EINVAL },
        { ERROR_INVALID_NAME, EINVAL },
        { ERROR_NEGATIVE_SEEK, EINVAL },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].error == error)
            return list[i].e;
    return EIO;
}

int gg_os_win_fail(DWORD error)
{
    errno = errno_of(error);
    return -1;
}

int gg_os_win_fail_last(void)
{
    return gg_os_win_fail(GetLastError());
}

/* ---- texts ---- */

wchar_t *gg_os_win_wide(const char *text)
{
    const int n =
        MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    if (n <= 0) {
        errno = EINVAL;
        return NULL;
    }
    wchar_t *w = calloc((size_t)n, sizeof *w);
    if (w)
        (void)MultiByteToWideChar(CP_UTF8, 0, text, -1, w, n);
    return w;
}

char *gg_os_win_utf8(const wchar_t *text)
{
    const int n =
        WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    if (n <= 0) {
        errno = EINVAL;
        return NULL;
    }
    char *s = calloc((size_t)n, 1);
    if (s)
        (void)WideCharToMultiByte(CP_UTF8, 0, text, -1, s, n, NULL, NULL);
    return s;
}

/* ---- paths ---- */

static const wchar_t prefix[] = L"\\\\?\\", share_prefix[] = L"\\\\?\\UNC\\";

/* Make a path absolute, with its prefix. Without one, Windows 8 refuses paths
 * of 260 characters, and folders of 248. */
static wchar_t *lengthen_path(const wchar_t *path)
{
    const DWORD n = GetFullPathNameW(path, 0, NULL, NULL);
    const size_t room = sizeof share_prefix / sizeof *share_prefix;
    wchar_t *out = n ? calloc(n + room, sizeof *out) : NULL;
    if (!out)
        return NULL;
    wchar_t *full = out + room;
    if (!GetFullPathNameW(path, n, full, NULL)) {
        free(out);
        return NULL;
    }
    const bool share = full[0] == L'\\' && full[1] == L'\\';
    const wchar_t *before = share ? share_prefix : prefix;
    memcpy(out, before, wcslen(before) * sizeof *out);
    if (share)
        full += 2;
    memmove(out + wcslen(before), full, (wcslen(full) + 1) * sizeof *out);
    return out;
}

/* Convert a path, and lengthen it if it has at least `from' characters. */
static wchar_t *convert_path(const char *path, size_t from)
{
    wchar_t *w = gg_os_win_wide(path);
    if (!w || wcslen(w) < from || !wcsncmp(w, prefix, wcslen(prefix)))
        return w;
    wchar_t *out = lengthen_path(w);
    free(w);
    if (!out)
        errno = ENOMEM;
    return out;
}

wchar_t *gg_os_win_path(const char *path)
{
    enum { SHORT = 240 }; /* leaves room for a name of 8 + 1 + 3 characters */
    return convert_path(path, SHORT);
}

wchar_t *gg_os_win_full_path(const char *path)
{
    return convert_path(path, 0);
}

char *gg_os_win_from_path(const wchar_t *path)
{
    const size_t n = wcslen(share_prefix);
    const bool share = !wcsncmp(path, share_prefix, n);
    if (share)
        path += n - 2; /* leaves a slash, and room for another one */
    else if (!wcsncmp(path, prefix, wcslen(prefix)))
        path += wcslen(prefix);
    char *s = gg_os_win_utf8(path);
    for (char *p = s; p && *p; p++)
        if (*p == '\\')
            *p = '/';
    if (s && share)
        s[0] = '/';
    return s;
}

int gg_os_win_random_name(char *name, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    if (gg_os_random(name, n) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        name[i] = letters[(unsigned char)name[i] % (sizeof letters - 1)];
    return 0;
}

/* ---- handles ---- */

HANDLE gg_os_win_open(const char *path, DWORD access, DWORD create,
                      DWORD flags)
{
    wchar_t *w = gg_os_win_path(path);
    if (!w)
        return INVALID_HANDLE_VALUE;
    HANDLE h = CreateFileW(
        w, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
        NULL, create, flags, NULL);
    if (h == INVALID_HANDLE_VALUE)
        (void)gg_os_win_fail_last();
    free(w);
    return h;
}

int gg_os_win_descriptor(HANDLE h, int flags)
{
    const int fd =
        _open_osfhandle((intptr_t)h, flags | _O_BINARY | _O_NOINHERIT);
    if (fd < 0) {
        CloseHandle(h);
        errno = EMFILE;
    }
    return fd;
}

HANDLE gg_os_win_handle(int fd)
{
    const intptr_t h = fd < 0 ? -1 : _get_osfhandle(fd);
    if (h == -1 || h == -2) { /* -2: a standard stream that leads nowhere */
        errno = EBADF;
        return INVALID_HANDLE_VALUE;
    }
    return (HANDLE)h;
}

int gg_os_win_set_information(HANDLE h, int class, const void *data,
                              size_t size)
{
    return SetFileInformationByHandle(h, (FILE_INFO_BY_HANDLE_CLASS) class,
                                      (void *)(uintptr_t)data, (DWORD)size)
               ? 0
               : gg_os_win_fail_last();
}

int gg_os_win_write(HANDLE h, const void *data, uint64_t size, OVERLAPPED *at,
                    uint64_t *done)
{
    enum { MAX_TRANSFER = 1 << 30 };
    const char *p = data;
    const uint64_t off = at ? (uint64_t)at->OffsetHigh << 32 | at->Offset : 0;
    for (*done = 0; *done < size;) {
        const uint64_t left = size - *done;
        DWORD n = 0;
        if (at) {
            at->Offset = (DWORD)(off + *done);
            at->OffsetHigh = (DWORD)((off + *done) >> 32);
        }
        if (!WriteFile(h, p + *done,
                       (DWORD)(left < MAX_TRANSFER ? left : MAX_TRANSFER), &n,
                       at))
            return gg_os_win_fail_last();
        if (n == 0)
            return gg_os_win_fail(ERROR_DISK_FULL);
        *done += n;
    }
    return 0;
}
