/* SPDX-License-Identifier: MIT */
/* commands.h - the commands whose file calls are made to fail */
#ifndef TESTS_FAULT_COMMANDS_H
#define TESTS_FAULT_COMMANDS_H

enum {
    COMMAND_TORN = 1, /* x.gguf is half written, and its journal is there */
    COMMAND_IN_PLACE = 2, /* a failure may leave x.gguf half written, with its
                           * journal */
    COMMAND_DELETES = 4, /* deletes its inputs when all outputs are complete */
    COMMAND_REFUSED = 8, /* fails without any fault */
    COMMAND_SET = 16,    /* all outputs are new, or none */
    COMMAND_TIMES = 32   /* prints times on standard output */
};

/* A command. Words of a list are separated by blanks. SEED=NAME in a list of
 * files is the file SEED under another name. */
struct command {
    const char *name;
    const char *args;  /* arguments; the first is the program */
    const char *files; /* files that must not change */
    const char *old;   /* files that the command may replace or remove */
    const char *keeps; /* files that a failed run may leave, to be resumed */
    const char *check; /* command that succeeds for a complete output; NULL:
                        * complete outputs are equal byte by byte */
    unsigned flags;
};

/* Lines of shell that make the seeds. Programs are found by PATH. */
extern const char *const seed_commands[];

/* The table of commands. The last row's name is NULL. */
extern const struct command commands[];

#endif
