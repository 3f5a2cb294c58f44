/* SPDX-License-Identifier: MIT */
/* progress.c - a progress bar, and stopping on a signal */
#include "config.h"
#include "tools/common/progress.h"
#include "tools/common/msg.h"
#include "tools/common/style.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t caught;

double progress_clock(void)
{
    return (double)gg_os_clock_ns() * 1e-9;
}

void progress_init(struct progress *p, const char *label, const char *unit,
                   bool quiet)
{
    *p = (struct progress){ .label = label, .unit = unit };
    p->on = !quiet && gg_os_terminal_is(GG_OS_STDERR);
}

/* Write the remaining time, " 3:07 left" or " 1:02:45 left"; "" if unknown. */
static void format_time(char out[24], double s)
{
    if (!(s >= 0 && s < 360000))
        out[0] = '\0';
    else if (s < 3600)
        snprintf(out, 24, " %d:%02d left", (int)s / 60, (int)s % 60);
    else
        snprintf(out, 24, " %d:%02d:%02d left", (int)s / 3600,
                 (int)s / 60 % 60, (int)s % 60);
}

static void format_rate(char out[48], const char *unit, double rate)
{
    if (unit && !*unit)
        out[0] = '\0';
    else if (unit)
        snprintf(out, 48, rate < 1000 ? " %.3g %s/s" : " %.0f %s/s", rate,
                 unit);
    else
        snprintf(out, 48, " %.0f MiB/s", rate / 1048576);
}

/* Write the bar, " [###   ]", in width columns; "" if that is too narrow. */
static void format_bar(char out[PROGRESS_LINE], double f, int width)
{
    out[0] = '\0';
    width = (width < 63 ? width : 63) - 3;
    if (width < 5)
        return;
    int full = (int)(f * width);
    snprintf(out, PROGRESS_LINE, " [%.*s%*s]", full,
             "############################################################",
             width - full, "");
}

void progress_format(const struct progress *p, char out[PROGRESS_LINE],
                     int width, uint64_t done, uint64_t total, double spent)
{
    char percent[8], rate_text[48], left[24], bar[PROGRESS_LINE];
    char name[PROGRESS_LINE], line[3 * PROGRESS_LINE];
    const int cut = width > 0 && width < PROGRESS_LINE ? width : PROGRESS_LINE;
    done = done < total ? done : total;
    double f = total ? (double)done / (double)total : 1;
    double rate = spent > 0 ? (double)(done - p->done0) / spent : 0;
    snprintf(percent, sizeof percent, " %3d%%", (int)(100 * f));
    format_rate(rate_text, p->unit, rate);
    format_time(left, rate > 0 ? (double)(total - done) / rate : -1);
    snprintf(name, sizeof name, "%s%s%s", p->label, p->note[0] ? " " : "",
             p->note);
    /* If there is not enough room, leave out the rate, then the time, then the
     * note, then the end of the label. */
    int room = cut - 1 - (int)strlen(percent);
    int label = (int)strlen(name);
    if (label + (int)(strlen(rate_text) + strlen(left)) > room)
        rate_text[0] = '\0';
    if (label + (int)strlen(left) > room)
        left[0] = '\0';
    /* leave out the whole note: it may be a number */
    if (label > room && p->note[0])
        label = (int)strlen(p->label);
    room = room < 0 ? 0 : room;
    label = label < room ? label : room;
    /* two columns less: a terminal writes ^C after the line, which would
     * otherwise wrap and not be cleared */
    format_bar(bar, f,
               room - label - (int)(strlen(rate_text) + strlen(left)) - 2);
    snprintf(line, sizeof line, "%.*s%s%s%s%s", label, name, bar, percent,
             rate_text, left);
    line[cut - 1] = '\0';
    memcpy(out, line, strlen(line) + 1);
}

static void draw_bar(struct progress *p, uint64_t done, uint64_t total,
                     double t)
{
    char line[PROGRESS_LINE];
    progress_format(p, line, style_columns(GG_OS_STDERR), done, total,
                    t - p->begin);
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    p->drawn = true;
}

bool progress_report(void *user, uint64_t done, uint64_t total)
{
    struct progress *p = user;
    if (p->on) {
        double t = progress_clock();
        if (p->begin == 0) {
            p->begin = p->last = t;
            p->done0 = done;
        } else if (t - p->last >= 0.1) {
            p->last = t;
            draw_bar(p, done, total, t);
        }
    }
    if (caught && p->defer_close) {
        p->defer_close = false;
        gg_os_program_defer_close();
    }
    return caught;
}

void progress_clear(struct progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    fflush(stderr);
    p->drawn = false;
}

static void on_signal(int number)
{
    caught = number;
}

void progress_catch_signals(void)
{
    gg_os_program_catch_end(on_signal);
}

bool progress_stopped(void)
{
    return caught != 0;
}

void progress_raise(void)
{
    if (caught)
        gg_os_program_raise(caught);
}

bool progress_fail(struct progress *p, const char *file,
                   const struct gguf_error *err)
{
    if (err->status == GGUF_E_CANCELLED && progress_stopped())
        progress_raise();
    if (p)
        progress_clear(p);
    return msg_fail(file, err);
}
