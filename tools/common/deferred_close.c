/* SPDX-License-Identifier: MIT */
/* deferred_close.c - exiting before the file system has freed a file */
#include "config.h"
#include "tools/common/deferred_close.h"

#include <errno.h>
#include <unistd.h>

void deferred_close_begin(void)
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
