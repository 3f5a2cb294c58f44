/* SPDX-License-Identifier: MIT */
/* progress.h - how long jobs report, and how they are stopped */
#ifndef GGUF_PROGRESS_H
#define GGUF_PROGRESS_H

#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called from time to time by the thread that runs the job, with done <= total
 * in the unit that the job's header names. A value other than 0 cancels the
 * job: it cleans up and returns GGUF_E_CANCELLED. */
typedef int gguf_progress_fn(void *user, uint64_t done, uint64_t total);

/* A progress function and the pointer that it is called with. It never
 * grows. */
struct gguf_progress_callback {
    gguf_progress_fn *fn; /* function to call; NULL: none */
    void *user;           /* first argument of each call */
};

#ifdef __cplusplus
}
#endif
#endif
