/* SPDX-License-Identifier: MIT */
/* program.c - runs the tools as programs */
#include "config.h"
#include "tests/fault/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[PROGRAM_PATH / 2]; /* the test's own folder */
static char build[PROGRAM_PATH / 2];
static char bin[PROGRAM_PATH]; /* folder of the tools */

static const char *join_path(const char *folder, const char *name)
{
    static char path[4][PROGRAM_PATH];
    static unsigned turn;
    char *p = path[turn++ % 4];
    if (snprintf(p, PROGRAM_PATH, "%s/%s", folder, name) >= PROGRAM_PATH)
        exit(99);
    return p;
}

const char *program_place(const char *name)
{
    return join_path(top, name);
}

const char *program_built(const char *name)
{
    return join_path(build, name);
}

bool program_begin(const char *test)
{
    const char *emulator = getenv("EMULATOR"), *from = getenv("builddir");
    char real[PATH_MAX];
    if (emulator && *emulator)
        return false;
    if (!realpath(from ? from : ".", real) || strlen(real) >= sizeof build ||
        !getcwd(top, sizeof top - 64))
        exit(99);
    strcpy(build, real);
    /* tools in the build folder are libtool's scripts, which start the
     * programs */
    bool libtool = access(program_built(".libs/gguf-edit"), X_OK) == 0;
    strcpy(bin, libtool ? program_built(".libs") : build);
    if (libtool)
        setenv("LD_LIBRARY_PATH", bin, 1);
    snprintf(top + strlen(top), 64, "/%.40s-XXXXXX", test);
    if (!mkdtemp(top))
        exit(99);
    return true;
}

void program_end(void)
{
    char cmd[PROGRAM_PATH];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", top);
    if (system(cmd) != 0)
        exit(99);
}

void program_shell(const char *folder, const char *line)
{
    char cmd[8 * PROGRAM_PATH];
    const char *in = program_place(folder);
    snprintf(cmd, sizeof cmd,
             "mkdir -p '%s' && cd '%s' && "
             "PATH='%s:%s/tests/tools':$PATH && { %s; }",
             in, in, bin, build, line);
    if (system(cmd) != 0) {
        printf("# failed: %s\n", line);
        exit(99);
    }
}

void program_run_free(struct program_run *r)
{
    free(r->out.data);
    free(r->err.data);
    *r = (struct program_run){ .last = "" };
}

void program_split(char *args, char **argv)
{
    size_t n = 0;
    for (char *w = strtok(args, " "); w && n + 1 < PROGRAM_ARGS;
         w = strtok(NULL, " "))
        argv[n++] = w;
    argv[n] = NULL;
}

static void redirect_fd(int fd, const char *path, int flags)
{
    int to = open(path, flags, 0644);
    if (to < 0 || dup2(to, fd) < 0)
        _exit(98);
    close(to);
}

static void start_program(const char *folder, const char *args,
                          const char *more, const char *const *env)
{
    char words[1024], *argv[PROGRAM_ARGS];
    int anew = O_WRONLY | O_CREAT | O_TRUNC;
    snprintf(words, sizeof words, "%s %s", args, more);
    program_split(words, argv);
    redirect_fd(STDIN_FILENO, "/dev/null", O_RDONLY);
    redirect_fd(STDOUT_FILENO, program_place("out"), anew);
    redirect_fd(STDERR_FILENO, program_place("err"), anew);
    if (chdir(program_place(folder)))
        _exit(98);
    for (; *env; env += 2)
        setenv(env[0], env[1], 1);
    alarm(30);
    execv(join_path(bin, argv[0]), argv);
    _exit(98);
}

static const char *last_line(struct bytes *b)
{
    while (b->size && b->data[b->size - 1] == '\n')
        b->data[--b->size] = '\0';
    const char *s = b->data ? strrchr(b->data, '\n') : NULL;
    return s ? s + 1 : b->data ? b->data : "";
}

void program_run(struct program_run *r, const char *folder, const char *args,
                 const char *more, const char *const *env)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        start_program(folder, args, more, env);
    *r = (struct program_run){ .rc = -1 };
    while (waitpid(pid, &r->status, 0) < 0 && errno == EINTR)
        ;
    snprintf(r->pid, sizeof r->pid, "%ld", (long)pid);
    if (WIFEXITED(r->status))
        r->rc = WEXITSTATUS(r->status);
    r->out = bytes_of(program_place("out"));
    r->err = bytes_of(program_place("err"));
    r->last = last_line(&r->err);
}
