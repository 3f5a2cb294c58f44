/* SPDX-License-Identifier: MIT */
/* os.h - the system: time, random numbers, processes, files, memory, threads
 *
 * Every call of the system stands in base/os. Other files use C11 and threads
 * (<pthread.h>) only. Files are descriptors. Paths are UTF-8, with '/' between
 * names; Windows takes both slashes and gets wide characters. The library and
 * the tools each link this room, so it includes no header of another room.
 *
 * A function that returns int returns 0, or -1 with the reason in errno.
 * ENOSYS means that the system cannot do it. On Windows, errno is translated
 * from GetLastError(), and threads are those of winpthreads.
 *
 * Threads: any. */
#ifndef GG_BASE_OS_OS_H
#define GG_BASE_OS_OS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* ---- errors ---- */

/* Format the system's text for the errno e in text. Returns text. Windows:
 * strerror_s(). */
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

/* ---- files ---- */

/* Kind of a file. Windows: files, folders, links (reparse points), pipes and
 * character devices. */
enum gg_os_kind {
    GG_OS_FILE, /* a regular file */
    GG_OS_FOLDER,
    GG_OS_LINK, /* a symbolic link */
    GG_OS_PIPE,
    GG_OS_CHARACTERS, /* a character device, such as a terminal */
    GG_OS_BLOCKS,     /* a block device */
    GG_OS_SOCKET,
    GG_OS_OTHER
};

struct gg_os_stat {
    enum gg_os_kind kind;
    uint64_t dev, ino;     /* identity: device and number of the file there.
                            * Windows: GetFileInformationByHandle() */
    uint64_t size;         /* bytes of the file */
    uint64_t disk_size;    /* bytes that it takes on the disk */
    uint64_t n_links;      /* number of names */
    uint64_t owner, group; /* Windows: 0 */
    unsigned mode;         /* the nine permission bits of POSIX. Windows: 0 */
    bool sticky; /* a folder where only owners can remove their files.
                            * Windows: false */
    struct timespec mtime; /* time of the last change of the bytes */
};

/* Get the facts about a file. Symbolic links are followed. Windows:
 * CreateFileW() without rights, then as for an open file. */
int gg_os_stat(const char *path, struct gg_os_stat *s);
/* Get the facts about a file, or about the symbolic link at path. Windows:
 * with FILE_FLAG_OPEN_REPARSE_POINT. */
int gg_os_stat_link(const char *path, struct gg_os_stat *s);
/* Get the facts about an open file. Windows: GetFileInformationByHandle(). */
int gg_os_stat_fd(int fd, struct gg_os_stat *s);
/* Does path lead to anything? 0: yes. Windows: GetFileAttributesW(), for which
 * a symbolic link is something. */
int gg_os_find(const char *path);

/* Ways to open a file. */
enum gg_os_open {
    GG_OS_READ,   /* read an existing file */
    GG_OS_WRITE,  /* write an existing file */
    GG_OS_UPDATE, /* read and write an existing file; a symbolic link fails with
                   * ELOOP */
    GG_OS_NEW /* create, read and write a file; EEXIST: the name is taken */
};
/* Open a file. Returns its descriptor, or -1.
 *
 * Programs that the process starts do not get the descriptor. Opening a pipe
 * does not wait for its other end. Windows: binary mode; the file can be
 * renamed and removed while it is open (FILE_SHARE_DELETE). */
int gg_os_open(const char *path, enum gg_os_open how);
/* Create a file without a name in a folder, for reading and writing, which
 * gg_os_link_fd() can name. Returns its descriptor, or -1: the folder's file
 * system or the system has no such files. Windows: -1. */
int gg_os_open_nameless(const char *folder);
/* Get another descriptor of an open file, or -1. Windows: DuplicateHandle(). */
int gg_os_duplicate(int fd);
/* Close a descriptor. Windows: _close(). */
void gg_os_close(int fd);
/* Open a stream as fopen() does. The modes are "r", "w" and "a", and a "b"
 * after them. Windows: CreateFileW() and _fdopen() in binary mode. */
FILE *gg_os_stream_open(const char *path, const char *mode);

/* Read size bytes at off. *done receives the bytes read: fewer than size if
 * the file ends, or after a failure. The position does not move. Windows:
 * ReadFile() with an OVERLAPPED, which moves the position. */
int gg_os_read_at(int fd, void *data, uint64_t size, uint64_t off,
                  uint64_t *done);
/* Write size bytes at off. *done receives the bytes written: fewer than size
 * after a failure. The position does not move. Windows: WriteFile() with an
 * OVERLAPPED, which moves the position. */
int gg_os_write_at(int fd, const void *data, uint64_t size, uint64_t off,
                   uint64_t *done);
/* Set the size of an open file. New bytes are zeros. Windows:
 * SetFileInformationByHandle() with FileEndOfFileInfo. */
int gg_os_set_size(int fd, uint64_t size);
/* Set the modification time of an open file to now. Windows: SetFileTime(). */
int gg_os_touch(int fd);
/* Give an open file the permissions of another, like, and its owner and group
 * as far as this user may give files away. own has the facts about fd.
 * Windows: does nothing. */
int gg_os_copy_access(int fd, const struct gg_os_stat *own,
                      const struct gg_os_stat *like);

/* ---- disks ---- */

/* Bytes that are free for this user on the file system of an open file or of a
 * path. ENOSYS: unknown. Windows: GetDiskFreeSpaceEx(). */
int gg_os_free_space_fd(int fd, uint64_t *n);
int gg_os_free_space(const char *path, uint64_t *n);
/* Allocate space for the first size bytes of an open file. ENOSPC, EDQUOT,
 * EFBIG: it does not fit. Other failures say that the file system cannot
 * allocate in advance. Windows: SetFileInformationByHandle() with
 * FileAllocationInfo. */
int gg_os_reserve_space(int fd, uint64_t size);
/* Let the file system copy size bytes from in_off of one file to off of
 * another. *done receives the bytes copied: fewer than size after a failure,
 * or if the system cannot copy the others. Windows: copies none. */
int gg_os_copy_range(int in_fd, uint64_t in_off, int fd, uint64_t off,
                     uint64_t size, uint64_t *done);
/* Can the file fd share extents with the file in_fd? Finds out by trying: the
 * file must be empty, and is empty afterwards. Windows: false. */
bool gg_os_can_share(int fd, int in_fd);
/* Make the empty file fd a clone of in_fd that shares its extents. Windows:
 * ENOSYS. */
int gg_os_clone(int fd, int in_fd);
/* Wait until an open file is on the disk. Windows: FlushFileBuffers(). */
int gg_os_sync(int fd);
/* Begin to write ahead bytes from off to the disk, and wait for the first size
 * of them. EIO, ENOSPC, EDQUOT: writing failed, and gg_os_sync() does not
 * report it again. Other failures: the system cannot wait for a part of a
 * file. Windows: ENOSYS. */
int gg_os_sync_range(int fd, uint64_t off, uint64_t size, uint64_t ahead);
/* Wait until the names in a folder are on the disk. Succeeds without waiting
 * if the folder cannot be read or synced. Windows: does nothing. */
int gg_os_sync_folder(const char *folder);

/* ---- locks ---- */

/* Lock an open file for the process, until it closes any descriptor of it.
 * EACCES or EAGAIN: another process has it. Other failures: the file system
 * has no locks. Windows: LockFileEx() of a byte that no file has, since locked
 * bytes cannot be read; another descriptor of the process is refused, too. */
int gg_os_lock_process(int fd);
/* Lock an open file for its descriptor and the duplicates of it. EWOULDBLOCK:
 * another one has it. Other failures: the file system has no locks. Windows:
 * LockFileEx(). */
int gg_os_lock_fd(int fd);
/* Release gg_os_lock_fd(), also for duplicates in forked processes. Windows:
 * UnlockFileEx(). */
void gg_os_unlock_fd(int fd);

/* ---- names ---- */

/* Give a file another name, which replaces any file of that name. Windows:
 * FILE_RENAME_FLAG_POSIX_SEMANTICS, which also replaces a file that is open;
 * where it is unknown, MoveFileEx() with MOVEFILE_REPLACE_EXISTING, or for an
 * open file two renames, between which the name leads to nothing. */
int gg_os_rename(const char *from, const char *to);
/* Give a file another name. EEXIST: the name is taken. Other failures may say
 * that the file system cannot check that: gg_os_link() can. Windows:
 * MoveFileEx() without flags. */
int gg_os_rename_new(const char *from, const char *to);
/* Give a file a second name. EEXIST: it is taken. EPERM, ENOSYS, EOPNOTSUPP:
 * the file system has no second names. Windows: CreateHardLinkW(). */
int gg_os_link(const char *from, const char *to);
/* Name a file of gg_os_open_nameless(). EEXIST: the name is taken. Windows:
 * ENOSYS. */
int gg_os_link_fd(int fd, const char *to);
/* Remove a name of a file. Windows: the name is free at once, even while the
 * file is open (FILE_DISPOSITION_FLAG_POSIX_SEMANTICS); where that is unknown,
 * an open file has another name beside path until it is closed. */
int gg_os_remove(const char *path);
/* Follow all symbolic links of path. Returns a path without them, for free(),
 * or NULL. Windows: GetFinalPathNameByHandle(). */
char *gg_os_real_path(const char *path);

/* ---- folders ---- */

/* Create a folder. EEXIST: the name is taken. Windows: CreateDirectoryW(). */
int gg_os_make_folder(const char *path);
/* Remove an empty folder. Windows: RemoveDirectoryW(). */
int gg_os_remove_folder(const char *path);

struct gg_os_folder;
/* Open a folder to read its names, or return NULL. Windows:
 * FindFirstFileW(). */
struct gg_os_folder *gg_os_folder_open(const char *path);
/* Read the next name, "." and ".." included. The order is the system's. The
 * text is valid until the next call. NULL: the end. Windows: FindNextFileW(),
 * as UTF-8. */
const char *gg_os_folder_next(struct gg_os_folder *d);
/* Get the facts about the file `name' of the folder. Symbolic links are not
 * followed. Windows: by its path. */
int gg_os_folder_stat(struct gg_os_folder *d, const char *name,
                      struct gg_os_stat *s);
/* Remove the file `name' of the folder. Windows: by its path. */
int gg_os_folder_remove(struct gg_os_folder *d, const char *name);
/* Close a folder. Windows: FindClose(). */
void gg_os_folder_close(struct gg_os_folder *d);

/* ---- memory ---- */

/* Bytes of a page. Windows: GetSystemInfo(). */
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
 * failure. Windows: MapViewOfFile(); the file cannot be truncated while it is
 * mapped. */
void *gg_os_map(int fd, uint64_t off, size_t size, enum gg_os_map how);
/* Make the first size bytes of a mapping writable, up to the end of their last
 * page. A page that is written to becomes a copy, which does not change when
 * the file does. fd and off are those of the mapping, which stays at its
 * address. Windows: VirtualProtect() with PAGE_WRITECOPY, or in Wine a view of
 * its own. */
int gg_os_map_writable(void *map, size_t size, int fd, uint64_t off);
/* Make size bytes of a mapping read only. Finds mistakes; never fails.
 * Windows: VirtualProtect(). */
void gg_os_map_protect(void *map, size_t size);
/* Release a mapping or a range of gg_os_memory_reserve(), with the size that
 * it was made with. Windows: UnmapViewOfFile() or VirtualFree(), by the type
 * that VirtualQuery() tells. */
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
/* Return the memory of whole pages of a reserved range to the system. They
 * must be committed again before they are used. Windows: MEM_DECOMMIT. */
void gg_os_memory_drop(void *p, size_t size);

/* Bytes of a large page that gg_os_memory_use_huge() asks for; 0: ordinary
 * memory cannot have them. Windows: 0, since large pages need a right. */
size_t gg_os_huge_page_size(void);
/* Ask for large pages in size bytes at p. A hint: never fails. Windows: does
 * nothing. */
void gg_os_memory_use_huge(void *p, size_t size);

/* Lock the pages of size bytes at p in memory. Locks do not nest: one unlock
 * is enough. Windows: VirtualLock(). */
int gg_os_memory_lock(const void *p, size_t size);
void gg_os_memory_unlock(const void *p, size_t size);
/* Bytes that the process may lock; UINT64_MAX: any number, or unknown.
 * Windows: the minimum of GetProcessWorkingSetSize(). */
uint64_t gg_os_memory_lock_limit(void);

/* ---- processors ---- */

/* Number of processors that the process may use, at least 1. Windows:
 * GetProcessAffinityMask(). */
unsigned gg_os_cpu_count(void);

/* Instructions that processors of AArch64 may lack and that the system lets
 * programs use: a sum of bits. To be called on AArch64 only. 0: none, or the
 * system does not say. Windows: IsProcessorFeaturePresent(), numbers 43
 * (DOTPROD), 66 (I8MM), 68 (BF16) and 30 (SHA2). */
enum {
    GG_OS_ARM_DOTPROD = 1, /* SDOT, UDOT */
    GG_OS_ARM_I8MM = 2,    /* SMMLA, UMMLA, USMMLA, USDOT */
    GG_OS_ARM_BF16 = 4,    /* BFDOT, BFMMLA, BFCVTN */
    GG_OS_ARM_SHA2 = 8     /* SHA256H and kin */
};
unsigned gg_os_arm_features(void);

/* Get the set of processors that the process may use: bit i of the n_bits bits
 * stands for processor i. n_bits is a multiple of 64. ENOSYS: unknown.
 * Windows: processors of the first group. */
int gg_os_cpu_set(uint64_t *bits, unsigned n_bits);

/* Tell the processor that a loop waits for another thread. */
static inline void gg_os_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ volatile("yield");
#endif
}

/* Bind a thread to the processors of a set. Windows: SetThreadAffinityMask(),
 * processors of the first group. */
int gg_os_thread_bind(pthread_t thread, const uint64_t *bits, unsigned n_bits);

/* Interleave new memory of the calling thread over the memory nodes of a set:
 * bit i stands for node i. bits NULL: the system's default again. Windows:
 * ENOSYS. */
int gg_os_memory_nodes(const uint64_t *bits, unsigned n_bits);

/* Ask the system to let the process use the tile registers of x86-64 (AMX),
 * 8 KB that it saves for each thread. Later calls cost little and say the same.
 * From then on Linux writes larger signal frames for threads that use them, and
 * refuses alternate signal stacks of less than sysconf(_SC_MINSIGSTKSZ) bytes;
 * it refuses the request if a thread has a smaller one. ENOSYS: the system has
 * no such call. Windows: EnableProcessOptionalXStateFeatures(). */
int gg_os_tiles_request(void);

/* ---- threads ---- */

/* Set of signals of a thread. */
struct gg_os_signals {
    uint64_t bits[16];
};

/* Block signals in the calling thread and in those that it creates, so that
 * the program's handlers run on its own threads. Signals that a thread causes
 * itself are not blocked, such as SIGBUS when a mapped file was truncated:
 * they would kill the process without calling the handler. old receives the
 * set to restore. Windows: does nothing, as handlers run on a thread of their
 * own. */
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
