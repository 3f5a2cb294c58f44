/* SPDX-License-Identifier: MIT */
/* os_win.h - errors, paths and handles of Windows, for base/os alone
 *
 * Functions that return int return 0, or -1 with the reason in errno.
 *
 * Threads: any. */
#ifndef GG_BASE_OS_OS_WIN_H
#define GG_BASE_OS_OS_WIN_H

#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0602 /* Windows 8 */
#endif
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

/* Set errno to the meaning of an error of Windows. Returns -1. */
int gg_os_win_fail(DWORD error);
/* Set errno to the meaning of GetLastError(). Returns -1. */
int gg_os_win_fail_last(void);

/* Convert UTF-8 to wide characters, and back. Free the result with free().
 * NULL: out of memory, or the text is invalid (EINVAL). */
wchar_t *gg_os_win_wide(const char *text);
char *gg_os_win_utf8(const wchar_t *text);
/* Convert a path to wide characters. A long one becomes absolute and gets the
 * prefix that lifts the limit of 260 characters. Free it with free(). NULL: as
 * above. */
wchar_t *gg_os_win_path(const char *path);
/* Convert a path to wide characters, absolute and with that prefix. */
wchar_t *gg_os_win_full_path(const char *path);
/* Convert a wide path to UTF-8 with '/' between names, without that prefix. */
char *gg_os_win_from_path(const wchar_t *path);

/* Write n random letters and digits to name, without a NUL. */
int gg_os_win_random_name(char *name, size_t n);

/* Open a file or folder so that others can read, write, rename and remove it.
 * The parameters are those of CreateFileW(). INVALID_HANDLE_VALUE: errno has
 * the reason. */
HANDLE gg_os_win_open(const char *path, DWORD access, DWORD create,
                      DWORD flags);
/* Make a descriptor in binary mode of a handle, which is closed after a
 * failure. Returns -1 then. flags is 0 or _O_APPEND. */
int gg_os_win_descriptor(HANDLE h, int flags);
/* Handle of a descriptor; INVALID_HANDLE_VALUE with EBADF: it is closed. */
HANDLE gg_os_win_handle(int fd);

/* Call SetFileInformationByHandle(). class is an enumerator of
 * FILE_INFO_BY_HANDLE_CLASS, data has size bytes. */
int gg_os_win_set_information(HANDLE h, int class, const void *data,
                              size_t size);

/* Write size bytes at the position of a handle. *done receives the bytes
 * written. */
int gg_os_win_write(HANDLE h, const void *data, uint64_t size, OVERLAPPED *at,
                    uint64_t *done);

#endif
