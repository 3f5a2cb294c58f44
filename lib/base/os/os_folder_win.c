/* SPDX-License-Identifier: MIT */
/* os_folder_win.c - names of files and folders on Windows */
#include "config.h"
#include "base/os/os.h"
#include "base/os/os_path.h"
#include "base/os/os_win.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Values of FILE_INFO_BY_HANDLE_CLASS, and their flags, of Windows 8 and 10. */
enum {
    RENAME = 3,
    DISPOSITION_EX = 21,
    RENAME_EX = 22,
    DELETE_NAME = 1 | 2,  /* delete; at once, as POSIX does */
    REPLACE_NAME = 1 | 2, /* replace a file; even one that is open */
};

/* ---- names ---- */

int gg_os_find(const char *path)
{
    wchar_t *w = gg_os_win_path(path);
    if (!w)
        return -1;
    const int rc = GetFileAttributesW(w) == INVALID_FILE_ATTRIBUTES
                       ? gg_os_win_fail_last()
                       : 0;
    free(w);
    return rc;
}

/* Rename the open file h to the full path `to'. how is RENAME or RENAME_EX. */
static bool rename_handle(HANDLE h, int how, const wchar_t *to)
{
    struct {
        DWORD flags;
        HANDLE root;
        DWORD name_size;
        wchar_t name[1];
    } * info;
    const size_t name_size = wcslen(to) * sizeof *to;
    const size_t size = sizeof *info + name_size;
    info = calloc(1, size);
    if (!info)
        return false;
    info->flags = how == RENAME_EX ? REPLACE_NAME : 0;
    info->name_size = (DWORD)name_size;
    memcpy(info->name, to, name_size);
    const bool good = gg_os_win_set_information(h, how, info, size) == 0;
    free(info);
    return good;
}

/* Rename in the way of POSIX, which replaces also a file that is open. Returns
 * false if the system or the file system does not know it, or after a
 * failure. */
static bool rename_open(const char *from, const char *to)
{
    wchar_t *full = gg_os_win_full_path(to);
    HANDLE h = gg_os_win_open(from, DELETE | SYNCHRONIZE, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS |
                                  FILE_FLAG_OPEN_REPARSE_POINT);
    const bool good =
        full && h != INVALID_HANDLE_VALUE && rename_handle(h, RENAME_EX, full);
    if (h != INVALID_HANDLE_VALUE)
        CloseHandle(h);
    free(full);
    return good;
}

/* Call MoveFileExW(). Both renames are atomic; ReplaceFileW() is not. */
static int move_file(const char *from, const char *to, DWORD flags)
{
    wchar_t *a = gg_os_win_path(from), *b = gg_os_win_path(to);
    const int rc = !a || !b                   ? -1
                   : MoveFileExW(a, b, flags) ? 0
                                              : gg_os_win_fail_last();
    free(a);
    free(b);
    return rc;
}

/* Make a random name beside path. Free it with free(). */
static char *name_beside(const char *path)
{
    char letters[8];
    const size_t size = strlen(path) + sizeof letters + sizeof "..gone";
    if (gg_os_win_random_name(letters, sizeof letters) != 0)
        return NULL;
    char *name = malloc(size);
    if (name)
        snprintf(name, size, "%s.%.8s.gone", path, letters);
    return name;
}

/* Replace a file that is open, where the system cannot: for a moment the file
 * that is replaced has another name, and `to' leads to none. */
static int replace_open(const char *from, const char *to)
{
    struct gg_os_stat s;
    if (gg_os_stat_link(to, &s) == 0 && s.kind == GG_OS_FOLDER) {
        errno = EISDIR;
        return -1;
    }
    char *old = name_beside(to);
    int rc = old ? move_file(to, old, 0) : -1;
    if (rc == 0) {
        rc = move_file(from, to, 0);
        const int e = errno;
        if (rc == 0)
            (void)gg_os_remove(old);
        else
            (void)move_file(old, to, 0);
        errno = e;
    }
    free(old);
    return rc;
}

int gg_os_rename(const char *from, const char *to)
{
    if (rename_open(from, to))
        return 0;
    const int rc = move_file(from, to, MOVEFILE_REPLACE_EXISTING);
    return rc != 0 && (errno == EACCES || errno == EBUSY)
               ? replace_open(from, to)
               : rc;
}

int gg_os_rename_new(const char *from, const char *to)
{
    return move_file(from, to, 0);
}

int gg_os_link(const char *from, const char *to)
{
    wchar_t *a = gg_os_win_path(from), *b = gg_os_win_path(to);
    const int rc = !a || !b                      ? -1
                   : CreateHardLinkW(b, a, NULL) ? 0
                                                 : gg_os_win_fail_last();
    free(a);
    free(b);
    return rc;
}

int gg_os_link_fd(int fd, const char *to)
{
    (void)fd, (void)to;
    errno = ENOSYS;
    return -1;
}

/* Remove the open file h, found as path, where the system keeps the name while
 * the file is open: it spends that time under another name. */
static int remove_later(HANDLE h, const char *path)
{
    FILE_DISPOSITION_INFO gone = { TRUE };
    char *name = name_beside(path);
    wchar_t *aside = name ? gg_os_win_full_path(name) : NULL;
    wchar_t *back = gg_os_win_full_path(path);
    const bool moved = aside && back && rename_handle(h, RENAME, aside);
    const int rc =
        gg_os_win_set_information(h, FileDispositionInfo, &gone, sizeof gone);
    const int e = errno;
    if (rc != 0 && moved)
        (void)rename_handle(h, RENAME, back);
    free(name);
    free(aside);
    free(back);
    errno = e;
    return rc;
}

int gg_os_remove(const char *path)
{
    DWORD flags = DELETE_NAME;
    HANDLE h = gg_os_win_open(path, DELETE | SYNCHRONIZE, OPEN_EXISTING,
                              FILE_FLAG_OPEN_REPARSE_POINT);
    if (h == INVALID_HANDLE_VALUE)
        return -1;
    int rc =
        gg_os_win_set_information(h, DISPOSITION_EX, &flags, sizeof flags);
    if (rc != 0)
        rc = remove_later(h, path);
    const int e = errno;
    CloseHandle(h);
    errno = e;
    return rc;
}

char *gg_os_real_path(const char *path)
{
    HANDLE h = gg_os_win_open(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS);
    if (h == INVALID_HANDLE_VALUE)
        return NULL;
    const DWORD n = GetFinalPathNameByHandleW(h, NULL, 0, 0);
    wchar_t *w = n ? calloc((size_t)n + 1, sizeof *w) : NULL;
    if (!w || !GetFinalPathNameByHandleW(h, w, n + 1, 0)) {
        /* some drives do not tell it, nor does Wine for long paths */
        free(w);
        w = gg_os_win_full_path(path);
    }
    char *real = w ? gg_os_win_from_path(w) : NULL;
    const int e = errno;
    CloseHandle(h);
    free(w);
    errno = e;
    return real;
}

/* ---- folders ---- */

int gg_os_make_folder(const char *path)
{
    wchar_t *w = gg_os_win_path(path);
    const int rc = !w                          ? -1
                   : CreateDirectoryW(w, NULL) ? 0
                                               : gg_os_win_fail_last();
    free(w);
    return rc;
}

int gg_os_remove_folder(const char *path)
{
    wchar_t *w = gg_os_win_path(path);
    const int rc = !w ? -1 : RemoveDirectoryW(w) ? 0 : gg_os_win_fail_last();
    free(w);
    return rc;
}

struct gg_os_folder {
    HANDLE find;
    WIN32_FIND_DATAW entry;
    bool has_entry;
    char name[4 * MAX_PATH]; /* UTF-8 of the last name */
    char *file;              /* path of the folder, '/', room for a name */
    size_t path_size;        /* bytes before the name */
};

/* Copy the path of a folder, with a slash after it. */
static bool take_path(struct gg_os_folder *d, const char *path)
{
    const size_t n = strlen(path);
    d->file = malloc(n + 2 + sizeof d->name);
    if (!d->file)
        return false;
    memcpy(d->file, path, n);
    d->path_size = n;
    if (n && !gg_os_path_separates(path[n - 1]))
        d->file[d->path_size++] = '/';
    return true;
}

/* Path of a file of the folder, valid until the next call. */
static const char *path_in(struct gg_os_folder *d, const char *name)
{
    snprintf(d->file + d->path_size, sizeof d->name, "%s", name);
    return d->file;
}

struct gg_os_folder *gg_os_folder_open(const char *path)
{
    struct gg_os_stat s;
    struct gg_os_folder *d;
    wchar_t *w = NULL;
    if (gg_os_stat(path, &s) != 0)
        return NULL;
    if (s.kind != GG_OS_FOLDER) {
        errno = ENOTDIR;
        return NULL;
    }
    d = calloc(1, sizeof *d);
    if (d && take_path(d, path))
        w = gg_os_win_path(path_in(d, "*"));
    if (w &&
        (d->find = FindFirstFileW(w, &d->entry)) != INVALID_HANDLE_VALUE) {
        d->has_entry = true;
        free(w);
        return d;
    }
    if (w)
        (void)gg_os_win_fail_last();
    const int e = errno;
    if (d)
        free(d->file);
    free(d);
    free(w);
    errno = e;
    return NULL;
}

const char *gg_os_folder_next(struct gg_os_folder *d)
{
    if (!d->has_entry && !FindNextFileW(d->find, &d->entry))
        return NULL;
    d->has_entry = false;
    return WideCharToMultiByte(CP_UTF8, 0, d->entry.cFileName, -1, d->name,
                               sizeof d->name, NULL, NULL) > 0
               ? d->name
               : NULL;
}

int gg_os_folder_stat(struct gg_os_folder *d, const char *name,
                      struct gg_os_stat *s)
{
    return gg_os_stat_link(path_in(d, name), s);
}

int gg_os_folder_remove(struct gg_os_folder *d, const char *name)
{
    return gg_os_remove(path_in(d, name));
}

void gg_os_folder_close(struct gg_os_folder *d)
{
    FindClose(d->find);
    free(d->file);
    free(d);
}
