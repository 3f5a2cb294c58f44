/* SPDX-License-Identifier: MIT */
/* os_program_posix.c - the process of a program, signals and streams, by
 * POSIX */
#include "config.h"
#include "base/os/os_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the process ---- */

/* Handler of SIGBUS, which is raised by reading a mapped file that was
 * truncated or cannot be read. It calls only functions that are safe in a
 * signal handler. */
static const char *bus_line;
static int bus_status;

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code == BUS_ADRALN) { /* not a file: a bug of the program */
        signal(number, SIG_DFL);
        return;
    }
    ssize_t n;
    for (const char *p = bus_line; *p; p += n)
        if ((n = write(STDERR_FILENO, p, strlen(p))) < 0)
            break;
    _exit(bus_status);
}

/* Open closed standard streams. Otherwise the next file that is opened would
 * take the place of one, and messages would be written into a model. The
 * descriptor can be neither read nor written. */
static void occupy_standard(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

void gg_os_program_begin(const char *bus_error, int status)
{
    struct sigaction a = { .sa_sigaction = on_bus_error,
                           .sa_flags = SA_SIGINFO };
    sigemptyset(&a.sa_mask);
    bus_line = bus_error;
    bus_status = status;
    (void)sigaction(SIGBUS, &a, NULL);
    (void)signal(SIGXFSZ, SIG_IGN);
    occupy_standard();
}

void gg_os_program_arguments(int *argc, char ***argv)
{
    (void)argc, (void)argv;
}

void gg_os_program_raise_limits(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

void gg_os_program_defer_close(void)
{
    int alive[2]; /* the write end closes with this process */
    if (pipe(alive) != 0)
        return;
    pid_t child = fork();
    /* a forked child of a process with threads: only system calls are safe */
    if (child == 0) {
        char none;
        close(STDIN_FILENO); /* so that readers of the output see its end */
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        close(alive[1]);
        while (read(alive[0], &none, 1) < 0 && errno == EINTR)
            continue;
        _exit(0);
    }
    close(alive[0]);
    if (child < 0)
        close(alive[1]);
}

/* ---- stopping ---- */

void gg_os_program_catch_end(void (*fn)(int number))
{
    static const int list[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct sigaction a, old;
        memset(&a, 0, sizeof a);
        a.sa_handler = fn;
        a.sa_flags = (int)SA_RESETHAND | SA_RESTART;
        sigemptyset(&a.sa_mask);
        if (sigaction(list[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(list[i], &a, NULL);
    }
}

void gg_os_program_raise(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- streams ---- */

int gg_os_stream_fd(const char *path, bool writes)
{
    return open(path, (writes ? O_WRONLY | O_NOCTTY : O_RDONLY) | O_CLOEXEC);
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n) {
        const ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

int gg_os_stream_write(int fd, const void *data, size_t size)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, &old);
    const int rc = write_all(fd, data, size), reason = errno;
    sigaction(SIGPIPE, &old, NULL);
    errno = reason;
    return rc;
}

int gg_os_stream_stdin(void)
{
    return dup(STDIN_FILENO);
}

int gg_os_stream_silence(FILE *f)
{
    return freopen("/dev/null", "w", f) ? 0 : -1;
}

FILE *gg_os_stream_memory(char **text, size_t *size)
{
    return open_memstream(text, size);
}

int gg_os_stream_memory_end(FILE *f, char **text, size_t *size)
{
    (void)text, (void)size;
    return fclose(f);
}

/* ---- terminals ---- */

bool gg_os_terminal_is(int fd)
{
    return isatty(fd);
}

bool gg_os_terminal_has_colours(int fd)
{
    const char *term = getenv("TERM");
    return gg_os_terminal_is(fd) && term && strcmp(term, "dumb") != 0;
}

int gg_os_terminal_columns(int fd)
{
#ifdef TIOCGWINSZ
    struct winsize w;
    if (ioctl(fd, TIOCGWINSZ, &w) == 0)
        return w.ws_col;
#endif
    (void)fd;
    return 0;
}
