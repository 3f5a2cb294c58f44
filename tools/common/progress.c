/* progress.c - a bar with rate and time left; stopping on a signal */
#include "config.h"
#include "tools/common/progress.h"
#include "tools/common/linger.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_init(struct progress *p, const char *label, const char *unit,
                   bool quiet)
{
    *p = (struct progress){ .label = label, .unit = unit };
    p->on = !quiet && isatty(STDERR_FILENO);
}

static int columns(void)
{
#ifdef TIOCGWINSZ
    struct winsize w;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 20)
        return w.ws_col;
#endif
    return 80;
}

/* "3:07", "1:02:45", or nothing when unknown. */
static void format_time(char out[24], double s)
{
    if (!(s >= 0 && s < 360000))
        out[0] = '\0';
    else if (s < 3600)
        snprintf(out, 24, "%d:%02d", (int)s / 60, (int)s % 60);
    else
        snprintf(out, 24, "%d:%02d:%02d", (int)s / 3600, (int)s / 60 % 60,
                 (int)s % 60);
}

static void draw(struct progress *p, uint64_t done, uint64_t total, double t)
{
    double f = total ? (double)done / (double)total : 1;
    double spent = t - p->begin;
    double rate = spent > 0 ? (double)(done - p->done0) / spent : 0;
    char left[24], text[96], bar[160];
    format_time(left, rate > 0 ? (double)(total - done) / rate : -1);
    if (p->unit)
        snprintf(text, sizeof text, " %3d%% %.3g %s/s %s%s", (int)(100 * f),
                 rate, p->unit, left, left[0] ? " left" : "");
    else
        snprintf(text, sizeof text, " %3d%% %.0f MiB/s %s%s", (int)(100 * f),
                 rate / 1048576, left, left[0] ? " left" : "");
    int width = columns() - 1 - (int)strlen(p->label) - (int)strlen(text) - 3;
    if (width > 60)
        width = 60;
    if (width >= 5) {
        int full = (int)(f * width);
        memset(bar, ' ', sizeof bar);
        memset(bar + 2, '#', (size_t)full);
        bar[0] = ' ';
        bar[1] = '[';
        bar[width + 2] = ']';
        bar[width + 3] = '\0';
    } else {
        bar[0] = '\0';
    }
    fprintf(stderr, "\r%s%s%s\033[K", p->label, bar, text);
    fflush(stderr);
    p->drawn = true;
}

int progress_report(void *user, uint64_t done, uint64_t total)
{
    struct progress *p = user;
    if (p->on) {
        double t = now();
        if (p->begin == 0) {
            p->begin = p->last = t;
            p->done0 = done;
        } else if (t - p->last >= 0.1) {
            p->last = t;
            draw(p, done, total, t);
        }
    }
    if (caught && p->linger) {
        p->linger = false;
        linger_begin();
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
    static const int list[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct sigaction a, old;
        memset(&a, 0, sizeof a);
        a.sa_handler = on_signal;
        a.sa_flags = (int)SA_RESETHAND | SA_RESTART;
        sigemptyset(&a.sa_mask);
        if (sigaction(list[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(list[i], &a, NULL);
    }
}

bool progress_stopped(void)
{
    return caught != 0;
}

void progress_raise(void)
{
    if (!caught)
        return;
    signal(caught, SIG_DFL);
    raise(caught);
}
