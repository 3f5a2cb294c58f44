/* SPDX-License-Identifier: MIT */
/* pages.c - bring pages into memory and lock them there */
#include "config.h"
#include "base/pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void gg_pages_touch(const void *p, size_t size)
{
    const size_t page = page_size();
    const volatile uint8_t *b = p;
    uint8_t all = 0;
    /* steps to the begin of each page */
    for (size_t i = 0; i < size; i += page - ((uintptr_t)p + i) % page)
        all ^= b[i];
    /* a use of the value that neither compilers nor emulators remove */
    volatile uint8_t sink = all;
    (void)sink;
}

#if defined _POSIX_MEMLOCK_RANGE && _POSIX_MEMLOCK_RANGE > 0
/* Extend a range to whole pages, as some systems require. */
static void *align_to_pages(const void *p, size_t *size)
{
    const uintptr_t begin = (uintptr_t)p, page = page_size();
    *size += begin % page;
    return (void *)(begin - begin % page);
}

static enum gguf_status fail_lock(int sys_errno, struct gguf_error *err)
{
    struct rlimit l = { 0, 0 };
#ifdef RLIMIT_MEMLOCK
    if ((sys_errno == ENOMEM || sys_errno == EPERM || sys_errno == EAGAIN) &&
        getrlimit(RLIMIT_MEMLOCK, &l) == 0 && l.rlim_cur != RLIM_INFINITY) {
        (void)gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                           "the process may lock %" PRIu64
                           " bytes (RLIMIT_MEMLOCK, ulimit -l)",
                           (uint64_t)l.rlim_cur);
        if (err)
            err->sys_errno = sys_errno;
        return GGUF_E_LIMIT;
    }
#endif
    (void)l;
    return gg_error_set_errno(err, sys_errno, "mlock");
}

enum gguf_status gg_pages_lock(const void *p, size_t size,
                               struct gguf_error *err)
{
    void *at = align_to_pages(p, &size);
    return mlock(at, size) == 0 ? GGUF_OK : fail_lock(errno, err);
}

void gg_pages_unlock(const void *p, size_t size)
{
    void *at = align_to_pages(p, &size);
    (void)munlock(at, size);
}
#else
enum gguf_status gg_pages_lock(const void *p, size_t size,
                               struct gguf_error *err)
{
    (void)p;
    (void)size;
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "the system locks no memory");
}

void gg_pages_unlock(const void *p, size_t size)
{
    (void)p;
    (void)size;
}
#endif
