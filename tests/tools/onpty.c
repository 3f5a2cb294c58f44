/* SPDX-License-Identifier: MIT */
/* onpty.c - runs a command on a terminal and copies its output
 *
 *   onpty COLUMNS COMMAND...
 *
 * Standard output and error of the command are a terminal of COLUMNS columns.
 * The copy goes to standard output. Returns the command's status; 77 if the
 * system gives no terminal.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int open_pair(int *slave, unsigned short columns)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    const char *name = NULL;
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0)
        name = ptsname(master);
    *slave = name ? open(name, O_RDWR | O_NOCTTY) : -1;
    if (*slave < 0)
        return -1;
#ifdef TIOCSWINSZ
    struct winsize w = { .ws_row = 24, .ws_col = columns };
    if (ioctl(*slave, TIOCSWINSZ, &w) != 0)
        return -1;
#endif
    struct termios t;
    if (tcgetattr(*slave, &t) == 0) {
        t.c_oflag &= ~(tcflag_t)OPOST; /* keep bytes as they were written */
        (void)tcsetattr(*slave, TCSANOW, &t);
    }
    return master;
}

int main(int argc, char **argv)
{
    int slave, status;
    if (argc < 3)
        return 99;
    int master = open_pair(&slave, (unsigned short)atoi(argv[1]));
    if (master < 0)
        return 77;
    pid_t child = fork();
    if (child == 0) {
        close(master);
        if (dup2(slave, STDOUT_FILENO) < 0 || dup2(slave, STDERR_FILENO) < 0)
            _exit(99);
        close(slave);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    close(slave);
    char buf[4096];
    for (ssize_t n;
         (n = read(master, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR);)
        if (n > 0)
            fwrite(buf, 1, (size_t)n, stdout);
    if (child < 0 || waitpid(child, &status, 0) != child || fclose(stdout))
        return 99;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
