/* SPDX-License-Identifier: MIT */
/* discard.c - removing what a run that did not end left for a resumed one */
#include "config.h"
#include "base/outfile_int.h"
#include "base/str.h"
#include "quant/resume/record.h"
#include "quant/resume/resume.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is this journal of ours, and nobody at work on it? */
static bool is_left(int fd, struct stat *s)
{
    uint8_t head[GG_RESUME_HEAD];
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fstat(fd, s) == 0 && s->st_uid == geteuid() &&
           pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
           !memcmp(head, GG_RESUME_MAGIC, 8) && fcntl(fd, F_SETLK, &lock) == 0;
}

/* Does the journal note a temporary of this inode? */
static bool notes(int fd, uint64_t inode)
{
    uint8_t b[GG_RESUME_RECORD];
    off_t at = GG_RESUME_HEAD;
    for (; pread(fd, b, sizeof b, at) == (ssize_t)sizeof b; at += sizeof b) {
        if (!gg_resume_record_is(b))
            return false;
        if (gg_bytes_load32le(b) == GG_RESUME_PART &&
            gg_bytes_load64le(b + 8) == inode)
            return true;
    }
    return false;
}

static bool ends_in_part(const char *name)
{
    const size_t n = strlen(name), m = sizeof GG_OUTFILE_PART - 1;
    return n > m && !strcmp(name + n - m, GG_OUTFILE_PART);
}

/* The temporaries that the journal notes, in its folder. */
static enum gguf_status discard_parts(int journal, const char *folder,
                                      size_t *n, struct gguf_error *err)
{
    DIR *d = opendir(folder);
    if (!d)
        return gg_error_set_errno(err, errno, "a folder cannot be read");
    enum gguf_status st = GGUF_OK;
    for (const struct dirent *e; st == GGUF_OK && (e = readdir(d)) != NULL;) {
        struct stat s;
        if (!ends_in_part(e->d_name) ||
            fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(s.st_mode) || s.st_nlink != 1 || s.st_uid != geteuid() ||
            !notes(journal, s.st_ino))
            continue;
        if (unlinkat(dirfd(d), e->d_name, 0) == 0)
            ++*n;
        else
            st = gg_error_set_errno(err, errno, "a file cannot be removed");
    }
    closedir(d);
    return st;
}

enum gguf_status gguf_quant_discard(const char *path, size_t *n,
                                    struct gguf_error *err)
{
    const size_t size = strlen(path) + sizeof GG_RESUME;
    char *name = gg_mem_alloc(NULL, size);
    char *folder = gg_file_id_folder(NULL, path);
    struct gg_file_id id;
    struct stat s;
    int fd = -1;
    enum gguf_status st = GGUF_OK;
    *n = 0;
    if (!name || !folder)
        st = gg_error_set_nomem(err, size);
    else
        snprintf(name, size, "%s" GG_RESUME, path);
    /* what may not be opened is not ours, and stays */
    if (st == GGUF_OK && gg_file_id_open(name, &fd, NULL) == GGUF_OK &&
        fd >= 0 && is_left(fd, &s)) {
        st = discard_parts(fd, folder, n, err);
        if (st == GGUF_OK && gg_file_id_fd(&id, fd) &&
            gg_file_id_unlink(&id, name))
            ++*n;
    }
    if (fd >= 0)
        close(fd);
    gg_mem_free(NULL, name);
    gg_mem_free(NULL, folder);
    return st;
}
