/* SPDX-License-Identifier: MIT */
/* fault.h - what the library that makes file calls fail shares with its driver
 *
 * A program that is started with LD_PRELOAD=fault.so and GGUF_FAULT=PATH
 * counts its file calls in the file PATH, which is a struct fault_log, and
 * does at one of them what is asked for there. What a child process calls is
 * not counted and goes well.
 */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stdint.h>

enum { FAULT_MAX_CALLS = 4096, FAULT_NAME = 20, FAULT_PATH = 44 };

enum fault {
    FAULT_NONE,        /* count only */
    FAULT_KILL_BEFORE, /* SIGKILL instead of the call */
    FAULT_KILL_HALF,   /* SIGKILL when half of it is read or written */
    FAULT_KILL_AFTER,  /* SIGKILL when it is done */
    FAULT_TERM,        /* SIGTERM, then the call */
    FAULT_ERROR,       /* it fails with the errno asked for */
    FAULT_FULL,        /* from it on, every call that takes room: ENOSPC */
    FAULT_DEAD,        /* from it on, every call that changes a file or folder:
                        * EIO */
    FAULT_SHORT        /* reads and writes do half of it */
};

/* What a call is, for FAULT_FULL, FAULT_DEAD and FAULT_SHORT. */
enum {
    FAULT_CHANGES = 1, /* a file or a folder */
    FAULT_ROOM = 2,    /* may take room on the disk */
    FAULT_PARTS = 4    /* may do less than it was asked to */
};

struct fault_call {
    char name[FAULT_NAME];
    char path[FAULT_PATH]; /* the end of it; "" if there is none */
    uint32_t kind;
};

struct fault_log {
    uint32_t fault; /* enum fault */
    uint32_t at;    /* the call that it happens at, from 1 on */
    int32_t error;  /* an errno, with FAULT_ERROR */
    uint32_t here;  /* set to 1: the library was loaded */
    uint32_t hits;  /* calls that something was done at */
    uint32_t n_calls;
    struct fault_call calls[FAULT_MAX_CALLS]; /* the first of them */
};

#endif
