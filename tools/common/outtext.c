/* SPDX-License-Identifier: MIT */
/* outtext.c - a text output file of a tool */
#include "config.h"
#include "tools/common/outtext.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum gguf_status fail_output(enum gguf_status st, int reason,
                                    struct gguf_error *err)
{
    gguf_error_clear(err);
    err->status = st;
    err->sys_errno = reason;
    snprintf(err->message, sizeof err->message, "cannot be written: %s",
             strerror(reason));
    return st;
}

/* Does path lead to a pipe or device, which can only be written to? *reason is
 * 0, or the errno if this cannot be found out. */
static bool is_stream(const char *path, int *reason)
{
    struct stat s;
    bool there = stat(path, &s) == 0;
    *reason = there || errno == ENOENT || errno == ENOTDIR ? 0 : errno;
    return there && (S_ISCHR(s.st_mode) || S_ISFIFO(s.st_mode));
}

enum gguf_status outtext_open(struct outtext *o, const char *path, int force,
                              struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    *o = (struct outtext)OUTTEXT_INIT;
    int reason;
    if (is_stream(path, &reason)) {
        o->fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
        if (o->fd < 0)
            st = fail_output(GGUF_E_IO, errno, err);
    } else if (reason) {
        st = fail_output(GGUF_E_IO, reason, err);
    } else {
        st = gguf_outfile_open(&o->file, path, force, NULL, err);
    }
    if (st == GGUF_OK) {
        o->f = open_memstream(&o->buf, &o->n);
        if (!o->f)
            st = fail_output(GGUF_E_NOMEM, errno, err);
    }
    if (st != GGUF_OK)
        outtext_abort(o);
    return st;
}

static bool write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* A closed pipe must be an error, not a signal that ends the tool silently. */
static enum gguf_status write_stream(const struct outtext *o,
                                     struct gguf_error *err)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, &old);
    bool good = write_all(o->fd, o->buf, o->n);
    int reason = errno;
    sigaction(SIGPIPE, &old, NULL);
    return good ? GGUF_OK : fail_output(GGUF_E_IO, reason, err);
}

enum gguf_status outtext_commit(struct outtext *o, struct gguf_error *err)
{
    bool bad = ferror(o->f) != 0;
    bad |= fclose(o->f) != 0;
    o->f = NULL;
    enum gguf_status st =
        bad ? fail_output(GGUF_E_NOMEM, ENOMEM, err) : GGUF_OK;
    if (st == GGUF_OK && o->fd >= 0) {
        st = write_stream(o, err);
    } else if (st == GGUF_OK) {
        st = gguf_outfile_write(o->file, o->buf, o->n, err);
        if (st == GGUF_OK)
            st = gguf_outfile_commit(o->file, err);
    }
    outtext_abort(o);
    return st;
}

void outtext_abort(struct outtext *o)
{
    if (o->f)
        fclose(o->f);
    free(o->buf);
    gguf_outfile_close(o->file);
    if (o->fd >= 0)
        close(o->fd);
    *o = (struct outtext)OUTTEXT_INIT;
}
