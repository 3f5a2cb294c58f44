/* SPDX-License-Identifier: MIT */
/* scratch.h - a test's own folder, and its processor time */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include "base/os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sanitizers need more time and memory. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SCRATCH_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SCRATCH_SANITIZED 1
#endif
#ifndef SCRATCH_SANITIZED
#define SCRATCH_SANITIZED 0
#endif

/* Path DIR/NAME, valid for eight calls. A path of more than 255 bytes ends the
 * test. Single thread. */
static inline char *scratch_path(const char *dir, const char *name)
{
    static char path[8][256];
    static unsigned turn;
    char *p = path[turn++ % 8];
    const int n = snprintf(p, sizeof path[0], "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof path[0])
        exit(99);
    return p;
}

/* Create a folder. path ends in "XXXXXX", which becomes a free name. Returns
 * path; NULL: failed. */
static inline char *scratch_make(char *path)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz012345";
    char *x = strlen(path) < 6 ? NULL : path + strlen(path) - 6;
    for (int tries = 0; x && tries < 100; tries++) {
        unsigned char b[6];
        if (gg_os_random(b, sizeof b) != 0)
            return NULL;
        for (int i = 0; i < 6; i++)
            x[i] = digits[b[i] % (sizeof digits - 1)];
        if (gg_os_make_folder(path) == 0)
            return path;
    }
    return NULL;
}

/* Remove the content of the folder: all names, or only those that do not begin
 * with a dot. A folder that is not there is empty. Ends the test after a
 * failure. */
static inline void scratch_empty(const char *dir, bool all)
{
    char path[600];
    struct gg_os_stat s;
    struct gg_os_folder *d = gg_os_folder_open(dir);
    if (!d && gg_os_find(dir) != 0)
        return;
    if (!d)
        exit(99);
    for (const char *e; (e = gg_os_folder_next(d)) != NULL;) {
        if (!strcmp(e, ".") || !strcmp(e, "..") || (*e == '.' && !all))
            continue;
        const int n = snprintf(path, sizeof path, "%s/%s", dir, e);
        if (n < 0 || (size_t)n >= sizeof path ||
            gg_os_stat_link(path, &s) != 0)
            exit(99);
        if (s.kind == GG_OS_FOLDER)
            scratch_empty(path, true);
        if ((s.kind == GG_OS_FOLDER ? gg_os_remove_folder(path)
                                    : gg_os_remove(path)) != 0)
            exit(99);
    }
    gg_os_folder_close(d);
}

/* Remove the content of the folder, except names that begin with a dot. Ends
 * the test after a failure. */
static inline void scratch_clean(const char *dir)
{
    scratch_empty(dir, false);
}

/* Remove the folder with its content. Returns whether it is gone. Ends the test
 * after a failure inside. */
static inline bool scratch_remove(const char *dir)
{
    scratch_empty(dir, true);
    return gg_os_remove_folder(dir) == 0;
}

/* Processor time of this thread in seconds. Windows: time, since it counts
 * processor time in steps of 16 ms. */
static inline double scratch_cpu_time(void)
{
#if defined(_WIN32)
    return 1e-9 * (double)gg_os_clock_ns();
#else
    return 1e-9 * (double)gg_os_thread_ns();
#endif
}

#endif
