/* SPDX-License-Identifier: MIT */
/* check-progress.c - progress, cancelling and the memory of jobs */
#include "config.h"
#include "base/compiler.h"
#include "tests/quant/fixture.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <time.h>

struct watch {
    uint64_t last, total;
    int calls, stop_at;
    bool wrong;
};

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct watch *w = user;
    w->wrong |= done < w->last || done > total;
    w->last = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

static void check_progress(const char *in)
{
    const char *out = in_dir("o.gguf");
    struct gguf_error err;
    struct setup s = SETUP("Q8_0");
    struct watch w = { 0 };
    s.threads = 1;
    s.p.progress = (struct gguf_progress_callback){ on_progress, &w };
    ok(quantize(in, out, s, &err) == GGUF_OK && !w.wrong && w.calls > 10 &&
           w.last == w.total,
       "progress goes to the end in %d steps", w.calls);
    remove(out);
    int before = n_entries();
    w = (struct watch){ .stop_at = 1 };
    ok(quantize(in, out, s, &err) == GGUF_E_CANCELLED && w.calls == 1 &&
           n_entries() == before,
       "a callback stops the job: %s", err.message);
}

/* --------------------------------------------------- how fast it stops --- */

/* Work between two calls of the progress callback: at most a slice of rows, or
 * a piece that is copied. */
struct gait {
    uint64_t last, most;
    double last_cpu, most_cpu; /* processor time of this thread, in seconds */
};

static bool measure_gait(void *user, uint64_t done, uint64_t total)
{
    struct gait *g = user;
    double cpu = scratch_cpu_time();
    (void)total;
    g->most = GG_MAX(g->most, done - g->last);
    if (g->last)
        g->most_cpu = GG_MAX(g->most_cpu, cpu - g->last_cpu);
    g->last = done;
    g->last_cpu = cpu;
    return 0;
}

/* A slice has 16384 elements of at most 4 bytes here; rows are shorter. The
 * slowest C kernel encodes a million elements per second. */
static void check_gait(const char *in)
{
    static const char *const types[] = { "Q8_0", "Q4_K_M", "IQ2_XS", "IQ3_S",
                                         "COPY" };
    struct gguf_imatrix *im = model_imatrix();
    struct gguf_error err;
    for (int forced = 0; forced < 2; forced++)
        for (size_t i = 0; i < GG_LEN(types); i++) {
            struct setup s = SETUP(types[i]);
            struct gait g = { .last = 0 };
            uint64_t limit = strcmp(types[i], "COPY") ? 65536 : 1 << 20;
            s.p.imatrix = im;
            s.forced = forced;
            s.p.progress = (struct gguf_progress_callback){ measure_gait, &g };
            ok(quantize(in, in_dir("o.gguf"), s, &err) == GGUF_OK &&
                   g.most <= limit,
               "%s%s: at most %d bytes of input, %.1f ms of work, until a "
               "stop is noticed",
               types[i], forced ? " in C" : "", (int)g.most, 1e3 * g.most_cpu);
        }
    remove(in_dir("o.gguf"));
    gguf_imatrix_destroy(im);
}

/* With several threads: no work goes on after the call has returned. */
static void check_stops(const char *in)
{
    struct gguf_error err;
    int bad = 0, before = n_entries();
    for (unsigned threads = 1; threads < 9; threads++)
        for (int at = 1; at < 20; at += 6) {
            struct setup s = SETUP("Q4_K_M");
            struct watch w = { .stop_at = at };
            s.threads = threads;
            s.p.progress = (struct gguf_progress_callback){ on_progress, &w };
            enum gguf_status st = quantize(in, in_dir("o.gguf"), s, &err);
            /* few steps may be left for the thread that reports */
            bad += st == GGUF_E_CANCELLED ? w.calls != at
                                          : st != GGUF_OK || w.calls >= at;
            if (st == GGUF_OK)
                remove(in_dir("o.gguf"));
            bad += n_entries() != before;
        }
    ok(!bad, "no call comes after the one that asked to stop, and nothing is "
             "left");
}

/* Stop a run at each call, also while it waits for the disk. The status says
 * so, and nothing is left, or files that --resume continues with. */
static void check_each_stop(const char *in, bool resume)
{
    static const char *const outs[] = { "o-00001-of-00002.gguf",
                                        "o-00002-of-00002.gguf" };
    static const char *const left[] = { "o.gguf.resume",
                                        "o-00001-of-00002.gguf.resume-data",
                                        "o-00002-of-00002.gguf.resume-data" };
    char out[4000]; /* a copy: in_dir() reuses its paths */
    struct gguf_error err;
    struct setup s = SETUP("Q8_0");
    struct watch w = { 0 };
    int bad = 0, n_left = 0, before = n_entries();
    snprintf(out, sizeof out, "%s", in_dir("o.gguf"));
    s.sync = true;
    s.resume = resume;
    s.p.max_file_size = 520000; /* two files */
    s.p.progress = (struct gguf_progress_callback){ on_progress, &w };
    bad += quantize(in, out, s, &err) != GGUF_OK || n_entries() != before + 2;
    int calls = w.calls;
    for (size_t i = 0; i < GG_LEN(outs); i++)
        bad += remove(in_dir(outs[i])) != 0;
    for (int at = 1; at <= calls; at++) {
        w = (struct watch){ .stop_at = at };
        bad += quantize(in, out, s, &err) != GGUF_E_CANCELLED || w.calls != at;
        int n = n_entries() - before;
        n_left += n > 0;
        bad += n && !resume;
        for (size_t i = 0; n && i < GG_LEN(left); i++)
            bad += remove(in_dir(left[i])) != 0;
        bad += n_entries() != before;
    }
    ok(!bad && calls > 20 && (resume ? n_left > 10 : !n_left),
       "%d calls, stopped at each%s", calls,
       resume ? ": the journal is left, and no output" : ": nothing is left");
}

struct counter {
    size_t now, most;
    int left; /* calls that succeed before one fails; < 0: all */
};

static void *count_alloc(void *user, size_t size)
{
    struct counter *c = user;
    if (!c->left)
        return NULL;
    c->left -= c->left > 0;
    size_t *p = malloc(size + 64);
    if (!p)
        return NULL;
    *p = size;
    c->now += size;
    c->most = GG_MAX(c->most, c->now);
    return (char *)p + 64;
}

static void count_free(void *user, void *ptr)
{
    struct counter *c = user;
    size_t *p = (size_t *)(void *)((char *)ptr - 64);
    c->now -= *p;
    free(p);
}

static void check_memory(const char *in)
{
    const char *out = in_dir("o.gguf");
    struct gguf_error err;
    struct setup s = SETUP("Q4_K_M");
    struct counter c = { 0, 0, -1 };
    struct gguf_allocator a = { .struct_size = sizeof(struct gguf_allocator),
                                .alloc = count_alloc,
                                .free = count_free,
                                .user = &c };
    s.p.allocator = &a;
    s.p.max_memory = 100000;
    ok(quantize(in, out, s, &err) == GGUF_OK && !c.now &&
           c.most < 100000 + 600000,
       "%zu bytes at most, of them buffers of 100000 %s", c.most, err.message);
    s.p.max_memory = 1000;
    ok(quantize(in, out, s, &err) == GGUF_E_LIMIT, "too little: %s",
       err.message);
    s.p.max_memory = 0;
    remove(out);
    int before = n_entries(), bad = 0, n = 0;
    for (enum gguf_status st = GGUF_E_NOMEM; st != GGUF_OK && n < 5000; n++) {
        c.left = n;
        st = quantize(in, out, s, &err);
        bad += c.now != 0 || (st != GGUF_OK &&
                              (st != GGUF_E_NOMEM || n_entries() != before));
    }
    ok(!bad && n > 10 && n < 5000,
       "each of %d allocations may fail, and nothing is left", n - 1);
    remove(out);
    s.resume = true;
    bad = n = 0;
    for (enum gguf_status st = GGUF_E_NOMEM; st != GGUF_OK && n < 5000; n++) {
        c.left = n;
        st = quantize(in, out, s, &err);
        bad += c.now != 0 || (st != GGUF_OK && st != GGUF_E_NOMEM);
    }
    ok(!bad && n > 10 && n < 5000 && n_entries() == before + 1,
       "and each of %d of a run that can be resumed", n - 1);
    remove(out);
}

int main(void)
{
    const char *in = enter_model();
    check_progress(in);
    check_gait(in);
    check_stops(in);
    check_each_stop(in, false);
    check_each_stop(in, true);
    check_memory(in);
    return leave_model();
}
