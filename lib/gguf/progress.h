/* SPDX-License-Identifier: MIT */
/* progress.h - callbacks that show the progress of a job and can stop it
 *
 *     static bool show(void *user, uint64_t done, uint64_t total)
 *     {
 *         fprintf(stderr, "\r%3.0f%%", 100.0 * done / total);
 *         return stop_requested;
 *     }
 *     ...
 *     params.progress.fn = show;
 */
#ifndef GGUF_PROGRESS_H
#define GGUF_PROGRESS_H

#include <gguf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receive the progress of a job.
 *
 * user    The member user of the callback.
 * done    Work that is done, at most total. The job says in which unit.
 * total   All work of the job.
 *
 * Runs from time to time on the thread that runs the job. Return true to stop
 * the job, which then cleans up and returns GGUF_E_CANCELLED. */
typedef bool gguf_progress_fn(void *user, uint64_t done, uint64_t total);

/* A function that receives progress, and its first argument. Later versions add
 * no members to this struct. */
struct gguf_progress_callback {
    gguf_progress_fn *fn; /* the function; NULL: none */
    void *user;           /* its first argument */
};

#ifdef __cplusplus
}
#endif
#endif
