/* SPDX-License-Identifier: MIT */
/* os_disk_win.c - space and waiting for the disk, on Windows */
#include "config.h"
#include "base/os/os.h"
#include "base/os/os_win.h"

#include <errno.h>
#include <stdlib.h>

static int fail_unsupported(void)
{
    errno = ENOSYS;
    return -1;
}

/* Bytes free on the volume of a folder. */
static int free_space(const wchar_t *folder, uint64_t *n)
{
    ULARGE_INTEGER size;
    if (!GetDiskFreeSpaceExW(folder, &size, NULL, NULL))
        return gg_os_win_fail_last();
    *n = size.QuadPart;
    return 0;
}

/* Bytes free on the volume of the file h. GetDiskFreeSpaceExW() wants the path
 * of a folder. */
static int handle_free_space(HANDLE h, uint64_t *n)
{
    const DWORD room = GetFinalPathNameByHandleW(h, NULL, 0, 0);
    wchar_t *w = room ? calloc((size_t)room + 1, sizeof *w) : NULL;
    if (!w || !GetFinalPathNameByHandleW(h, w, room + 1, 0)) {
        free(w);
        return fail_unsupported();
    }
    int rc = free_space(w, n);
    if (rc != 0) { /* a file: its folder */
        wchar_t *slash = wcsrchr(w, L'\\');
        if (slash) {
            slash[1] = L'\0';
            rc = free_space(w, n);
        }
    }
    free(w);
    return rc;
}

int gg_os_free_space_fd(int fd, uint64_t *n)
{
    HANDLE h = gg_os_win_handle(fd);
    return h == INVALID_HANDLE_VALUE ? -1 : handle_free_space(h, n);
}

int gg_os_free_space(const char *path, uint64_t *n)
{
    HANDLE h = gg_os_win_open(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS);
    if (h == INVALID_HANDLE_VALUE)
        return -1;
    const int rc = handle_free_space(h, n), e = errno;
    CloseHandle(h);
    errno = e;
    return rc;
}

int gg_os_reserve_space(int fd, uint64_t size)
{
    const LONGLONG allocated = (LONGLONG)size;
    HANDLE h = gg_os_win_handle(fd);
    return h == INVALID_HANDLE_VALUE
               ? -1
               : gg_os_win_set_information(h, FileAllocationInfo, &allocated,
                                           sizeof allocated);
}

int gg_os_copy_range(int in_fd, uint64_t in_off, int fd, uint64_t off,
                     uint64_t size, uint64_t *done)
{
    (void)in_fd, (void)in_off, (void)fd, (void)off, (void)size;
    *done = 0;
    return 0;
}

bool gg_os_can_share(int fd, int in_fd)
{
    (void)fd, (void)in_fd;
    return false;
}

int gg_os_clone(int fd, int in_fd)
{
    (void)fd, (void)in_fd;
    return fail_unsupported();
}

int gg_os_sync(int fd)
{
    HANDLE h = gg_os_win_handle(fd);
    if (h == INVALID_HANDLE_VALUE)
        return -1;
    return FlushFileBuffers(h) ? 0 : gg_os_win_fail_last();
}

int gg_os_sync_range(int fd, uint64_t off, uint64_t size, uint64_t ahead)
{
    (void)fd, (void)off, (void)size, (void)ahead;
    return fail_unsupported();
}

int gg_os_sync_folder(const char *folder)
{
    (void)folder;
    return 0;
}
