/* SPDX-License-Identifier: MIT */
/* os_file_posix.c - files, their names and folders, by POSIX */
#include "config.h"
#include "base/os/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if HAVE_FLOCK
#include <sys/file.h>
#endif

/* Linux caps one transfer a little below 2 GiB; this also keeps it
 * interruptible. */
#define MAX_TRANSFER (UINT64_C(1) << 30)

#if defined(__APPLE__)
#define st_mtim st_mtimespec
#endif

/* ---- facts ---- */

static enum gg_os_kind kind_of(mode_t mode)
{
    return S_ISREG(mode)    ? GG_OS_FILE
           : S_ISDIR(mode)  ? GG_OS_FOLDER
           : S_ISLNK(mode)  ? GG_OS_LINK
           : S_ISFIFO(mode) ? GG_OS_PIPE
           : S_ISCHR(mode)  ? GG_OS_CHARACTERS
           : S_ISBLK(mode)  ? GG_OS_BLOCKS
           : S_ISSOCK(mode) ? GG_OS_SOCKET
                            : GG_OS_OTHER;
}

/* Convert x if rc says that it was filled. Returns rc. */
static int take_stat(struct gg_os_stat *s, int rc, const struct stat *x)
{
    if (rc == 0)
        *s = (struct gg_os_stat){ .kind = kind_of(x->st_mode),
                                  .dev = (uint64_t)x->st_dev,
                                  .ino = (uint64_t)x->st_ino,
                                  .size = (uint64_t)x->st_size,
                                  .disk_size = (uint64_t)x->st_blocks * 512,
                                  .n_links = (uint64_t)x->st_nlink,
                                  .owner = (uint64_t)x->st_uid,
                                  .group = (uint64_t)x->st_gid,
                                  .mode = (unsigned)x->st_mode & 0777,
                                  .sticky = x->st_mode & S_ISVTX,
                                  .mtime = x->st_mtim };
    return rc;
}

int gg_os_stat(const char *path, struct gg_os_stat *s)
{
    struct stat x;
    return take_stat(s, stat(path, &x), &x);
}

int gg_os_stat_link(const char *path, struct gg_os_stat *s)
{
    struct stat x;
    return take_stat(s, lstat(path, &x), &x);
}

int gg_os_stat_fd(int fd, struct gg_os_stat *s)
{
    struct stat x;
    return take_stat(s, fstat(fd, &x), &x);
}

int gg_os_find(const char *path)
{
    return access(path, F_OK);
}

/* ---- opening ---- */

int gg_os_open(const char *path, enum gg_os_open how)
{
    static const int flags[] = {
        [GG_OS_READ] = O_RDONLY | O_NONBLOCK,
        [GG_OS_WRITE] = O_WRONLY | O_NONBLOCK,
        [GG_OS_UPDATE] = O_RDWR | O_NONBLOCK | O_NOFOLLOW,
        [GG_OS_NEW] = O_RDWR | O_CREAT | O_EXCL,
    };
    const int fd = open(path, flags[how] | O_CLOEXEC | O_NOCTTY, 0666);
#if defined(__FreeBSD__)
    if (fd < 0 && how == GG_OS_UPDATE && errno == EMLINK)
        errno = ELOOP; /* its name for a symbolic link */
#endif
    return fd;
}

/* Path of an open file that linkat() follows. */
static void format_proc(char out[64], int fd)
{
    snprintf(out, 64, "/proc/self/fd/%d", fd);
}

int gg_os_open_nameless(const char *folder)
{
#if defined(O_TMPFILE)
    const int fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    char proc[64];
    struct stat x;
    format_proc(proc, fd);
    if (lstat(proc, &x) == 0) /* linking by this name will work */
        return fd;
    close(fd);
#else
    (void)folder;
#endif
    errno = ENOSYS;
    return -1;
}

int gg_os_duplicate(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void gg_os_close(int fd)
{
    (void)close(fd);
}

FILE *gg_os_stream_open(const char *path, const char *mode)
{
    char own[8];
    snprintf(own, sizeof own, "%.4se", mode); /* e: O_CLOEXEC */
    return fopen(path, own);
}

/* ---- bytes ---- */

int gg_os_read_at(int fd, void *data, uint64_t size, uint64_t off,
                  uint64_t *done)
{
    char *p = data;
    for (*done = 0; *done < size;) {
        const uint64_t want =
            size - *done < MAX_TRANSFER ? size - *done : MAX_TRANSFER;
        const ssize_t n =
            pread(fd, p + *done, (size_t)want, (off_t)(off + *done));
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return -1;
        *done += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

int gg_os_write_at(int fd, const void *data, uint64_t size, uint64_t off,
                   uint64_t *done)
{
    const char *p = data;
    for (*done = 0; *done < size;) {
        const uint64_t want =
            size - *done < MAX_TRANSFER ? size - *done : MAX_TRANSFER;
        const ssize_t n =
            pwrite(fd, p + *done, (size_t)want, (off_t)(off + *done));
        if (n < 0 && errno != EINTR)
            return -1;
        *done += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

int gg_os_set_size(int fd, uint64_t size)
{
    return ftruncate(fd, (off_t)size);
}

int gg_os_touch(int fd)
{
    return futimens(fd, NULL);
}

int gg_os_copy_access(int fd, const struct gg_os_stat *own,
                      const struct gg_os_stat *like)
{
    if ((own->owner != like->owner || own->group != like->group) &&
        fchown(fd, (uid_t)like->owner, (gid_t)like->group) != 0 &&
        own->group != like->group)
        (void)!fchown(fd, (uid_t)-1, (gid_t)like->group);
    return fchmod(fd, (mode_t)like->mode);
}

/* ---- locks ---- */

int gg_os_lock_process(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fcntl(fd, F_SETLK, &lock) == 0 ? 0 : -1;
}

int gg_os_lock_fd(int fd)
{
#if HAVE_FLOCK
    return flock(fd, LOCK_EX | LOCK_NB);
#else
    (void)fd;
    errno = ENOSYS;
    return -1;
#endif
}

void gg_os_unlock_fd(int fd)
{
#if HAVE_FLOCK
    (void)flock(fd, LOCK_UN);
#else
    (void)fd;
#endif
}

/* ---- names ---- */

int gg_os_rename(const char *from, const char *to)
{
    return rename(from, to);
}

int gg_os_rename_new(const char *from, const char *to)
{
#if HAVE_RENAMEAT2 && defined(RENAME_NOREPLACE)
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
#else
    (void)from, (void)to;
    errno = ENOSYS;
    return -1;
#endif
}

int gg_os_link(const char *from, const char *to)
{
    /* link() may follow a symbolic link */
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int gg_os_link_fd(int fd, const char *to)
{
    char proc[64];
    format_proc(proc, fd);
    return linkat(AT_FDCWD, proc, AT_FDCWD, to, AT_SYMLINK_FOLLOW);
}

int gg_os_remove(const char *path)
{
    return unlink(path);
}

char *gg_os_real_path(const char *path)
{
    return realpath(path, NULL);
}

/* ---- folders ---- */

int gg_os_make_folder(const char *path)
{
    return mkdir(path, 0777);
}

int gg_os_remove_folder(const char *path)
{
    return rmdir(path);
}

/* struct gg_os_folder is never defined: it stands for DIR. */
static DIR *dir_of(struct gg_os_folder *d)
{
    return (DIR *)d;
}

struct gg_os_folder *gg_os_folder_open(const char *path)
{
    return (struct gg_os_folder *)opendir(path);
}

const char *gg_os_folder_next(struct gg_os_folder *d)
{
    const struct dirent *e = readdir(dir_of(d));
    return e ? e->d_name : NULL;
}

int gg_os_folder_stat(struct gg_os_folder *d, const char *name,
                      struct gg_os_stat *s)
{
    struct stat x;
    return take_stat(
        s, fstatat(dirfd(dir_of(d)), name, &x, AT_SYMLINK_NOFOLLOW), &x);
}

int gg_os_folder_remove(struct gg_os_folder *d, const char *name)
{
    return unlinkat(dirfd(dir_of(d)), name, 0);
}

void gg_os_folder_close(struct gg_os_folder *d)
{
    (void)closedir(dir_of(d));
}
