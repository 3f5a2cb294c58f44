/* SPDX-License-Identifier: MIT */
/* program.h - runs the tools as programs
 *
 * Single thread. Failures of the test itself end it with status 99.
 */
#ifndef TESTS_FAULT_PROGRAM_H
#define TESTS_FAULT_PROGRAM_H

#include "tests/fault/folder.h"

enum { PROGRAM_PATH = 1024, PROGRAM_ARGS = 24 };

/* Find the tools and make a folder for the test. false: the tools are programs
 * for another machine. */
bool program_begin(const char *test);
/* Remove the folder and its content. */
void program_end(void);

/* Absolute path of NAME in the test's folder, or in the build folder. Valid
 * for four calls. */
const char *program_place(const char *name);
const char *program_built(const char *name);

/* Run a line of shell in the folder NAME of the test's folder, which is
 * created. PATH has the tools and the programs of tests/tools. A failure ends
 * the test. */
void program_shell(const char *folder, const char *line);

struct program_run {
    int status; /* status of waitpid() */
    int rc;     /* exit status; -1: a signal */
    char pid[16];
    struct bytes out, err;
    const char *last; /* last line of err; "": none */
};

/* Run a program in the folder NAME of the test's folder. args: words separated
 * by blanks, the program first; `more' is appended. env: pairs of name and
 * value, ended by NULL. A program that runs over 30 s gets SIGALRM. */
void program_run(struct program_run *r, const char *folder, const char *args,
                 const char *more, const char *const *env);
void program_run_free(struct program_run *r);

/* Cut args at blanks into argv[PROGRAM_ARGS], ended by NULL. */
void program_split(char *args, char **argv);

#endif
