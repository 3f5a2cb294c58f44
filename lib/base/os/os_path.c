/* SPDX-License-Identifier: MIT */
/* os_path.c - folder and name of a path */
#include "config.h"
#include "base/os/os_path.h"

bool gg_os_path_separates_by(enum gg_os_path_rule rule, char c)
{
    return c == '/' || (c == '\\' && rule == GG_OS_PATH_WINDOWS);
}

/* Bytes of the drive that a path begins with. */
static size_t drive_size(enum gg_os_path_rule rule, const char *path, size_t n)
{
    const char letter = n > 1 ? (char)(path[0] | 0x20) : 0;
    return rule == GG_OS_PATH_WINDOWS && letter >= 'a' && letter <= 'z' &&
                   path[1] == ':'
               ? 2
               : 0;
}

size_t gg_os_path_folder_size_by(enum gg_os_path_rule rule, const char *path,
                                 size_t n)
{
    const size_t least = drive_size(rule, path, n);
    while (n > least && !gg_os_path_separates_by(rule, path[n - 1]))
        n--;
    return n;
}

size_t gg_os_path_trim_by(enum gg_os_path_rule rule, const char *folder,
                          size_t n)
{
    const size_t least = drive_size(rule, folder, n) + 1;
    while (n > least && gg_os_path_separates_by(rule, folder[n - 1]))
        n--;
    return n;
}
