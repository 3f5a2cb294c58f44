/* SPDX-License-Identifier: MIT */
/* scratch.h - a test's own folder, and its processor time */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

/* Remove the content of the folder, except names that begin with a dot. Ends
 * the test after a failure. */
static inline void scratch_clean(const char *dir)
{
    char cmd[300];
    snprintf(cmd, sizeof cmd, "rm -rf %s/*", dir);
    if (system(cmd) != 0)
        exit(99);
}

/* Processor time of this thread in seconds. */
static inline double scratch_cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
