/* SPDX-License-Identifier: MIT */
/* timed.c - runs a program and measures its time and memory
 *
 *   timed FILE PROGRAM [ARGUMENT]...
 *
 * Appends a line to FILE: seconds of wall time, seconds of processor time
 * (user and system, all threads), and the largest resident memory in KiB.
 * Returns the program's status.
 */
#include "config.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double to_seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

int main(int argc, char **argv)
{
    struct timespec t0, t1;
    struct rusage u;
    int status = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: timed FILE PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &t0);
    const pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &u) != pid) {
        perror("timed");
        return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &t1);
    FILE *f = fopen(argv[1], "a");
    if (!f ||
        fprintf(f, "%.4f %.4f %ld\n",
                (double)(t1.tv_sec - t0.tv_sec) +
                    1e-9 * (double)(t1.tv_nsec - t0.tv_nsec),
                to_seconds(u.ru_utime) + to_seconds(u.ru_stime),
                (long)u.ru_maxrss) < 0 ||
        fclose(f)) {
        perror(argv[1]);
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
