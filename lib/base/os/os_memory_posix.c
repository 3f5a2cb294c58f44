/* SPDX-License-Identifier: MIT */
/* os_memory_posix.c - mapped files and memory, by POSIX */
#include "config.h"
#include "base/os/os.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0 /* FreeBSD never reserves */
#endif

size_t gg_os_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

size_t gg_os_map_step(void)
{
    return gg_os_page_size();
}

void gg_os_memory_size(uint64_t *n_free, uint64_t *n_total)
{
    const long page = sysconf(_SC_PAGESIZE);
    long all = 0, avail = 0;
    *n_free = *n_total = 0;
#ifdef _SC_PHYS_PAGES
    all = sysconf(_SC_PHYS_PAGES);
#endif
#ifdef _SC_AVPHYS_PAGES
    avail = sysconf(_SC_AVPHYS_PAGES);
#endif
    if (page > 0 && all > 0)
        *n_total = (uint64_t)all * (uint64_t)page;
    if (page > 0 && avail > 0)
        *n_free = (uint64_t)avail * (uint64_t)page;
}

/* ---- mappings ---- */

void *gg_os_map(int fd, uint64_t off, size_t size, enum gg_os_map how)
{
    const bool copy = how == GG_OS_MAP_COPY;
    void *p =
        mmap(NULL, size, copy ? PROT_READ | PROT_WRITE : PROT_READ,
             copy ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED, fd, (off_t)off);
    return p == MAP_FAILED ? NULL : p;
}

int gg_os_map_writable(void *map, size_t size, int fd, uint64_t off)
{
    int flags = MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED;
#ifdef MAP_POPULATE
    flags |= MAP_POPULATE; /* make all copies at once, if possible */
#endif
    return mmap(map, size, PROT_READ | PROT_WRITE, flags, fd, (off_t)off) ==
                   MAP_FAILED
               ? -1
               : 0;
}

void gg_os_map_protect(void *map, size_t size)
{
    (void)mprotect(map, size, PROT_READ);
}

void gg_os_unmap(void *map, size_t size)
{
    (void)munmap(map, size);
}

void gg_os_map_advise(const void *p, size_t size, enum gg_os_advice advice)
{
#if HAVE_MADVISE
    static const int how[] = { MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED };
    const uintptr_t page = gg_os_page_size();
    uintptr_t from = (uintptr_t)p, to = from + size;
    if (advice == GG_OS_DONTNEED) {
        from = (from + page - 1) / page * page;
        to = to / page * page;
    } else {
        from = from / page * page;
    }
    if (from < to) {
        const int saved = errno;
        (void)madvise((void *)from, to - from, how[advice]);
        errno = saved;
    }
#else
    (void)p, (void)size, (void)advice;
#endif
}

/* ---- memory ---- */

void *gg_os_memory_reserve(size_t size)
{
    void *p = mmap(NULL, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

int gg_os_memory_commit(void *p, size_t size)
{
    return mprotect(p, size, PROT_READ | PROT_WRITE);
}

void gg_os_memory_drop(void *p, size_t size)
{
#if defined(__linux__) && HAVE_MADVISE
    /* frees the memory at once */
    (void)madvise(p, size, MADV_DONTNEED);
#else
    /* elsewhere MADV_DONTNEED is a hint that may keep the bytes: new pages take
     * the place of these */
    (void)mmap(p, size, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
#endif
}

size_t gg_os_huge_page_size(void)
{
#if HAVE_MADVISE && defined(MADV_HUGEPAGE)
    return (size_t)1 << 21;
#else
    return 0;
#endif
}

void gg_os_memory_use_huge(void *p, size_t size)
{
#if HAVE_MADVISE && defined(MADV_HUGEPAGE)
    (void)madvise(p, size, MADV_HUGEPAGE);
#else
    (void)p, (void)size;
#endif
}

/* ---- locked memory ---- */

#if defined(_POSIX_MEMLOCK_RANGE) && _POSIX_MEMLOCK_RANGE > 0
/* Extend a range to whole pages, as some systems require. */
static void *align_to_pages(const void *p, size_t *size)
{
    const uintptr_t begin = (uintptr_t)p, page = gg_os_page_size();
    *size += begin % page;
    return (void *)(begin - begin % page);
}

int gg_os_memory_lock(const void *p, size_t size)
{
    void *at = align_to_pages(p, &size);
    return mlock(at, size);
}

void gg_os_memory_unlock(const void *p, size_t size)
{
    void *at = align_to_pages(p, &size);
    (void)munlock(at, size);
}
#else
int gg_os_memory_lock(const void *p, size_t size)
{
    (void)p, (void)size;
    errno = ENOSYS;
    return -1;
}

void gg_os_memory_unlock(const void *p, size_t size)
{
    (void)p, (void)size;
}
#endif

uint64_t gg_os_memory_lock_limit(void)
{
#ifdef RLIMIT_MEMLOCK
    struct rlimit l;
    if (getrlimit(RLIMIT_MEMLOCK, &l) == 0 && l.rlim_cur != RLIM_INFINITY)
        return (uint64_t)l.rlim_cur;
#endif
    return UINT64_MAX;
}
