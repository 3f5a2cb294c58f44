/* SPDX-License-Identifier: MIT */
/* os.h - the system: time, random numbers, processes, memory,
 * threads
 *
 * Every call of the system stands in base/os. Other files use C11 and threads
 * (<pthread.h>) only. The library and the tools each link this room, so it
 * includes no header of another room.
 *
 * A function that returns int returns 0, or -1 with the reason in errno. ENOSYS
 * means that the system cannot do it. On Windows, errno is translated from
 * GetLastError(), and threads are those of winpthreads.
 *
 * Threads: any.
 */
#ifndef GG_BASE_OS_OS_H
#define GG_BASE_OS_OS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- errors ---- */

/* Format the system's text for the errno e in text. Returns text. */
const char *gg_os_error_text(int e, char *text, size_t size);

/* Does the errno e mean that the disk or the user's part of it is full?
 * Windows has no errno for the latter: ENOSPC. */
bool gg_os_error_is_full(int e);

/* ---- time ---- */

/* Nanoseconds since some point in the past. The clock is never set. Windows:
 * QueryPerformanceCounter(). */
uint64_t gg_os_clock_ns(void);

/* Nanoseconds of processor time of the calling thread; 0: unknown. Windows:
 * GetThreadTimes(). */
uint64_t gg_os_thread_ns(void);

/* Sleep for ns nanoseconds, or until a signal. Windows: whole milliseconds. */
void gg_os_sleep(uint64_t ns);

/* ---- random numbers ---- */

/* Fill size bytes, at most 256, with the system's random numbers. Windows:
 * BCryptGenRandom(). */
int gg_os_random(void *out, size_t size);

/* ---- the process ---- */

/* Number of the process. Windows: GetCurrentProcessId(). */
long gg_os_process_id(void);

/* User with whose rights the process works; 0 is the superuser. Windows: 0. No
 * owners are compared there, since lists of rights decide. */
uint64_t gg_os_user(void);

/* ---- memory ---- */

/* Bytes of a page. */
size_t gg_os_page_size(void);
/* Offsets of mappings are multiples of this: a page; Windows: 64 KiB. */
size_t gg_os_map_step(void);
/* Bytes of memory that are free, and all of the machine; 0: unknown. Windows:
 * GlobalMemoryStatusEx(). */
void gg_os_memory_size(uint64_t *n_free, uint64_t *n_total);

/* How bytes of a file are mapped. */
enum gg_os_map {
    GG_OS_MAP_SHARED, /* read only; later changes of the file may appear */
    GG_OS_MAP_COPY    /* read and write; written pages are copies */
};
/* Map size bytes, at least 1, of a file. off is a multiple of
 * gg_os_map_step(). The mapping outlives the descriptor. Returns NULL after a
 * failure. Windows: MapViewOfFile() of PAGE_WRITECOPY; the file cannot be
 * truncated while it is mapped. */
void *gg_os_map(int fd, uint64_t off, size_t size, enum gg_os_map how);
/* Copy the first size bytes of a mapping, up to the end of their last page, so
 * that they do not change when the file does. fd and off are those of the
 * mapping, which stays at its address. Windows: VirtualProtect() with
 * PAGE_WRITECOPY, then each page is written to. */
int gg_os_map_own(void *map, size_t size, int fd, uint64_t off);
/* Make size bytes of a mapping read only. Finds mistakes; never fails. */
void gg_os_map_protect(void *map, size_t size);
/* Release a mapping or a range of gg_os_memory_reserve(), with the size that it
 * was made with. */
void gg_os_unmap(void *map, size_t size);

/* Use of mapped bytes in the near future. */
enum gg_os_advice {
    GG_OS_SEQUENTIAL, /* read from front to back */
    GG_OS_WILLNEED,   /* needed soon */
    GG_OS_DONTNEED    /* not needed: release pages that lie inside */
};
/* Tell how size bytes of a mapped file will be used. A hint: errno stays.
 * Windows: PrefetchVirtualMemory() for GG_OS_WILLNEED. */
void gg_os_map_advise(const void *p, size_t size, enum gg_os_advice advice);

/* Reserve size bytes of addresses without memory; gg_os_memory_commit() gets
 * memory for parts of them. Returns NULL after a failure. Windows:
 * VirtualAlloc() with MEM_RESERVE. */
void *gg_os_memory_reserve(size_t size);
/* Make whole pages of a reserved range readable and writable. New ones are
 * zero. Windows: MEM_COMMIT. */
int gg_os_memory_commit(void *p, size_t size);
/* Return the memory of whole pages of a reserved range to the system. They must
 * be committed again before they are used. Windows: MEM_DECOMMIT. */
void gg_os_memory_drop(void *p, size_t size);

/* Bytes of a large page that gg_os_memory_use_huge() asks for; 0: ordinary
 * memory cannot have them. Windows: 0, since large pages need a right. */
size_t gg_os_huge_page_size(void);
/* Ask for large pages in size bytes at p. A hint: never fails. */
void gg_os_memory_use_huge(void *p, size_t size);

/* Lock the pages of size bytes at p in memory. Locks do not nest: one unlock is
 * enough. Windows: VirtualLock(). */
int gg_os_memory_lock(const void *p, size_t size);
void gg_os_memory_unlock(const void *p, size_t size);
/* Bytes that the process may lock; UINT64_MAX: any number, or unknown. Windows:
 * the minimum of GetProcessWorkingSetSize(). */
uint64_t gg_os_memory_lock_limit(void);

/* ---- processors ---- */

/* Number of processors that the process may use, at least 1. Windows:
 * GetProcessAffinityMask(). */
unsigned gg_os_cpu_count(void);

/* Get the set of processors that the process may use: bit i of the n_bits bits
 * stands for processor i. n_bits is a multiple of 64. ENOSYS: unknown. Windows:
 * processors of the first group. */
int gg_os_cpu_set(uint64_t *bits, unsigned n_bits);

/* Bind a thread to the processors of a set. Windows: SetThreadAffinityMask(),
 * processors of the first group. */
int gg_os_thread_bind(pthread_t thread, const uint64_t *bits, unsigned n_bits);

/* Interleave new memory of the calling thread over the memory nodes of a set:
 * bit i stands for node i. bits NULL: the system's default again. Windows:
 * ENOSYS. */
int gg_os_memory_nodes(const uint64_t *bits, unsigned n_bits);

/* ---- threads ---- */

/* Set of signals of a thread. */
struct gg_os_signals {
    uint64_t bits[16];
};

/* Block signals in the calling thread and in those that it creates, so that the
 * program's handlers run on its own threads. Signals that a thread causes
 * itself are not blocked, such as SIGBUS when a mapped file was truncated: they
 * would kill the process without calling the handler. old receives the set to
 * restore. Windows: does nothing, as handlers run on a thread of their own. */
int gg_os_signals_block(struct gg_os_signals *old);
void gg_os_signals_restore(const struct gg_os_signals *old);

/* Threads that sleep until a word changes. Linux sleeps on the word itself and
 * uses neither member. Windows: WaitOnAddress(). */
struct gg_os_sleepers {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
};

/* Initialize. EAGAIN, ENOMEM: the system has no lock left. */
int gg_os_sleepers_init(struct gg_os_sleepers *s);
void gg_os_sleepers_fini(struct gg_os_sleepers *s);
/* Sleep until a thread wakes the sleepers and the word differs from old.
 * Returns at once if it differs already. */
void gg_os_sleepers_wait(struct gg_os_sleepers *s, _Atomic uint32_t *word,
                         uint32_t old);
/* Wake all threads that sleep on the word, which has changed. */
void gg_os_sleepers_wake(struct gg_os_sleepers *s, _Atomic uint32_t *word);

#endif
