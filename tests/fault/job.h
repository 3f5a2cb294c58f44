/* SPDX-License-Identifier: MIT */
/* job.h - a command under test: its files, its outputs, its file calls
 *
 * Programs run in the folder "folder" of the test's own (program.h). Single
 * thread. Failures of the test itself end it with status 99.
 */
#ifndef TESTS_FAULT_JOB_H
#define TESTS_FAULT_JOB_H

#include "tests/fault/commands.h"
#include "tests/fault/fault.h"
#include "tests/fault/program.h"

/* Journal beside x.gguf until an edit in place is complete. */
#define JOB_JOURNAL "x.gguf.edit-journal"

enum { JOB_OUTPUTS = 16 };

struct output {
    char name[FOLDER_NAME];
    struct bytes old,
        complete; /* content before and after; data NULL: no file */
    mode_t mode;  /* mode of the complete output */
    bool varies;  /* its numbers vary from run to run */
};

struct job {
    const struct command *c;
    struct folder folder;
    struct output outputs[JOB_OUTPUTS];
    size_t n_outputs;
    struct program_run whole; /* a run without a fault */
    unsigned whole_kept;      /* number of kept files after that run */
    uint32_t n_calls;
    struct fault_call *calls;
    bool out_varies; /* standard output varies */
};

/* Calls of the last run. */
extern struct fault_log *job_calls;

/* Make the seeds. false: fault.so cannot be preloaded. */
bool job_begin(void);

/* Run the command, and record its outputs and its file calls. false: its
 * inputs cannot be made on this machine. Call job_forget() in both cases. */
bool job_learn(struct job *j, const struct command *c);
void job_forget(struct job *j);

/* Restore the folder from before the command. false: that failed. */
bool job_prepare(struct job *j);

/* Run args and more in the folder, with a fault at call `at'. */
void job_run(struct program_run *r, const char *args, const char *more,
             enum fault fault, uint32_t at, int error);

/* Path of NAME in the folder (program_place()); does it exist? */
const char *job_place(const char *name);
bool job_has(const char *name);

/* Is word in the list? list: words separated by blanks; NULL: empty. */
bool job_has_word(const char *list, const char *word);

#endif
