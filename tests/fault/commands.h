/* SPDX-License-Identifier: MIT */
/* commands.h - the commands whose file calls are made to fail, or to be the
 * last */
#ifndef TESTS_FAULT_COMMANDS_H
#define TESTS_FAULT_COMMANDS_H

enum {
    COMMAND_TORN = 1, /* x.gguf is half written, with the journal of that */
    COMMAND_IN_PLACE = 2, /* x.gguf may be so, with a journal, afterwards */
    COMMAND_DELETES = 4,  /* its inputs, when all outputs are complete */
    COMMAND_REFUSED = 8,  /* it fails by itself */
    COMMAND_SET = 16,     /* its outputs are one: all are new, or none */
    COMMAND_TIMES = 32    /* it says on standard output how long it took */
};

/* Lists are separated by blanks; in those of files, SEED=NAME is the file SEED
 * by another name. */
struct command {
    const char *name;
    const char *args;  /* the program first */
    const char *files; /* that must stay as they are */
    const char *old;   /* that may be replaced or removed */
    const char *keeps; /* that a run which fails may leave, to be gone on
                        * with */
    const char *check; /* what succeeds on a complete output, where two are
                        * not alike; or NULL */
    unsigned flags;
};

/* Of shell, one a line, what makes the seeds; the programs are found by
 * PATH. */
extern const char *const seed_commands[];

/* The last one's name is NULL. */
extern const struct command commands[];

#endif
