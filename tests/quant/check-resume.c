/* SPDX-License-Identifier: MIT */
/* check-resume.c - jobs that are killed or cancelled, or find a foreign
 * journal, are resumed
 *
 * A child process kills itself (SIGKILL) in a random call of the progress
 * callback. Everything that a run does happens between two of these calls,
 * except naming the outputs, which is tested step by step.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/outfile_int.h"
#include "quant/resume/job_journal.h"
#include "tests/ignore_status.h"
#include "tests/quant/fixture.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_OUT = 3 };

/* A run of one job or several, and the way it ends. */
struct plan {
    const char *types[MAX_OUT], *names[MAX_OUT];
    int n;
    unsigned threads;
    uint64_t max_file, max_memory;
    bool resume, force, measure;
};

struct hook {
    uint64_t calls, stop; /* stop: the call at which it ends; 0: never */
    bool kill;            /* end by SIGKILL; false: by cancelling */
    uint64_t kept; /* set by run: tensors taken over from an earlier run */
};

static bool on_step(void *user, uint64_t done, uint64_t total)
{
    struct hook *h = user;
    (void)done, (void)total;
    if (++h->calls != h->stop)
        return 0;
    if (h->kill)
        raise(SIGKILL);
    return 1;
}

struct jobs {
    struct gguf_recipe *recipe[MAX_OUT];
    struct gguf_quant *job[MAX_OUT];
    struct gguf_pool *pool;
};

static enum gguf_status make_jobs(struct jobs *j, const char *in,
                                  const struct plan *p, struct hook *h,
                                  struct gguf_error *err)
{
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    enum gguf_status st = GGUF_OK;
    pp.n_threads = p->threads;
    *j = (struct jobs){ .pool = NULL };
    if (p->threads)
        st = gguf_pool_create(&j->pool, &pp, err);
    for (int i = 0; i < p->n && st == GGUF_OK; i++) {
        struct gguf_quant_params qp = GGUF_QUANT_PARAMS_INIT;
        st = gguf_recipe_preset(&j->recipe[i], p->types[i], NULL, err);
        qp.recipe = j->recipe[i];
        qp.pool = j->pool;
        qp.max_file_size = p->max_file;
        qp.max_memory = p->max_memory;
        qp.measure = p->measure;
        qp.progress = (struct gguf_progress_callback){ on_step, h };
        if (st == GGUF_OK)
            st = gguf_quant_create(&j->job[i], in, &qp, err);
    }
    return st;
}

static void free_jobs(struct jobs *j)
{
    for (int i = 0; i < MAX_OUT; i++) {
        gguf_quant_destroy(j->job[i]);
        gguf_recipe_destroy(j->recipe[i]);
    }
    gguf_pool_destroy(j->pool);
}

static enum gguf_status run_job(const char *in, const struct plan *p,
                                struct hook *h, struct gguf_error *err)
{
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_quant_totals t = GGUF_QUANT_TOTALS_INIT;
    const char *paths[MAX_OUT];
    struct jobs j;
    gguf_error_clear(err);
    o.no_sync = 1;
    o.resume = p->resume;
    o.force = p->force;
    for (int i = 0; i < p->n; i++)
        paths[i] = in_dir(p->names[i]);
    enum gguf_status st = make_jobs(&j, in, p, h, err);
    if (st == GGUF_OK)
        st = gguf_quant_run_many(j.job, paths, (size_t)p->n, &o, err);
    if (j.job[0]) {
        ignore_status(gguf_quant_totals(j.job[0], &t, NULL));
        h->kept = t.n_kept;
    }
    free_jobs(&j);
    return st;
}

/* Run in a child process. Returns whether the hook killed it. */
static bool run_killed(const char *in, const struct plan *p, uint64_t stop)
{
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        struct gguf_error err;
        struct hook h = { .stop = stop, .kill = true };
        _exit(run_job(in, p, &h, &err) != GGUF_OK);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        ;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Remove NAME, NAME.resume and NAME.resume-data. */
static void remove_all(const char *name)
{
    char path[300];
    remove(in_dir(name));
    snprintf(path, sizeof path, "%s.resume", name);
    remove(in_dir(path));
    snprintf(path, sizeof path, "%s" GG_OUTFILE_PART, name);
    remove(in_dir(path));
}

/* --------------------------------------------------------------- kills --- */

/* Number of calls of the callback in a whole run. */
static uint64_t count_calls(const char *in, const struct plan *p)
{
    struct gguf_error err;
    struct hook h = { .calls = 0 };
    struct plan whole = *p;
    whole.resume = false;
    whole.force = true;
    return run_job(in, &whole, &h, &err) == GGUF_OK ? h.calls : 0;
}

/* Kill a run again and again at random, with other threads and memory each
 * time, until the file is complete. */
static void check_kills(const char *in, int n)
{
    struct plan p = {
        .types = { "Q8_0" }, .names = { "one" }, .n = 1, .threads = 1
    };
    uint64_t n_calls = count_calls(in, &p);
    int bad = 0, n_kills = 0, n_done = 0;
    ok(n_calls > 20, "a run has %llu steps", (unsigned long long)n_calls);
    int before = n_entries();
    p.names[0] = "two";
    p.resume = true;
    while (n_done < n || n_kills < n / 2) {
        p.threads = (unsigned)rnd_below(4);
        p.max_memory = rnd_below(2) ? 700000 : 0;
        if (run_killed(in, &p, 1 + rnd_below(n_calls))) {
            n_kills++;
            bad += file_exists("two") || n_entries() > before + 2;
            continue;
        }
        bad += !same_files(in_dir("one"), in_dir("two")) ||
               n_entries() != before + 1;
        remove_all("two");
        n_done++;
    }
    ok(!bad, "%d outputs, killed %d times on the way, are the same", n_done,
       n_kills);
    remove(in_dir("one"));
}

/* Two outputs; one of them has two files. */
static void check_many_kills(const char *in, int n)
{
    static const char *const want[] = { "a-00001-of-00002.gguf",
                                        "a-00002-of-00002.gguf", "b" };
    static const char *const files[] = { "c-00001-of-00002.gguf",
                                         "c-00002-of-00002.gguf", "d" };
    struct plan p = { .types = { "Q8_0", "Q4_0" },
                      .names = { "a", "b" },
                      .n = 2,
                      .threads = 1,
                      .max_file = 520000 };
    uint64_t n_calls = count_calls(in, &p);
    int bad = 0, n_kills = 0, n_done = 0;
    p.names[0] = "c";
    p.names[1] = "d";
    p.resume = true;
    while (n_done < n || n_kills < n / 2) {
        p.threads = (unsigned)rnd_below(4);
        if (run_killed(in, &p, 1 + rnd_below(n_calls))) {
            n_kills++;
            continue;
        }
        for (size_t i = 0; i < GG_LEN(want); i++) {
            bad += !same_files(in_dir(want[i]), in_dir(files[i]));
            remove(in_dir(files[i]));
        }
        n_done++;
    }
    ok(!bad,
       "%d times two outputs, one of two files, killed %d times, are the same",
       n_done, n_kills);
    for (size_t i = 0; i < GG_LEN(want); i++)
        remove(in_dir(want[i]));
    ok(n_entries() == 1, "and nothing else is there");
}

/* ---------------------------------------------- tensors taken over --- */

static void check_kept(const char *in)
{
    struct plan p = {
        .types = { "Q8_0" }, .names = { "one" }, .n = 1, .measure = true
    };
    struct gguf_error err;
    struct hook h = { .calls = 0 };
    struct jobs j;
    ok(run_job(in, &p, &h, &err) == GGUF_OK, "a whole run");
    uint64_t n_calls = h.calls;
    p.names[0] = "two";
    p.resume = true;
    h = (struct hook){ .stop = n_calls / 2 };
    ok(run_job(in, &p, &h, &err) == GGUF_E_CANCELLED &&
           file_exists("two.resume") && file_exists("two" GG_OUTFILE_PART) &&
           !file_exists("two"),
       "a cancelled run leaves the journal and the temporary");
    h = (struct hook){ .calls = 0 };
    ok(run_job(in, &p, &h, &err) == GGUF_OK && h.kept > 0 &&
           same_files(in_dir("one"), in_dir("two")) &&
           !file_exists("two.resume") && !file_exists("two" GG_OUTFILE_PART),
       "the next one keeps %llu tensors", (unsigned long long)h.kept);
    remove_all("two");

    /* losses of both runs */
    struct gguf_quant_loss want[32];
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    const char *path = in_dir("two");
    bool good = true;
    j = (struct jobs){ .pool = NULL };
    for (int resumed = 0; resumed < 2; resumed++) {
        h = (struct hook){ .stop = n_calls - 3 };
        good = good &&
               (!resumed || run_job(in, &p, &h, &err) == GGUF_E_CANCELLED);
        h = (struct hook){ .calls = 0 };
        o.no_sync = o.resume = o.force = 1;
        good = good && make_jobs(&j, in, &p, &h, &err) == GGUF_OK &&
               gguf_quant_run_many(j.job, &path, 1, &o, &err) == GGUF_OK;
        for (size_t i = 0; good && i < gguf_quant_n_tensors(*j.job); i++) {
            struct gguf_quant_loss l = gguf_quant_tensor(*j.job, i)->loss;
            l.seconds = 0;
            if (!resumed)
                want[i] = l;
            else
                good = l.measured == want[i].measured &&
                       l.rms == want[i].rms && l.max == want[i].max &&
                       l.rms_in == want[i].rms_in &&
                       l.weighted == want[i].weighted && l.snr == want[i].snr;
        }
        free_jobs(&j);
        remove_all("two");
    }
    ok(good, "the report of both is that of one %s", err.message);
    h = (struct hook){ .stop = 1 };
    ok(run_job(in, &p, &h, &err) == GGUF_E_CANCELLED &&
           !file_exists("two.resume") && !file_exists("two" GG_OUTFILE_PART),
       "a run that completes no tensor leaves nothing");
    p.resume = false;
    h = (struct hook){ .stop = n_calls - 1 };
    int before = n_entries();
    ok(run_job(in, &p, &h, &err) == GGUF_E_CANCELLED && n_entries() == before,
       "nor does a run without resume");
    ok(run_killed(in, &p, n_calls - 1) && n_entries() == before,
       "not even when it is killed");
}

/* Damage bytes in the middle of the files. "one" exists before. */
static void check_damage(const char *in)
{
    struct plan p = {
        .types = { "Q8_0" }, .names = { "two" }, .n = 1, .resume = true
    };
    struct gguf_error err;
    struct hook h = { .calls = 0 };
    struct stat st;
    struct plan count = p;
    count.names[0] = "one";
    uint64_t n_calls = count_calls(in, &count);
    int bad = 0, n = 0;
    for (off_t cut = 0; cut < 700; cut += 62, n++) {
        h = (struct hook){ .stop = n_calls };
        bad += run_job(in, &p, &h, &err) != GGUF_E_CANCELLED ||
               stat(in_dir("two.resume"), &st) != 0;
        if (cut < st.st_size)
            bad += truncate(in_dir("two.resume"), st.st_size - cut) != 0;
        h = (struct hook){ .calls = 0 };
        bad += run_job(in, &p, &h, &err) != GGUF_OK ||
               !same_files(in_dir("one"), in_dir("two"));
        remove_all("two");
    }
    ok(!bad, "a journal that is cut off, at %d places", n);
    for (int i = 0; i < 20; i++) {
        bool journal = i % 2;
        const char *path =
            in_dir(journal ? "two.resume" : "two" GG_OUTFILE_PART);
        h = (struct hook){ .stop = n_calls };
        bad += run_job(in, &p, &h, &err) != GGUF_E_CANCELLED;
        int fd = open(path, O_RDWR);
        uint8_t b = 0;
        bad += fstat(fd, &st) != 0;
        /* in the journal: after the record of the temporary, without which
         * that is a foreign file; in the data: after the header */
        off_t from = journal ? GG_JOURNAL_HEAD + GG_QUANT_RESUME_RECORD : 4096;
        off_t at = from + (off_t)rnd_below((uint64_t)(st.st_size - from));
        bad += pread(fd, &b, 1, at) != 1;
        b ^= 0x10;
        bad += pwrite(fd, &b, 1, at) != 1;
        close(fd);
        h = (struct hook){ .calls = 0 };
        bad += run_job(in, &p, &h, &err) != GGUF_OK ||
               !same_files(in_dir("one"), in_dir("two"));
        remove_all("two");
    }
    ok(!bad, "bytes that have changed are noticed: those tensors are made "
             "again");
    for (int i = 0; i < 2; i++) {
        h = (struct hook){ .stop = n_calls };
        bad = run_job(in, &p, &h, &err) != GGUF_E_CANCELLED;
        int fd = open(in_dir("two.resume"), O_RDWR);
        bad += pwrite(fd, "\3", 2, i ? 32 + 8 : 8) != 2;
        close(fd);
        h = (struct hook){ .calls = 0 };
        ok(!bad && run_job(in, &p, &h, &err) == GGUF_E_MISMATCH && !h.calls &&
               file_exists("two.resume") && file_exists("two" GG_OUTFILE_PART),
           "%s: %s", i ? "a temporary of another inode" : "an older format",
           err.message);
        remove_all("two");
    }
    h = (struct hook){ .stop = n_calls };
    bad = run_job(in, &p, &h, &err) != GGUF_E_CANCELLED;
    remove(in_dir("two" GG_OUTFILE_PART));
    h = (struct hook){ .calls = 0 };
    ok(!bad && run_job(in, &p, &h, &err) == GGUF_OK && !h.kept &&
           same_files(in_dir("one"), in_dir("two")),
       "a temporary that is gone: everything is made again");
    remove_all("two");
    FILE *f = fopen(in_dir("two" GG_OUTFILE_PART), "w");
    for (int i = 0; f && i < 2000000; i++)
        fputc('x', f);
    if (f)
        fclose(f);
    h = (struct hook){ .calls = 0 };
    ok(run_job(in, &p, &h, &err) == GGUF_E_MISMATCH && !h.calls &&
           !file_exists("two.resume") && !file_exists("two") &&
           !stat(in_dir("two" GG_OUTFILE_PART), &st) && st.st_size == 2000000,
       "a temporary of nobody's is not taken: %s", err.message);
    remove(in_dir("two" GG_OUTFILE_PART));
    ok(run_job(in, &p, &h, &err) == GGUF_OK &&
           same_files(in_dir("one"), in_dir("two")),
       "without it the run begins");
    remove_all("two");
}

/* ------------------------------------------------------ other journals --- */

static void check_others(const char *in)
{
    struct plan p = {
        .types = { "Q8_0" }, .names = { "two" }, .n = 1, .resume = true
    };
    struct plan count = p, other = p;
    struct gguf_error err;
    struct hook h = { .calls = 0 };
    struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
    count.names[0] = "one";
    uint64_t n_calls = count_calls(in, &count);
    h.stop = n_calls - 1;
    ok(run_job(in, &p, &h, &err) == GGUF_E_CANCELLED, "a run that is stopped");
    h = (struct hook){ .calls = 0 };
    other.types[0] = "Q5_K_M";
    ok(run_job(in, &other, &h, &err) == GGUF_E_MISMATCH &&
           file_exists("two.resume") && !h.calls,
       "another type: %s", err.message);
    other = p;
    other.max_file = 520000;
    ok(run_job(in, &other, &h, &err) == GGUF_E_MISMATCH, "other files: %s",
       err.message);
    struct stat st;
    ok(!stat(in, &st) && !utimensat(AT_FDCWD, in, old, 0) &&
           run_job(in, &p, &h, &err) == GGUF_E_MISMATCH,
       "another input: %s", err.message);
    old[0] = old[1] = st.st_mtim;
    ok(!utimensat(AT_FDCWD, in, old, 0) &&
           run_job(in, &p, &h, &err) == GGUF_OK && h.kept &&
           same_files(in_dir("one"), in_dir("two")),
       "and the right one %s", err.message);
    remove_all("two");
    FILE *f = fopen(in_dir("two.resume"), "w");
    fputs("notes of my own, which nobody may overwrite", f);
    fclose(f);
    ok(run_job(in, &p, &h, &err) == GGUF_E_MISMATCH &&
           file_exists("two.resume") && n_entries() == 3,
       "a file that is not a journal: %s", err.message);
    remove_all("two");
    ok(!mkfifo(in_dir("two" GG_OUTFILE_PART), 0600) &&
           run_job(in, &p, &h, &err) != GGUF_OK && !file_exists("two"),
       "a temporary that is not a file: %s", err.message);
    remove_all("two");
    ok(!symlink("one", in_dir("two" GG_OUTFILE_PART)) &&
           run_job(in, &p, &h, &err) != GGUF_OK && !file_exists("two") &&
           file_exists("one"),
       "or a link: %s", err.message);
    remove_all("two");
    ok(!link(in, in_dir("two" GG_OUTFILE_PART)) &&
           run_job(in, &p, &h, &err) == GGUF_E_INVALID &&
           file_exists("in.gguf"),
       "or the input: %s", err.message);
    remove_all("two");
}

/* Another process has locked the journal. */
static void check_lock(const char *in)
{
    struct plan p = {
        .types = { "Q8_0" }, .names = { "two" }, .n = 1, .resume = true
    };
    struct gguf_error err;
    struct hook h = { .calls = 0 };
    int go[2], ready[2];
    char c = 0;
    struct plan count = p;
    count.names[0] = "one";
    h.stop = count_calls(in, &count) - 1;
    if (pipe(go) || pipe(ready) ||
        run_job(in, &p, &h, &err) != GGUF_E_CANCELLED)
        exit(99);
    h = (struct hook){ .calls = 0 };
    pid_t pid = fork();
    if (!pid) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        int fd = open(in_dir("two.resume"), O_RDWR);
        close(go[1]);
        c = fcntl(fd, F_SETLK, &lock) == 0;
        _exit(write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) < 0);
    }
    close(go[0]);
    ok(read(ready[0], &c, 1) == 1 && c &&
           run_job(in, &p, &h, &err) == GGUF_E_IO && !h.calls &&
           file_exists("two.resume") && file_exists("two" GG_OUTFILE_PART),
       "one process at a time: %s", err.message);
    close(go[1]);
    waitpid(pid, NULL, 0);
    ok(run_job(in, &p, &h, &err) == GGUF_OK && h.kept &&
           same_files(in_dir("one"), in_dir("two")),
       "the next one may");
    close(ready[0]);
    close(ready[1]);
    remove_all("two");
}

/* ------------------------------------------------------------ the names --- */

/* Kill a run after the first of two files got its name: step by step, at each
 * call. */
static void check_names(const char *in)
{
    static const char *const names[] = { "s-00001-of-00002.gguf",
                                         "s-00002-of-00002.gguf" };
    static const char *const whole[] = { "w-00001-of-00002.gguf",
                                         "w-00002-of-00002.gguf" };
    struct plan p = {
        .types = { "Q8_0" }, .names = { "w.gguf" }, .n = 1, .max_file = 520000
    };
    struct gguf_error err;
    struct hook h = { .calls = 0 };
    struct gg_quant_resume r;
    struct jobs j;
    uint64_t n_calls = count_calls(in, &p);
    p.names[0] = "s.gguf";
    p.resume = true;
    for (int named = 1; named < 3; named++) {
        h = (struct hook){ .stop = n_calls };
        bool good = run_job(in, &p, &h, &err) == GGUF_E_CANCELLED &&
                    make_jobs(&j, in, &p, &h, &err) == GGUF_OK &&
                    gg_quant_resume_open(&r, j.job[0], NULL, in_dir("s.gguf"),
                                         false, &err) == GGUF_OK;
        for (int i = 0; good && i < 2; i++)
            good = gg_journal_note_publish(&r.journal, (size_t)i, &err) ==
                   GGUF_OK;
        if (good)
            gg_quant_resume_close(&r, false);
        free_jobs(&j);
        for (int i = 0; good && i < named; i++) {
            char part[100];
            snprintf(part, sizeof part, "%s" GG_OUTFILE_PART, names[i]);
            good = !rename(in_dir(part), in_dir(names[i]));
        }
        h = (struct hook){ .calls = 0 };
        ok(good && run_job(in, &p, &h, &err) == GGUF_OK && h.kept &&
               same_files(in_dir(names[0]), in_dir(whole[0])) &&
               same_files(in_dir(names[1]), in_dir(whole[1])) &&
               n_entries() == 6,
           "killed when %d of 2 files had their names %s", named, err.message);
        remove_all(names[0]);
        remove_all(names[1]);
    }
    /* meanwhile another file has the name */
    h = (struct hook){ .stop = n_calls };
    bool good = run_job(in, &p, &h, &err) == GGUF_E_CANCELLED;
    FILE *f = fopen(in_dir(names[0]), "w");
    fputs("precious", f);
    fclose(f);
    h = (struct hook){ .calls = 0 };
    ok(good && run_job(in, &p, &h, &err) == GGUF_E_EXIST &&
           file_exists(names[0]),
       "a file that came in between stays: %s", err.message);
    remove(in_dir(names[0]));
    ok(run_job(in, &p, &h, &err) == GGUF_OK &&
           same_files(in_dir(names[0]), in_dir(whole[0])),
       "and without it the run goes on");
    for (int i = 0; i < 2; i++) {
        remove_all(names[i]);
        remove(in_dir(whole[i]));
    }
}

/* A run without resume discards the files of an unfinished run. */
static void check_discard(const char *in)
{
    struct plan p = {
        .types = { "Q8_0" }, .names = { "two" }, .n = 1, .resume = true
    };
    struct plan count = p;
    struct gguf_error err;
    count.names[0] = "one";
    const uint64_t n_calls = count_calls(in, &count) - 1;
    struct hook h = { .stop = n_calls };
    remove_all("one");
    size_t n = 9;
    ok(gguf_quant_discard(in_dir("two"), &n, &err) == GGUF_OK && n == 0,
       "nothing to discard");
    ok(run_job(in, &p, &h, &err) == GGUF_E_CANCELLED &&
           file_exists("two.resume"),
       "a run that does not end");
    FILE *f = fopen(in_dir("mine" GG_OUTFILE_PART), "w");
    fputs("of no journal", f);
    fclose(f);
    ok(!link(in_dir("two" GG_OUTFILE_PART), in_dir("copy")) &&
           gguf_quant_discard(in_dir("two"), &n, &err) == GGUF_OK && n == 1 &&
           file_exists("two" GG_OUTFILE_PART) && file_exists("copy"),
       "data with another name stays; the journal goes");
    remove(in_dir("copy"));
    remove_all("two");
    h = (struct hook){ .stop = n_calls };
    ok(run_job(in, &p, &h, &err) == GGUF_E_CANCELLED &&
           gguf_quant_discard(in_dir("two"), &n, &err) == GGUF_OK && n == 2 &&
           !file_exists("two.resume") && !file_exists("two" GG_OUTFILE_PART) &&
           file_exists("mine" GG_OUTFILE_PART),
       "journal and data are removed, other files stay");
    remove(in_dir("mine" GG_OUTFILE_PART));
    f = fopen(in_dir("two.resume"), "w");
    fputs("notes of my own, which nobody may remove at all", f);
    fclose(f);
    ok(gguf_quant_discard(in_dir("two"), &n, &err) == GGUF_OK && n == 0 &&
           file_exists("two.resume"),
       "a file that is not a journal stays");
    remove_all("two");
}

int main(void)
{
    bool is_long = getenv("GGUF_TEST_LONG") != NULL;
    const char *in = enter_model();
    check_kills(in, is_long ? 200 : 10);
    check_many_kills(in, is_long ? 100 : 5);
    check_kept(in);
    check_damage(in);
    check_others(in);
    check_lock(in);
    check_names(in);
    check_discard(in);
    remove(in_dir("one"));
    return leave_model();
}
