/* SPDX-License-Identifier: MIT */
/* os_process_win.c - errors, time, random numbers and the process, on
 * Windows */
#include "config.h"
#include "base/os/os.h"
#include "base/os/os_win.h"

#include <bcrypt.h>
#include <errno.h>
#include <string.h>

const char *gg_os_error_text(int e, char *text, size_t size)
{
    /* those that the C library does not know */
    const char *own = e == ELOOP         ? "Too many levels of symbolic links"
                      : e == EWOULDBLOCK ? "Resource temporarily unavailable"
                      : e == EOPNOTSUPP  ? "Operation not supported"
                                         : NULL;
    if (own)
        snprintf(text, size, "%s", own);
    else if (strerror_s(text, size, e) != 0)
        snprintf(text, size, "unknown error");
    return text;
}

bool gg_os_error_is_full(int e)
{
    return e == ENOSPC;
}

uint64_t gg_os_clock_ns(void)
{
    LARGE_INTEGER now, rate;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&rate);
    const uint64_t n = (uint64_t)now.QuadPart, r = (uint64_t)rate.QuadPart;
    return n / r * 1000000000u + n % r * 1000000000u / r;
}

static uint64_t count_units(FILETIME t)
{
    return (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
}

uint64_t gg_os_thread_ns(void)
{
    FILETIME begin, end, kernel, user;
    if (!GetThreadTimes(GetCurrentThread(), &begin, &end, &kernel, &user))
        return 0;
    return (count_units(kernel) + count_units(user)) * 100;
}

void gg_os_sleep(uint64_t ns)
{
    const uint64_t ms = ns / 1000000 + (ns % 1000000 != 0);
    Sleep(ms < INFINITE ? (DWORD)ms : INFINITE - 1);
}

int gg_os_random(void *out, size_t size)
{
    if (BCryptGenRandom(NULL, out, (ULONG)size,
                        BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0)
        return 0;
    errno = ENOSYS;
    return -1;
}

long gg_os_process_id(void)
{
    return (long)GetCurrentProcessId();
}

uint64_t gg_os_user(void)
{
    return 0;
}
