/* SPDX-License-Identifier: MIT */
/* os_disk_posix.c - space, shared extents and waiting for the disk, by POSIX
 * and Linux */
#include "config.h"
#include "base/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#if HAVE_LINUX_FS_H && HAVE_SYS_IOCTL_H
#include <linux/fs.h>
#include <sys/ioctl.h>
#endif

#define MAX_TRANSFER (UINT64_C(1) << 30)

static int fail_unsupported(void)
{
    errno = ENOSYS;
    return -1;
}

/* Convert the facts v about a file system if rc says that they were filled. */
static int take_space(int rc, const struct statvfs *v, uint64_t *n)
{
    if (rc != 0)
        return -1;
    if (v->f_frsize == 0 ||
        v->f_blocks == 0) /* the file system has no limit */
        return fail_unsupported();
    *n = (uint64_t)v->f_bavail <= UINT64_MAX / v->f_frsize
             ? (uint64_t)v->f_bavail * v->f_frsize
             : UINT64_MAX;
    return 0;
}

int gg_os_free_space_fd(int fd, uint64_t *n)
{
    struct statvfs v;
    return take_space(fstatvfs(fd, &v), &v, n);
}

int gg_os_free_space(const char *path, uint64_t *n)
{
    struct statvfs v;
    return take_space(statvfs(path, &v), &v, n);
}

int gg_os_reserve_space(int fd, uint64_t size)
{
#if HAVE_FALLOCATE
    /* Not posix_fallocate(): it writes every block if the file system cannot
     * allocate. */
    return fallocate(fd, 0, 0, (off_t)size);
#else
    (void)fd, (void)size;
    return fail_unsupported();
#endif
}

int gg_os_copy_range(int in_fd, uint64_t in_off, int fd, uint64_t off,
                     uint64_t size, uint64_t *done)
{
    *done = 0;
#if HAVE_COPY_FILE_RANGE
    while (*done < size) {
        off_t from = (off_t)(in_off + *done), to = (off_t)(off + *done);
        const uint64_t want =
            size - *done < MAX_TRANSFER ? size - *done : MAX_TRANSFER;
        const ssize_t n =
            copy_file_range(in_fd, &from, fd, &to, (size_t)want, 0);
        if (n > 0)
            *done += (uint64_t)n;
        else if (n < 0 && (gg_os_error_is_full(errno) || errno == EIO))
            return -1;
        else if (n == 0 || errno != EINTR)
            break; /* other file system, old kernel, end of file */
    }
#else
    (void)in_fd, (void)in_off, (void)fd, (void)off, (void)size;
#endif
    return 0;
}

bool gg_os_can_share(int fd, int in_fd)
{
#if defined(FICLONERANGE)
    struct stat s;
    if (fstat(in_fd, &s) != 0 || s.st_size == 0)
        return false;
    struct file_clone_range one = { .src_fd = in_fd };
    if (s.st_size > s.st_blksize) /* otherwise 0: up to the end */
        one.src_length = (uint64_t)s.st_blksize;
    return ioctl(fd, FICLONERANGE, &one) == 0 && ftruncate(fd, 0) == 0;
#else
    (void)fd, (void)in_fd;
    return false;
#endif
}

int gg_os_clone(int fd, int in_fd)
{
#if defined(FICLONE)
    return ioctl(fd, FICLONE, in_fd) == 0 ? 0 : -1;
#else
    (void)fd, (void)in_fd;
    return fail_unsupported();
#endif
}

int gg_os_sync(int fd)
{
#if defined(__APPLE__)
    if (fcntl(fd, F_FULLFSYNC) == 0) /* fsync() leaves bytes in the drive */
        return 0;
#endif
    return fsync(fd);
}

int gg_os_sync_range(int fd, uint64_t off, uint64_t size, uint64_t ahead)
{
#ifdef SYNC_FILE_RANGE_WRITE
    const bool bad =
        sync_file_range(fd, (off_t)off, (off_t)ahead, SYNC_FILE_RANGE_WRITE) !=
            0 ||
        sync_file_range(fd, (off_t)off, (off_t)size,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER) != 0;
    return bad ? -1 : 0;
#else
    (void)fd, (void)off, (void)size, (void)ahead;
    return fail_unsupported();
#endif
}

int gg_os_sync_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* writable and not readable: cannot be synced */
    const bool bad = fsync(fd) != 0 && errno != EINVAL && errno != EROFS;
    const int e = errno;
    close(fd);
    errno = e;
    return bad ? -1 : 0;
}
