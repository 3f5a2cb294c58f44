/* SPDX-License-Identifier: MIT */
/* os_process_posix.c - errors, time, random numbers and the process, by
 * POSIX */
#include "config.h"
#include "base/os/os.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if HAVE_SYS_RANDOM_H
#include <sys/random.h> /* getentropy() of macOS */
#endif

const char *gg_os_error_text(int e, char *text, size_t size)
{
    /* The GNU form returns the text, the XSI form fills the buffer. */
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
    const char *found = strerror_r(e, text, size);
    if (found != text && size) {
        const size_t n = strlen(found) < size ? strlen(found) : size - 1;
        memcpy(text, found, n);
        text[n] = '\0';
    }
#else
    static const char unknown[] = "unknown error";
    if (strerror_r(e, text, size) != 0 && size >= sizeof unknown)
        memcpy(text, unknown, sizeof unknown);
#endif
    return text;
}

bool gg_os_error_is_full(int e)
{
    return e == ENOSPC || e == EDQUOT;
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t gg_os_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t gg_os_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void gg_os_sleep(uint64_t ns)
{
    const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
                                .tv_nsec = (long)(ns % 1000000000u) };
    nanosleep(&t, NULL);
}

int gg_os_random(void *out, size_t size)
{
#if HAVE_GETENTROPY
    return getentropy(out, size);
#else
    (void)out, (void)size;
    errno = ENOSYS;
    return -1;
#endif
}

long gg_os_process_id(void)
{
    return (long)getpid();
}

uint64_t gg_os_user(void)
{
    return (uint64_t)geteuid();
}
