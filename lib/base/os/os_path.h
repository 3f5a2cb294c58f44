/* SPDX-License-Identifier: MIT */
/* os_path.h - folder and name of a path
 *
 * A path is a folder, which may be empty, and a name. On Windows '\' separates
 * names as '/' does, and a drive, "C:", is a folder. The rule is an argument
 * of the functions, so that tests can test each on any system. Others use the
 * macros, which have the rule of this system.
 *
 * Threads: any. */
#ifndef GG_BASE_OS_OS_PATH_H
#define GG_BASE_OS_OS_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum gg_os_path_rule { GG_OS_PATH_POSIX, GG_OS_PATH_WINDOWS };

#ifdef _WIN32
#define GG_OS_PATH_HERE GG_OS_PATH_WINDOWS
#else
#define GG_OS_PATH_HERE GG_OS_PATH_POSIX
#endif

/* Does c separate the names of a path? */
bool gg_os_path_separates_by(enum gg_os_path_rule rule, char c);

/* Bytes of the folder of a path of n bytes, up to its name. The separator at
 * its end counts. 0: the path is a name. */
size_t gg_os_path_folder_size_by(enum gg_os_path_rule rule, const char *path,
                                 size_t n);

/* Bytes of a folder of n bytes without the separators at its end. Those of a
 * root stay: "/", "C:\". */
size_t gg_os_path_trim_by(enum gg_os_path_rule rule, const char *folder,
                          size_t n);

#define gg_os_path_separates(c) gg_os_path_separates_by(GG_OS_PATH_HERE, c)
#define gg_os_path_folder_size(path, n)                                       \
    gg_os_path_folder_size_by(GG_OS_PATH_HERE, path, n)

#define gg_os_path_trim(folder, n)                                            \
    gg_os_path_trim_by(GG_OS_PATH_HERE, folder, n)

/* Name at the end of a path: "" if the path ends with a separator. */
static inline const char *gg_os_path_name(const char *path)
{
    return path + gg_os_path_folder_size(path, strlen(path));
}

#endif
