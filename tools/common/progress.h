/* SPDX-License-Identifier: MIT */
/* progress.h - a bar with rate and time left; stopping on a signal
 *
 * The bar is drawn on standard error, only if that is a terminal and the tool
 * was not asked to be quiet; else nothing is printed. Call progress_clear
 * before a message.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <gguf/status.h>

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *label; /* kept */
    const char *unit;  /* NULL: bytes, printed as MiB */
    bool on, drawn;
    bool linger; /* a stopped job leaves a file open: deferred_close.h */
    double begin, last; /* seconds of a steady clock */
    uint64_t done0;     /* where the first report stood */
    char note[32];      /* after the label; may be changed at any time */
};

/* Nothing is drawn before the first call of progress_report. */
void progress_init(struct progress *p, const char *label, const char *unit,
                   bool quiet);

/* The line of a terminal of width columns, one of which stays free, after
 * spent seconds. Where there is no room, the rate goes first, then the time
 * that is left, then the note, then the end of the label. */
enum { PROGRESS_LINE = 160 };
void progress_format(const struct progress *p, char out[PROGRESS_LINE],
                     int width, uint64_t done, uint64_t total, double spent);

/* A gguf_progress_fn, user is a struct progress. Draws at most ten times a
 * second. Not 0 once a signal asked to stop. */
int progress_report(void *user, uint64_t done, uint64_t total);

/* Clear the bar, before a message and at the end. */
void progress_clear(struct progress *p);

/* Seconds of a steady clock. */
double progress_clock(void);

/* From now on SIGINT, SIGTERM and SIGHUP only make progress_report (and
 * progress_stopped) say so, so that the library can remove what is half
 * written; a second one kills. */
void progress_catch_signals(void);
bool progress_stopped(void);

/* Die of the signal that was caught, as the shell expects; returns if there
 * was none. */
void progress_raise(void);

/* What failed, for return: false. Dies if a signal was why; else clears the
 * bar, which may be NULL, and prints err, of a file or NULL. */
bool progress_fail(struct progress *p, const char *file,
                   const struct gguf_error *err);

#endif
