/* SPDX-License-Identifier: MIT */
/* job.h - a command that is tried: its files, what it makes, its file calls
 *
 * The folder that programs run in is "folder" of the test's own (program.h).
 * Single thread; what the test itself cannot do ends it with status 99.
 */
#ifndef TESTS_FAULT_JOB_H
#define TESTS_FAULT_JOB_H

#include "tests/fault/commands.h"
#include "tests/fault/fault.h"
#include "tests/fault/program.h"

/* Beside x.gguf, as long as an edit in place is not complete. */
#define JOB_JOURNAL "x.gguf.edit-journal"

enum { JOB_OUTPUTS = 16 };

struct output {
    char name[FOLDER_NAME];
    struct bytes old, complete; /* without data: there is none */
    mode_t mode;                /* of the complete one */
    bool varies;                /* in its numbers, from run to run */
};

struct job {
    const struct command *c;
    struct folder folder;
    struct output outputs[JOB_OUTPUTS];
    size_t n_outputs;
    struct program_run whole; /* without a fault */
    unsigned whole_kept;      /* of what it keeps is there then */
    uint32_t n_calls;
    struct fault_call *calls;
    bool out_varies; /* standard output is not always the same */
};

/* Of the last run. */
extern struct fault_log *job_calls;

/* Make the seeds. False: there is nothing to preload. */
bool job_begin(void);

/* Learn what the command makes, and with which calls. False: what it works on
 * cannot be had here. To be forgotten in any case. */
bool job_learn(struct job *j, const struct command *c);
void job_forget(struct job *j);

/* Make the folder what it is before the command; false: it cannot be had. */
bool job_prepare(struct job *j);

/* Run args and more in the folder, with this fault at this call. */
void job_run(struct program_run *r, const char *args, const char *more,
             enum fault fault, uint32_t at, int error);

/* NAME in the folder, as program_place has it; is it there? */
const char *job_place(const char *name);
bool job_has(const char *name);

/* Is word one of the list, which may be NULL? */
bool job_has_word(const char *list, const char *word);

#endif
