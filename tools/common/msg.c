/* SPDX-License-Identifier: MIT */
/* msg.c - messages of a tool, and its exit status */
#include "config.h"
#include "tools/common/msg.h"
#include "tools/common/address.h"
#include "tools/common/option_hint.h"
#include "tools/common/text.h"
#include "gguf/text.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *tool_name = "gguf";
static msg_gate_fn *msg_gate;
static int out_errno; /* errno of a failed msg_flush() */
/* Buffer for a message, which one system call writes so that messages of other
 * processes do not mix with it. POSIX guarantees that for 512 bytes of a pipe,
 * Linux for 4096. */
static char err_line[4096];

/* Line that the program ends with if a mapped file cannot be read. */
static char bus_error[160];

void msg_init(const char *tool)
{
    tool_name = tool;
    (void)setvbuf(stderr, err_line, _IOLBF, sizeof err_line);
    snprintf(bus_error, sizeof bus_error,
             "%.60s: a file became shorter, or its disk failed, while it was "
             "read\n",
             tool);
    gg_os_program_begin(bus_error, MSG_FAILED);
}

const char *msg_tool(void)
{
    return tool_name;
}

void msg_set_gate(msg_gate_fn *gate)
{
    msg_gate = gate;
}

static void print_line(const char *file, const char *kind, const char *fmt,
                       va_list ap) MSG_PRINTF(3, 0);

/* Print one line that is harmless on a terminal, whatever arguments and files
 * contain, and shows no secrets of addresses. kind NULL: an error. */
static void print_line(const char *file, const char *kind, const char *fmt,
                       va_list ap)
{
    char small[512], *line = small;
    const char *who = msg_gate ? msg_gate(!kind) : "";
    va_list again;
    if (!who)
        return;
    if (gg_os_terminal_is(GG_OS_STDOUT)) /* keeps the order of lines there */
        msg_flush();
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    if (n >= (int)sizeof small && (line = malloc((size_t)n + 1)) != NULL)
        (void)vsnprintf(line, (size_t)n + 1, fmt, again);
    va_end(again);
    fprintf(stderr, "%s: %s", tool_name, who);
    if (file) {
        char name[1024];
        gguf_text_escape(name, sizeof name,
                         (struct gguf_str){ file, strlen(file) });
        address_remove_secrets(name);
        fprintf(stderr, "%s: ", name);
    }
    fputs(kind ? kind : "", stderr);
    line = line ? line : small;
    address_remove_secrets(line);
    text_put(stderr, line);
    fputc('\n', stderr);
    (void)fflush(stderr); /* Windows has no buffers of lines */
    if (line != small)
        free(line);
}

bool msg_error(const char *file, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_line(file, NULL, fmt, ap);
    va_end(ap);
    return false;
}

void msg_info(const char *file, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_line(file, "", fmt, ap);
    va_end(ap);
}

void msg_warn(const char *file, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_line(file, "warning: ", fmt, ap);
    va_end(ap);
}

bool msg_fail(const char *file, const struct gguf_error *err)
{
    char at[40] = "";
    if (err->offset != GGUF_NO_OFFSET) {
        snprintf(at, sizeof at, "byte %" PRIu64, err->offset);
        const char *there = strstr(err->message, at);
        size_t n = strlen(at);
        while (there && there[n] >= '0' && there[n] <= '9')
            there = strstr(there + n, at);
        if (there)
            at[0] = '\0';
    }
    char hint[200];
    const char *help = err->status == GGUF_E_EXIST ? " (--force replaces it)"
                       : err->sys_errno == EISDIR  ? hint_adapter(file)
                       : err->status == GGUF_E_NOTFOUND
                           ? hint_repository(file, hint, sizeof hint)
                           : hint_limit(err, hint, sizeof hint);
    return msg_error(file, "%s%s%s%s%s", err->message, at[0] ? " (" : "", at,
                     at[0] ? ")" : "", help);
}

FILE *msg_open_memory(char **text, size_t *size)
{
    return msg_must(gg_os_stream_memory(text, size));
}

void msg_close_memory(FILE *f, char **text, size_t *size)
{
    const bool failed = ferror(f) != 0;
    if (gg_os_stream_memory_end(f, text, size) != 0 || failed)
        (void)msg_must(NULL);
}

void *msg_must(void *p)
{
    if (!p) {
        msg_error(NULL, "out of memory");
        exit(MSG_FAILED);
    }
    return p;
}

char *msg_copy_n(const char *bytes, size_t n)
{
    char *copy = msg_must(malloc(n + 1));
    if (n)
        memcpy(copy, bytes, n);
    copy[n] = '\0';
    return copy;
}

char *msg_copy(const char *text)
{
    return msg_copy_n(text, strlen(text));
}

void *msg_grow(void *p, size_t *room, size_t n, size_t item_size)
{
    if (n <= *room)
        return p;
    size_t want = *room <= SIZE_MAX / 2 ? 2 * *room : SIZE_MAX;
    want = want > n ? want : n;
    p = msg_must(want <= SIZE_MAX / item_size ? realloc(p, want * item_size)
                                              : NULL);
    *room = want;
    return p;
}

void msg_flush(void)
{
    if (fflush(stdout) != 0 && !out_errno)
        out_errno = errno;
}

int msg_exit(int status)
{
    struct gg_os_stat s;
    const int failed = ferror(stdout);
    const bool to_pipe =
        gg_os_stat_fd(GG_OS_STDOUT, &s) == 0 && s.kind == GG_OS_PIPE;
    errno = 0;
    if (fclose(stdout) != 0 || failed) {
        const int why = out_errno ? out_errno : errno;
        /* no message if the reader closed the pipe: without a signal for it,
         * the reason may be lost */
        if (why != EPIPE && !to_pipe)
            msg_error(NULL, "standard output: %s",
                      why ? strerror(why) : "not everything was written");
        if (status == MSG_DONE)
            status = MSG_FAILED;
    }
    return status;
}
