/* SPDX-License-Identifier: MIT */
/* fault.h - shared memory of check-fault and the library that makes file calls
 * fail
 *
 * A program started with LD_PRELOAD=fault.so and GGUF_FAULT=PATH counts its
 * file calls in the file PATH, which is a struct fault_log, and fails at the
 * call that the driver chose there. Calls of child processes are not counted
 * and do not fail.
 */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stdint.h>

enum { FAULT_MAX_CALLS = 4096, FAULT_NAME = 20, FAULT_PATH = 44 };

enum fault {
    FAULT_NONE,        /* count only */
    FAULT_KILL_BEFORE, /* SIGKILL instead of the call */
    FAULT_KILL_HALF,   /* SIGKILL after half of the bytes */
    FAULT_KILL_AFTER,  /* SIGKILL after the call */
    FAULT_TERM,        /* SIGTERM, then the call */
    FAULT_ERROR,       /* the call fails with fault_log.error */
    FAULT_FULL,        /* this and all later calls that need room fail with
                        * ENOSPC */
    FAULT_DEAD,        /* this and all later calls that change a file or folder
                        * fail with EIO */
    FAULT_SHORT        /* reads and writes do half of their bytes */
};

/* Kinds of calls, for FAULT_FULL, FAULT_DEAD and FAULT_SHORT. */
enum {
    FAULT_CHANGES = 1, /* changes a file or a folder */
    FAULT_ROOM = 2,    /* may need room on the disk */
    FAULT_PARTS = 4    /* may do fewer bytes than asked */
};

struct fault_call {
    char name[FAULT_NAME];
    char path[FAULT_PATH]; /* end of the path; "": no path */
    uint32_t kind;
};

struct fault_log {
    uint32_t fault; /* enum fault, set by the driver */
    uint32_t at;    /* number of the call that fails, from 1 */
    int32_t error;  /* errno of FAULT_ERROR */
    uint32_t here;  /* 1: the library was loaded */
    uint32_t hits;  /* calls that failed or were cut */
    uint32_t n_calls;
    struct fault_call calls[FAULT_MAX_CALLS]; /* the first n_calls calls */
};

#endif
