/* SPDX-License-Identifier: MIT */
/* os_memory_win.c - mapped files and memory, on Windows */
#include "config.h"
#include "base/os/os.h"
#include "base/os/os_win.h"

#include <errno.h>

size_t gg_os_page_size(void)
{
    SYSTEM_INFO s;
    GetSystemInfo(&s);
    return s.dwPageSize;
}

size_t gg_os_map_step(void)
{
    SYSTEM_INFO s;
    GetSystemInfo(&s);
    return s.dwAllocationGranularity;
}

void gg_os_memory_size(uint64_t *n_free, uint64_t *n_total)
{
    MEMORYSTATUSEX s = { .dwLength = sizeof s };
    const bool good = GlobalMemoryStatusEx(&s);
    *n_free = good ? s.ullAvailPhys : 0;
    *n_total = good ? s.ullTotalPhys : 0;
}

/* ---- mappings ---- */

/* Map part of a file, at an address or NULL. */
static void *map_view(HANDLE h, uint64_t off, size_t size, bool copy, void *at)
{
    /* A view charges memory for its own copies of pages, so only those that
     * are written to are mapped so. */
    HANDLE section = CreateFileMappingW(
        h, NULL, copy ? PAGE_WRITECOPY : PAGE_READONLY, 0, 0, NULL);
    if (!section) {
        (void)gg_os_win_fail_last();
        return NULL;
    }
    void *p = MapViewOfFileEx(section, copy ? FILE_MAP_COPY : FILE_MAP_READ,
                              (DWORD)(off >> 32), (DWORD)off, size, at);
    if (!p)
        (void)gg_os_win_fail_last();
    const int e = errno;
    CloseHandle(section);
    errno = e;
    return p;
}

void *gg_os_map(int fd, uint64_t off, size_t size, enum gg_os_map how)
{
    HANDLE h = gg_os_win_handle(fd);
    return h == INVALID_HANDLE_VALUE
               ? NULL
               : map_view(h, off, size, how == GG_OS_MAP_COPY, NULL);
}

/* Map a view again, at its address: the first part as copies. For Wine, which
 * cannot make copies of a view's pages. */
static int map_in_two(void *map, size_t first, int fd, uint64_t off)
{
    MEMORY_BASIC_INFORMATION m;
    struct gg_os_stat s;
    HANDLE h = gg_os_win_handle(fd);
    if (VirtualQuery(map, &m, sizeof m) == 0)
        return gg_os_win_fail_last();
    if (h == INVALID_HANDLE_VALUE || gg_os_stat_fd(fd, &s) != 0)
        return -1;
    const size_t step = gg_os_map_step();
    size_t whole = m.RegionSize;
    if (off + whole > s.size) /* the last page is not full */
        whole = (size_t)(s.size - off);
    first = (first + step - 1) / step * step;
    if (first > whole)
        first = whole;
    (void)UnmapViewOfFile(map);
    if (map_view(h, off, first, true, map) &&
        (first == whole ||
         map_view(h, off + first, whole - first, false, (char *)map + first)))
        return 0;
    const int e = errno;
    (void)UnmapViewOfFile(map);
    (void)map_view(h, off, whole, false, map);
    errno = e;
    return -1;
}

int gg_os_map_writable(void *map, size_t size, int fd, uint64_t off)
{
    DWORD old;
    return VirtualProtect(map, size, PAGE_WRITECOPY, &old)
               ? 0
               : map_in_two(map, size, fd, off);
}

void gg_os_map_protect(void *map, size_t size)
{
    DWORD old;
    (void)VirtualProtect(map, size, PAGE_READONLY, &old);
}

/* Find the second view in size bytes at map. NULL: there is one only. */
static void *find_second_view(void *map, size_t size)
{
    MEMORY_BASIC_INFORMATION m;
    for (size_t at = 0; at < size; at += m.RegionSize) {
        if (VirtualQuery((char *)map + at, &m, sizeof m) == 0)
            return NULL;
        if (m.AllocationBase != map)
            return m.AllocationBase;
    }
    return NULL;
}

void gg_os_unmap(void *map, size_t size)
{
    MEMORY_BASIC_INFORMATION m;
    if (VirtualQuery(map, &m, sizeof m) == 0)
        return;
    if (m.Type == MEM_MAPPED) {
        void *second = find_second_view(map, size);
        (void)UnmapViewOfFile(map);
        if (second)
            (void)UnmapViewOfFile(second);
    } else {
        (void)VirtualFree(map, 0, MEM_RELEASE);
    }
}

void gg_os_map_advise(const void *p, size_t size, enum gg_os_advice advice)
{
    const uintptr_t at = (uintptr_t)p;
    WIN32_MEMORY_RANGE_ENTRY range = { (void *)at, size };
    if (advice == GG_OS_WILLNEED && size)
        (void)PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
}

/* ---- memory ---- */

void *gg_os_memory_reserve(size_t size)
{
    void *p = VirtualAlloc(NULL, size, MEM_RESERVE, PAGE_READWRITE);
    if (!p)
        (void)gg_os_win_fail_last();
    return p;
}

int gg_os_memory_commit(void *p, size_t size)
{
    return VirtualAlloc(p, size, MEM_COMMIT, PAGE_READWRITE)
               ? 0
               : gg_os_win_fail_last();
}

void gg_os_memory_drop(void *p, size_t size)
{
    (void)VirtualFree(p, size, MEM_DECOMMIT);
}

size_t gg_os_huge_page_size(void)
{
    return 0;
}

void gg_os_memory_use_huge(void *p, size_t size)
{
    (void)p, (void)size;
}

/* ---- locked memory ---- */

int gg_os_memory_lock(const void *p, size_t size)
{
    return VirtualLock((void *)(uintptr_t)p, size) ? 0 : gg_os_win_fail_last();
}

void gg_os_memory_unlock(const void *p, size_t size)
{
    (void)VirtualUnlock((void *)(uintptr_t)p, size);
}

uint64_t gg_os_memory_lock_limit(void)
{
    SIZE_T least, most;
    return GetProcessWorkingSetSize(GetCurrentProcess(), &least, &most)
               ? least
               : UINT64_MAX;
}
