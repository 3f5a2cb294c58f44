/* SPDX-License-Identifier: MIT */
/* progress.h - a progress bar, and stopping on a signal
 *
 * The bar is drawn on standard error if that is a terminal and the tool is not
 * quiet. Call progress_clear() before a message.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <gguf/status.h>

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *label; /* text of the bar; must outlive the struct */
    const char *unit;  /* unit of the counts; NULL: bytes, printed as MiB;
                        * "": no rate is printed */
    bool on, drawn;
    bool
        /* a stopped job leaves an unnamed file open: os_program.h */
        defer_close;
    double begin, last; /* times of progress_clock() */
    uint64_t done0;     /* count of the first report */
    char note[32];      /* text after the label; may be changed at any time */
};

/* Set up a bar. Nothing is drawn before the first progress_report(). */
void progress_init(struct progress *p, const char *label, const char *unit,
                   bool quiet);

/* Write the line for a terminal of width columns; one column stays free.
 *
 * spent   Seconds so far.
 *
 * If the line is too long, the rate is left out first, then the remaining
 * time, then the note, then the end of the label.
 */
enum { PROGRESS_LINE = 160 };
void progress_format(const struct progress *p, char out[PROGRESS_LINE],
                     int width, uint64_t done, uint64_t total, double spent);

/* A gguf_progress_fn whose user is a struct progress. Draws at most ten times
 * a second. Asks to stop once a signal has arrived. */
bool progress_report(void *user, uint64_t done, uint64_t total);

/* Clear the bar; call it before a message and at the end. */
void progress_clear(struct progress *p);

/* Seconds of a monotonic clock. */
double progress_clock(void);

/* Catch SIGINT, SIGTERM and SIGHUP: the first only makes progress_report() and
 * progress_stopped() return true, so that the library can remove incomplete
 * files; a second signal kills the process. */
void progress_catch_signals(void);
bool progress_stopped(void);

/* End the process by the signal that was caught, as a shell expects. Returns
 * if there was none. */
void progress_raise(void);

/* Report a failure and return false. If a signal was the reason, end the
 * process by it. Otherwise clear the bar p, which may be NULL, and print err
 * for the file, which may be NULL. */
bool progress_fail(struct progress *p, const char *file,
                   const struct gguf_error *err);

#endif
