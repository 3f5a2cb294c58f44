/* SPDX-License-Identifier: MIT */
/* fault.c - a preloaded library that makes file calls fail (fault.h)
 *
 * Each function here replaces the C library's of the same name: it counts the
 * call and calls the original. A call with several names, such as open and
 * open64, is counted as one. The C library reads and writes streams
 * internally, where no function can be replaced; so streams are opened with
 * functions of this file.
 *
 * Nothing waits for the disk: no machine crashes in these tests.
 */
#include "config.h"
/* Both names of each function are defined here, and none is inline. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include <stdio.h> /* defines __GLIBC__ */

#if defined(__GLIBC__)
#include "tests/fault/fault.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* -------------------------------------------------------- the counting --- */

enum { N_FDS = 256 };

static struct fault_log *call_log;
static pid_t counted;                   /* process whose calls are counted */
static char fd_path[N_FDS][FAULT_PATH]; /* paths of descriptors, for the log */

/* The C library's function of this name. */
static void *next_of(const char *name)
{
    void *p = dlsym(RTLD_NEXT, name);
    if (!p)
        raise(SIGABRT);
    return p;
}

#define NEXT(type, name, ...) ((type(*)(__VA_ARGS__))next_of(name))

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("GGUF_FAULT");
    int fd =
        path ? NEXT(int, "open", const char *, int, ...)(path, O_RDWR) : -1;
    if (fd < 0)
        return;
    void *p = NEXT(void *, "mmap", void *, size_t, int, int, int, off_t)(
        NULL, sizeof *call_log, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    NEXT(int, "close", int)(fd);
    if (p == MAP_FAILED)
        return;
    call_log = p;
    call_log->here = 1;
    counted = getpid();
}

static void die_now(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static void copy_end(char *to, const char *path)
{
    size_t n = strlen(path);
    snprintf(to, FAULT_PATH, "%s",
             n < FAULT_PATH ? path : path + n - (FAULT_PATH - 1));
}

static void note_call(struct fault_call *c, const char *name, unsigned kind,
                      const char *path, int fd)
{
    snprintf(c->name, sizeof c->name, "%s", name);
    c->kind = kind;
    c->path[0] = '\0';
    if (path)
        copy_end(c->path, path);
    else if (fd >= 0 && fd < N_FDS)
        memcpy(c->path, fd_path[fd], FAULT_PATH);
}

/* Count a call. Returns the fault that it must have: FAULT_ERROR, with errno
 * set, FAULT_SHORT, FAULT_KILL_HALF, FAULT_KILL_AFTER, or FAULT_NONE. */
static enum fault take_turn(const char *name, unsigned kind, const char *path,
                            int fd)
{
    struct fault_log *l = call_log;
    if (!l || getpid() != counted)
        return FAULT_NONE;
    if (!path && fd < 0)
        return FAULT_NONE; /* anonymous memory, which a library's threads map
                            * at any time */
    uint32_t n = __atomic_add_fetch(&l->n_calls, 1, __ATOMIC_RELAXED);
    if (n <= FAULT_MAX_CALLS)
        note_call(&l->calls[n - 1], name, kind, path, fd);
    bool on = (l->fault == FAULT_FULL && (kind & FAULT_ROOM)) ||
              (l->fault == FAULT_DEAD && (kind & FAULT_CHANGES));
    if (!l->fault || n < l->at || (n > l->at && !on))
        return FAULT_NONE;
    enum fault f = (enum fault)l->fault;
    if (f == FAULT_FULL || f == FAULT_DEAD) {
        if (!on)
            return FAULT_NONE;
        errno = f == FAULT_FULL ? ENOSPC : EIO;
        f = FAULT_ERROR;
    } else if (f == FAULT_ERROR) {
        errno = l->error;
    }
    __atomic_add_fetch(&l->hits, 1, __ATOMIC_RELAXED);
    if (f == FAULT_KILL_BEFORE)
        die_now();
    if (f == FAULT_TERM)
        raise(SIGTERM);
    return f == FAULT_TERM ? FAULT_NONE : f;
}

static void end_call(enum fault f)
{
    if (f == FAULT_KILL_AFTER || f == FAULT_KILL_HALF)
        die_now();
}

/* Bytes that a call does if it should do n and is short. */
static size_t part_of(enum fault f, size_t n)
{
    return (f == FAULT_SHORT || f == FAULT_KILL_HALF) && n > 1 ? n / 2 : n;
}

/* ----------------------------------------------------------- functions --- */

/* Define a function that returns `fail' if it fails. */
#define CALL(type, fail, name, kind, path, fd, params, args)                  \
    EXPORT type name params;                                                  \
    EXPORT type name params                                                   \
    {                                                                         \
        enum fault f_ = take_turn(#name, kind, path, fd);                     \
        if (f_ == FAULT_ERROR)                                                \
            return fail;                                                      \
        type r_ = ((type(*) params)next_of(#name))args;                       \
        end_call(f_);                                                         \
        return r_;                                                            \
    }

#define CHANGES FAULT_CHANGES
#define ROOM    (FAULT_CHANGES | FAULT_ROOM)

/* Define a function that reads or writes n bytes. */
#define MOVE(name, kind, fd, params, args)                                    \
    EXPORT ssize_t name params;                                               \
    EXPORT ssize_t name params                                                \
    {                                                                         \
        enum fault f_ = take_turn(#name, (kind) | FAULT_PARTS, NULL, fd);     \
        if (f_ == FAULT_ERROR)                                                \
            return -1;                                                        \
        n = part_of(f_, n);                                                   \
        ssize_t r_ = ((ssize_t(*) params)next_of(#name))args;                 \
        end_call(f_);                                                         \
        return r_;                                                            \
    }

MOVE(read, 0, fd, (int fd, void *p, size_t n), (fd, p, n))
MOVE(write, fd > STDERR_FILENO ? ROOM : 0, fd,
     (int fd, const void *p, size_t n), (fd, p, n))
MOVE(pread, 0, fd, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
MOVE(pread64, 0, fd, (int fd, void *p, size_t n, off64_t at), (fd, p, n, at))
MOVE(pwrite, ROOM, fd, (int fd, const void *p, size_t n, off_t at),
     (fd, p, n, at))
MOVE(pwrite64, ROOM, fd, (int fd, const void *p, size_t n, off64_t at),
     (fd, p, n, at))
MOVE(__read_chk, 0, fd, (int fd, void *p, size_t n, size_t size),
     (fd, p, n, size))
MOVE(__pread_chk, 0, fd, (int fd, void *p, size_t n, off_t at, size_t size),
     (fd, p, n, at, size))
MOVE(__pread64_chk, 0, fd,
     (int fd, void *p, size_t n, off64_t at, size_t size),
     (fd, p, n, at, size))
MOVE(copy_file_range, ROOM, out,
     (int in, off64_t *from, int out, off64_t *to, size_t n, unsigned flags),
     (in, from, out, to, n, flags))

CALL(int, -1, ftruncate, ROOM, NULL, fd, (int fd, off_t n), (fd, n))
CALL(int, -1, ftruncate64, ROOM, NULL, fd, (int fd, off64_t n), (fd, n))
CALL(int, -1, fallocate, ROOM, NULL, fd, (int fd, int mode, off_t at, off_t n),
     (fd, mode, at, n))
CALL(int, -1, fallocate64, ROOM, NULL, fd,
     (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n))
CALL(int, errno, posix_fallocate, ROOM, NULL, fd, (int fd, off_t at, off_t n),
     (fd, at, n))
CALL(int, errno, posix_fallocate64, ROOM, NULL, fd,
     (int fd, off64_t at, off64_t n), (fd, at, n))
CALL(void *, MAP_FAILED, mmap, 0, NULL, fd,
     (void *p, size_t n, int prot, int flags, int fd, off_t at),
     (p, n, prot, flags, fd, at))
CALL(void *, MAP_FAILED, mmap64, 0, NULL, fd,
     (void *p, size_t n, int prot, int flags, int fd, off64_t at),
     (p, n, prot, flags, fd, at))

CALL(int, -1, rename, CHANGES, b, -1, (const char *a, const char *b), (a, b))
CALL(int, -1, renameat, CHANGES, b, -1,
     (int x, const char *a, int y, const char *b), (x, a, y, b))
CALL(int, -1, renameat2, CHANGES, b, -1,
     (int x, const char *a, int y, const char *b, unsigned flags),
     (x, a, y, b, flags))
CALL(int, -1, link, ROOM, b, -1, (const char *a, const char *b), (a, b))
CALL(int, -1, linkat, ROOM, b, -1,
     (int x, const char *a, int y, const char *b, int flags),
     (x, a, y, b, flags))
CALL(int, -1, symlink, ROOM, b, -1, (const char *a, const char *b), (a, b))
CALL(int, -1, unlink, CHANGES, a, -1, (const char *a), (a))
CALL(int, -1, unlinkat, CHANGES, a, -1, (int x, const char *a, int flags),
     (x, a, flags))
CALL(int, -1, remove, CHANGES, a, -1, (const char *a), (a))
CALL(int, -1, mkdir, ROOM, a, -1, (const char *a, mode_t mode), (a, mode))
CALL(int, -1, rmdir, CHANGES, a, -1, (const char *a), (a))
CALL(int, -1, truncate, ROOM, a, -1, (const char *a, off_t n), (a, n))
CALL(int, -1, chmod, CHANGES, a, -1, (const char *a, mode_t mode), (a, mode))
CALL(int, -1, fchmod, CHANGES, NULL, fd, (int fd, mode_t mode), (fd, mode))
CALL(int, -1, chown, CHANGES, a, -1, (const char *a, uid_t u, gid_t g),
     (a, u, g))
CALL(int, -1, fchown, CHANGES, NULL, fd, (int fd, uid_t u, gid_t g),
     (fd, u, g))
CALL(int, -1, futimens, CHANGES, NULL, fd,
     (int fd, const struct timespec t[2]), (fd, t))
CALL(int, -1, utimensat, CHANGES, a, -1,
     (int x, const char *a, const struct timespec t[2], int flags),
     (x, a, t, flags))
CALL(int, -1, flock, 0, NULL, fd, (int fd, int what), (fd, what))
CALL(int, -1, access, 0, a, -1, (const char *a, int mode), (a, mode))
CALL(int, -1, dup, 0, NULL, fd, (int fd), (fd))
CALL(char *, NULL, realpath, 0, a, -1, (const char *a, char *to), (a, to))
CALL(DIR *, NULL, opendir, 0, a, -1, (const char *a), (a))
/* clang-format off */
CALL(struct dirent *, NULL, readdir, 0, NULL, -1, (DIR *d), (d))
CALL(struct dirent64 *, NULL, readdir64, 0, NULL, -1, (DIR *d), (d))
/* clang-format on */

#define STAT(name, type)                                                      \
    CALL(int, -1, name, 0, a, -1, (const char *a, struct type *s), (a, s))
#define FSTAT(name, type)                                                     \
    CALL(int, -1, name, 0, NULL, fd, (int fd, struct type *s), (fd, s))
#if __GLIBC_PREREQ(2, 33)
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)
#else /* older glibc: functions with a version argument */
#define XSTAT(name, type)                                                     \
    CALL(int, -1, name, 0, a, -1, (int v, const char *a, struct type *s),     \
         (v, a, s))
#define FXSTAT(name, type)                                                    \
    CALL(int, -1, name, 0, NULL, fd, (int v, int fd, struct type *s),         \
         (v, fd, s))
XSTAT(__xstat, stat)
XSTAT(__xstat64, stat64)
XSTAT(__lxstat, stat)
XSTAT(__lxstat64, stat64)
FXSTAT(__fxstat, stat)
FXSTAT(__fxstat64, stat64)
#endif
CALL(int, -1, fstatat, 0, a, -1,
     (int x, const char *a, struct stat *s, int flags), (x, a, s, flags))
CALL(int, -1, fstatat64, 0, a, -1,
     (int x, const char *a, struct stat64 *s, int flags), (x, a, s, flags))
STAT(statvfs, statvfs)
STAT(statvfs64, statvfs64)
FSTAT(fstatvfs, statvfs)
FSTAT(fstatvfs64, statvfs64)

/* Define a function that waits for the disk: it does not wait here. */
#define SYNC(name, params)                                                    \
    EXPORT int name params;                                                   \
    EXPORT int name params                                                    \
    {                                                                         \
        enum fault f_ = take_turn(#name, ROOM, NULL, fd);                     \
        end_call(f_);                                                         \
        return f_ == FAULT_ERROR ? -1 : 0;                                    \
    }
SYNC(fsync, (int fd))
SYNC(fdatasync, (int fd))
SYNC(sync_file_range,
     (__attribute__((unused)) int fd, __attribute__((unused)) off64_t at,
      __attribute__((unused)) off64_t n,
      __attribute__((unused)) unsigned flags))

/* The descriptor is closed even if close() fails. */
EXPORT int close(int fd)
{
    enum fault f = take_turn("close", 0, NULL, fd);
    int e = errno;
    if (call_log && getpid() == counted && fd >= 0 && fd < N_FDS)
        fd_path[fd][0] = '\0';
    int r = NEXT(int, "close", int)(fd);
    if (f == FAULT_ERROR) {
        errno = e;
        return -1;
    }
    end_call(f);
    return r;
}

/* ----------------------------------------------- with arguments or not --- */

static unsigned kind_of_open(int flags)
{
    unsigned kind = (flags & O_ACCMODE) != O_RDONLY ? CHANGES : 0;
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? ROOM : kind;
}

static int open_it(const char *name, int folder, const char *path, int flags,
                   unsigned mode)
{
    enum fault f = take_turn(name, kind_of_open(flags), path, -1);
    if (f == FAULT_ERROR)
        return -1;
    int fd = NEXT(int, "openat64", int, const char *, int, ...)(folder, path,
                                                                flags, mode);
    if (fd >= 0 && fd < N_FDS && call_log && getpid() == counted)
        copy_end(fd_path[fd], path);
    end_call(f);
    return fd;
}

/* Read the mode argument after flags, if flags need one. */
#define MODE(m)                                                               \
    unsigned m = 0;                                                           \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                \
        va_list ap;                                                           \
        va_start(ap, flags);                                                  \
        m = va_arg(ap, unsigned);                                             \
        va_end(ap);                                                           \
    }

EXPORT int open(const char *path, int flags, ...)
{
    MODE(mode)
    return open_it("open", AT_FDCWD, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
    MODE(mode)
    return open_it("open", AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
    MODE(mode)
    return open_it("openat", folder, path, flags, mode);
}

EXPORT int openat64(int folder, const char *path, int flags, ...)
{
    MODE(mode)
    return open_it("openat", folder, path, flags | O_LARGEFILE, mode);
}

/* Headers call this for open without a mode. */
EXPORT int __open_2(const char *path, int flags);
EXPORT int __open_2(const char *path, int flags)
{
    return open_it("open", AT_FDCWD, path, flags, 0);
}

EXPORT int __open64_2(const char *path, int flags);
EXPORT int __open64_2(const char *path, int flags)
{
    return open_it("open", AT_FDCWD, path, flags | O_LARGEFILE, 0);
}

EXPORT int creat(const char *path, mode_t mode)
{
    return open_it("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC,
                   mode);
}

/* Count locks. Other operations are not counted. */
static int fcntl_it(int fd, int what, void *arg)
{
    bool lock = what == F_SETLK || what == F_SETLKW || what == F_OFD_SETLK ||
                what == F_OFD_SETLKW || what == F_SETLK64 ||
                what == F_SETLKW64;
    enum fault f = lock ? take_turn("fcntl", 0, NULL, fd) : FAULT_NONE;
    if (f == FAULT_ERROR)
        return -1;
    int r = NEXT(int, "fcntl64", int, int, ...)(fd, what, arg);
    end_call(f);
    return r;
}

#define ARGUMENT(arg)                                                         \
    va_list ap;                                                               \
    va_start(ap, what);                                                       \
    void *arg = va_arg(ap, void *);                                           \
    va_end(ap);

EXPORT int fcntl(int fd, int what, ...)
{
    ARGUMENT(arg)
    return fcntl_it(fd, what, arg);
}

EXPORT int fcntl64(int fd, int what, ...);
EXPORT int fcntl64(int fd, int what, ...)
{
    ARGUMENT(arg)
    return fcntl_it(fd, what, arg);
}

/* Count calls that share blocks. Those for terminals are not counted. */
EXPORT int ioctl(int fd, unsigned long what, ...)
{
    ARGUMENT(arg)
    bool clone = ((what >> 8) & 255) == 0x94; /* FICLONE, FICLONERANGE */
    enum fault f = clone ? take_turn("ioctl", ROOM, NULL, fd) : FAULT_NONE;
    if (f == FAULT_ERROR)
        return -1;
    int r = NEXT(int, "ioctl", int, unsigned long, ...)(fd, what, arg);
    end_call(f);
    return r;
}

/* ------------------------------------------------------------- streams --- */

enum { N_STREAMS = 32 };

static struct stream {
    FILE *f; /* NULL: the entry is free */
    int fd;
} streams[N_STREAMS];

static ssize_t stream_read(void *cookie, char *p, size_t n)
{
    return read(((struct stream *)cookie)->fd, p, n);
}

static ssize_t stream_write(void *cookie, const char *p, size_t n)
{
    size_t done = 0;
    for (ssize_t k; done < n; done += (size_t)k)
        if ((k = write(((struct stream *)cookie)->fd, p + done, n - done)) < 0)
            break;
    return (ssize_t)done;
}

static int stream_seek(void *cookie, off64_t *at, int whence)
{
    *at = lseek64(((struct stream *)cookie)->fd, *at, whence);
    return *at < 0 ? -1 : 0;
}

static int stream_close(void *cookie)
{
    struct stream *s = cookie;
    s->f = NULL;
    return close(s->fd);
}

/* A stream that reads and writes by the functions here. NULL: failed, and the
 * descriptor is still open. */
static FILE *stream_of(int fd, const char *mode)
{
    struct stream *s = streams;
    while (s < streams + N_STREAMS && s->f)
        s++;
    if (s == streams + N_STREAMS)
        raise(SIGABRT);
    s->fd = fd;
    s->f = fopencookie(s, mode,
                       (cookie_io_functions_t){ stream_read, stream_write,
                                                stream_seek, stream_close });
    return s->f;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
    bool both = strchr(mode, '+') != NULL;
    int flags = both ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
    flags |= *mode == 'w' ? O_CREAT | O_TRUNC : *mode == 'a' ? O_CREAT : 0;
    flags |= *mode == 'a' ? O_APPEND : 0;
    flags |=
        (strchr(mode, 'x') ? O_EXCL : 0) | (strchr(mode, 'e') ? O_CLOEXEC : 0);
    int fd = open(path, flags, 0666);
    FILE *f = fd >= 0 ? stream_of(fd, mode) : NULL;
    if (!f && fd >= 0)
        close(fd);
    return f;
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode);
}

EXPORT FILE *fdopen(int fd, const char *mode)
{
    return stream_of(fd, mode);
}

EXPORT FILE *tmpfile(void)
{
    enum fault f = take_turn("tmpfile", ROOM, NULL, -1);
    FILE *t = f == FAULT_ERROR ? NULL : NEXT(FILE *, "tmpfile", void)();
    if (!t)
        return NULL;
    int fd = NEXT(int, "dup", int)(NEXT(int, "fileno", FILE *)(t));
    fclose(t);
    end_call(f);
    return stream_of(fd, "w+");
}

EXPORT FILE *tmpfile64(void)
{
    return tmpfile();
}

EXPORT int fileno(FILE *f)
{
    for (const struct stream *s = streams; s < streams + N_STREAMS; s++)
        if (s->f == f)
            return s->fd;
    return NEXT(int, "fileno", FILE *)(f);
}

/* Replace standard output by such a stream. Standard error stays: messages must
 * not be lost. */
__attribute__((constructor)) static void take_stdout(void)
{
    FILE *f = getenv("GGUF_FAULT") ? stream_of(STDOUT_FILENO, "w") : NULL;
    if (f)
        stdout = f;
}

#else /* not glibc: the library does nothing */
extern int fault_nothing;
int fault_nothing;
#endif
