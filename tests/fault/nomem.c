/* SPDX-License-Identifier: MIT */
/* nomem.c - a preloaded library that makes an allocation fail
 *
 * GGUF_NOMEM=N makes the N-th allocation of the process fail, N+ that and all
 * later ones; 0: none. GGUF_NOMEM_COUNT=PATH writes the number of allocations
 * to the file PATH when the process exits. Allocations before main() and in
 * child processes are not counted.
 */
#include "config.h"
/* glibc's allocator has these names, too */
#include <stdio.h>

#if defined(__GLIBC__)
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
EXPORT void *aligned_alloc(size_t align, size_t size);
EXPORT int posix_memalign(void **out, size_t align, size_t size);

static atomic_ulong n_calls;
static unsigned long fail_at;
static bool fail_after;
static pid_t counted; /* process whose allocations are counted */

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("GGUF_NOMEM");
    char *end = NULL;
    fail_at = at ? strtoul(at, &end, 10) : 0;
    fail_after = end && *end == '+';
    counted = getpid();
}

__attribute__((destructor)) static void finish(void)
{
    const char *path = getenv("GGUF_NOMEM_COUNT");
    const unsigned long n = atomic_load(&n_calls);
    if (!path || getpid() != counted)
        return;
    counted = 0;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0) {
        dprintf(fd, "%lu\n", n);
        close(fd);
    }
}

static bool fails_now(void)
{
    if (!counted || getpid() != counted)
        return false;
    const unsigned long n = atomic_fetch_add(&n_calls, 1) + 1;
    if (!fail_at || (fail_after ? n < fail_at : n != fail_at))
        return false;
    errno = ENOMEM;
    return true;
}

EXPORT void *malloc(size_t size)
{
    return fails_now() ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size)
{
    return fails_now() ? NULL : __libc_realloc(p, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
    return fails_now() ? NULL : __libc_memalign(align, size);
}

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
    void *p = fails_now() ? NULL : __libc_memalign(align, size);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}
#endif
