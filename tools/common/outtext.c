/* SPDX-License-Identifier: MIT */
/* outtext.c - a text output file of a tool */
#include "config.h"
#include "tools/common/outtext.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
    struct gg_os_stat s;
    bool there = gg_os_stat(path, &s) == 0;
    *reason = there || errno == ENOENT || errno == ENOTDIR ? 0 : errno;
    return there && (s.kind == GG_OS_CHARACTERS || s.kind == GG_OS_PIPE);
}

enum gguf_status outtext_open(struct outtext *o, const char *path, int force,
                              struct gguf_error *err)
{
    enum gguf_status st = GGUF_OK;
    *o = (struct outtext)OUTTEXT_INIT;
    int reason;
    if (is_stream(path, &reason)) {
        o->fd = gg_os_stream_fd(path, true);
        if (o->fd < 0)
            st = fail_output(GGUF_E_IO, errno, err);
    } else if (reason) {
        st = fail_output(GGUF_E_IO, reason, err);
    } else {
        st = gguf_outfile_open(&o->file, path, force, NULL, err);
    }
    if (st == GGUF_OK) {
        o->f = gg_os_stream_memory(&o->buf, &o->n);
        if (!o->f)
            st = fail_output(GGUF_E_NOMEM, errno, err);
    }
    if (st != GGUF_OK)
        outtext_abort(o);
    return st;
}

static enum gguf_status write_stream(const struct outtext *o,
                                     struct gguf_error *err)
{
    return gg_os_stream_write(o->fd, o->buf, o->n) == 0
               ? GGUF_OK
               : fail_output(GGUF_E_IO, errno, err);
}

enum gguf_status outtext_commit(struct outtext *o, struct gguf_error *err)
{
    bool bad = ferror(o->f) != 0;
    bad |= gg_os_stream_memory_end(o->f, &o->buf, &o->n) != 0;
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
        (void)gg_os_stream_memory_end(o->f, &o->buf, &o->n);
    free(o->buf);
    gguf_outfile_close(o->file);
    if (o->fd >= 0)
        gg_os_close(o->fd);
    *o = (struct outtext)OUTTEXT_INIT;
}
