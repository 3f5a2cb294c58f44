/* SPDX-License-Identifier: MIT */
/* program.h - the tools as programs that a test starts
 *
 * Single thread; what the test itself cannot do ends it with status 99.
 */
#ifndef TESTS_FAULT_PROGRAM_H
#define TESTS_FAULT_PROGRAM_H

#include "tests/fault/folder.h"

enum { PROGRAM_PATH = 1024, PROGRAM_ARGS = 24 };

/* Find the tools and make a folder for the test. False: they cannot be started
 * from here, since they are those of another machine. */
bool program_begin(const char *test);
/* Remove the folder and all in it. */
void program_end(void);

/* NAME in the test's folder, or in the build folder; absolute, good for four
 * calls. */
const char *program_place(const char *name);
const char *program_built(const char *name);

/* Run a line of shell in the folder NAME of the test's, which is made, with the
 * tools and those of tests/tools in PATH; a failure ends the test. */
void program_shell(const char *folder, const char *line);

struct program_run {
    int status; /* of waitpid */
    int rc;     /* exit status, or -1 */
    char pid[16];
    struct bytes out, err;
    const char *last; /* line of err; "" */
};

/* Run args (separated by blanks, the tool's name first, then more) in the
 * folder NAME of the test's, with env, pairs of name and value up to NULL, in
 * its environment. What takes over 30 s ends by SIGALRM. */
void program_run(struct program_run *r, const char *folder, const char *args,
                 const char *more, const char *const *env);
void program_run_free(struct program_run *r);

/* Cuts args at blanks; argv has PROGRAM_ARGS places, the last is NULL. */
void program_split(char *args, char **argv);

#endif
