/* SPDX-License-Identifier: MIT */
/* check-improve.c - tensors of a finished output are replaced
 *
 * The better bytes are those of another run: the same types, encoded with
 * importance data. A run that replaces all its tensors by them must have the
 * data and the losses of that run.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/outfile_int.h"
#include "file/file_int.h"
#include "gguf/improve.h"
#include "tests/ignore_status.h"
#include "tests/quant/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_JOBS = 2, MAX_TENSORS = 16 };

/* A run, and what its callbacks do and see. */
struct setting {
    const char *types[MAX_JOBS], *names[MAX_JOBS];
    size_t n;
    const struct gguf_file *better; /* source of the new bytes */
    bool resume, no_improve, weighted;
    unsigned threads;
    uint64_t max_file;
    uint8_t digest;
    size_t fail_at; /* replacement before which the callback fails; 0: none */
    size_t kill_at; /* replacement before which the process kills itself */

    size_t n_calls, n_replaced, n_found; /* calls, replacements, tensors that
                                          * an earlier run replaced */
    size_t jobs[MAX_JOBS];               /* numbers of the calls */
    bool bad, checked;
    struct gguf_quant_loss loss[MAX_TENSORS]; /* losses of job 0 */
    struct gguf_quant_loss last[MAX_TENSORS]; /* losses of the last job */
    uint64_t n_kept;
    gguf_quant_improve_fn *improve; /* NULL: replace_all */
};

static bool has_bytes(const struct gguf_file *f, size_t i, const void *bytes,
                      uint64_t size)
{
    const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
    return t && t->size == size &&
           !memcmp(gguf_file_tensor_data(f, i), bytes, (size_t)size);
}

static enum gguf_status replace_all(void *user, size_t job,
                                    struct gguf_quant_improver *h,
                                    struct gguf_error *err)
{
    struct setting *s = user;
    const struct gguf_quant *q = gguf_quant_improver_job(h);
    const struct gguf_file *f = gguf_quant_improver_file(h);
    if (s->n_calls < MAX_JOBS)
        s->jobs[s->n_calls] = job;
    s->n_calls++;
    s->bad |= s->checked;
    for (size_t i = 0; i < gguf_quant_n_tensors(q); i++) {
        const struct gguf_quant_tensor *t = gguf_quant_tensor(q, i);
        const uint8_t *note = gguf_quant_improver_note(h, i);
        if (gguf_quant_improver_is_replaced(h, i)) {
            s->n_found++;
            s->bad |= note[0] != 100 + i || note[GGUF_QUANT_NOTE_SIZE - 1];
            continue;
        }
        s->bad |= note[0] != 0;
        if (t->copied)
            continue;
        s->n_replaced++;
        if (s->kill_at == s->n_replaced)
            raise(SIGKILL);
        if (s->fail_at == s->n_replaced) {
            snprintf(err->message, sizeof err->message, "enough of it");
            return err->status = GGUF_E_CANCELLED;
        }
        const uint8_t mark = (uint8_t)(100 + i);
        const void *bytes = gguf_file_tensor_data(s->better, i);
        gguf_quant_improver_set_note(h, i, &mark, 1);
        enum gguf_status st =
            gguf_quant_improver_replace(h, i, bytes, t->to_size, err);
        if (st != GGUF_OK)
            return st;
        s->bad |= !has_bytes(f, i, bytes, t->to_size) ||
                  !gguf_quant_improver_is_replaced(h, i);
    }
    return GGUF_OK;
}

/* A check that sees the replaced bytes. */
static enum gguf_status check_bytes_there(void *user, size_t job,
                                          const struct gguf_file *f,
                                          struct gguf_error *err)
{
    struct setting *s = user;
    (void)err;
    s->checked = true;
    for (size_t i = 0;
         !job && s->better && !s->no_improve && i < gguf_file_n_tensors(f);
         i++)
        s->bad |= !has_bytes(f, i, gguf_file_tensor_data(s->better, i),
                             gguf_file_tensor(s->better, i)->size);
    return GGUF_OK;
}

static enum gguf_status run_jobs(const char *in, struct setting *s,
                                 struct gguf_error *err)
{
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_quant_totals totals = GGUF_QUANT_TOTALS_INIT;
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_recipe *recipe[MAX_JOBS] = { NULL };
    struct gguf_quant *job[MAX_JOBS] = { NULL };
    struct gguf_imatrix *im = s->weighted ? model_imatrix() : NULL;
    struct gguf_pool *pool = NULL;
    const char *paths[MAX_JOBS];
    enum gguf_status st = GGUF_OK;
    gguf_error_clear(err);
    pp.n_threads = s->threads;
    if (s->threads)
        st = gguf_pool_create(&pool, &pp, err);
    for (size_t i = 0; i < s->n && st == GGUF_OK; i++) {
        struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
        st = gguf_recipe_preset(&recipe[i], s->types[i], NULL, err);
        p.recipe = recipe[i];
        p.pool = pool;
        p.imatrix = im;
        p.measure = true;
        p.max_file_size = s->max_file;
        if (st == GGUF_OK)
            st = gguf_quant_create(&job[i], in, &p, err);
        paths[i] = in_dir(s->names[i]);
    }
    o.no_sync = true;
    o.force = true;
    o.resume = s->resume;
    memset(o.improve_digest, s->digest, sizeof o.improve_digest);
    if (s->better && !s->no_improve)
        o.improve = (struct gguf_quant_improve_callback){
            s->improve ? s->improve : replace_all, s
        };
    o.check = (struct gguf_quant_check_callback){ check_bytes_there, s };
    if (st == GGUF_OK)
        st = gguf_quant_run_many(job, paths, s->n, &o, err);
    for (size_t i = 0; st == GGUF_OK && i < gguf_quant_n_tensors(job[0]); i++)
        s->loss[i] = gguf_quant_tensor(job[0], i)->loss;
    for (size_t i = 0;
         st == GGUF_OK && i < gguf_quant_n_tensors(job[s->n - 1]); i++)
        s->last[i] = gguf_quant_tensor(job[s->n - 1], i)->loss;
    if (job[0] && gguf_quant_totals(job[0], &totals, NULL) == GGUF_OK)
        s->n_kept = totals.n_kept;
    for (size_t i = 0; i < s->n; i++) {
        gguf_quant_destroy(job[i]);
        gguf_recipe_destroy(recipe[i]);
    }
    gguf_pool_destroy(pool);
    gguf_imatrix_destroy(im);
    return st;
}

/* Run in a child process that kills itself at replacement kill_at. */
static bool run_killed(const char *in, struct setting s)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (!pid) {
        struct gguf_error err;
        _exit(run_jobs(in, &s, &err) != GGUF_OK);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        continue;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void remove_all(const char *name)
{
    char path[300];
    remove(in_dir(name));
    snprintf(path, sizeof path, "%s.resume", name);
    remove(in_dir(path));
    snprintf(path, sizeof path, "%s" GG_OUTFILE_PART, name);
    remove(in_dir(path));
}

/* Open "better", a run with importance data, and get its losses. */
static struct gguf_file *make_better(const char *in,
                                     struct gguf_quant_loss *loss)
{
    struct setting s = {
        .types = { "Q4_K_M" }, .names = { "better" }, .n = 1, .weighted = true
    };
    struct gguf_error err;
    struct gguf_file *f = NULL;
    if (run_jobs(in, &s, &err) != GGUF_OK ||
        gguf_file_open(&f, in_dir("better"), NULL, &err) != GGUF_OK) {
        printf("Bail out! %s\n", err.message);
        exit(99);
    }
    memcpy(loss, s.loss, sizeof s.loss);
    return f;
}

static struct setting make_setting(const struct gguf_file *better,
                                   const char *name)
{
    return (struct setting){
        .types = { "Q4_K_M" }, .names = { name }, .n = 1, .better = better
    };
}

/* Number of replacements of a whole run. */
static size_t n_all;

static void check_bytes(const char *in, const struct gguf_file *better,
                        const struct gguf_quant_loss *want)
{
    struct setting s = make_setting(better, "plain"),
                   r = make_setting(better, "one");
    struct gguf_error err;
    s.no_improve = true;
    ok(run_jobs(in, &s, &err) == GGUF_OK && !s.n_calls,
       "a run without the callback %s", err.message);
    ok(run_jobs(in, &r, &err) == GGUF_OK && r.n_calls == 1 && !r.jobs[0] &&
           r.n_replaced > 3 && !r.n_found && !r.bad && r.checked,
       "%zu tensors are replaced before the check; the file shows them %s",
       r.n_replaced, err.message);
    n_all = r.n_replaced;
    ok(!same_files(in_dir("one"), in_dir("plain")),
       "the better bytes are others");
    bool good = true, other = false;
    for (size_t i = 0; i < MAX_TENSORS; i++) {
        good = good && r.loss[i].measured == want[i].measured &&
               r.loss[i].rms == want[i].rms && r.loss[i].max == want[i].max &&
               r.loss[i].snr == want[i].snr &&
               r.loss[i].weighted == r.loss[i].rms;
        other |= s.loss[i].rms != want[i].rms;
    }
    ok(good && other, "their losses are those of the run that made them");
    for (unsigned threads = 1; threads < 4; threads += 2) {
        struct setting t = make_setting(better, "two");
        t.threads = threads;
        good = run_jobs(in, &t, &err) == GGUF_OK &&
               same_files(in_dir("one"), in_dir("two"));
        for (size_t i = 0; i < MAX_TENSORS; i++)
            good = good && t.loss[i].rms == want[i].rms;
        ok(good, "so they are with %u threads", threads);
        remove_all("two");
    }
}

/* Two jobs, the first with two files. */
static void check_jobs(const char *in, const struct gguf_file *better)
{
    struct setting s = make_setting(better, "a");
    struct gguf_error err;
    struct gguf_file *f = NULL;
    s.n = 2;
    s.types[1] = "Q4_K_M";
    s.names[1] = "b";
    s.max_file = 300000;
    ok(run_jobs(in, &s, &err) == GGUF_OK && s.n_calls == 2 && s.jobs[0] == 0 &&
           s.jobs[1] == 1 && !s.bad && s.n_replaced == 2 * n_all &&
           file_exists("a-00002-of-00002.gguf"),
       "two jobs in shards: one call for each %s", err.message);
    bool good = gguf_file_open(&f, in_dir("b-00001-of-00002.gguf"), NULL,
                               &err) == GGUF_OK;
    for (size_t i = 0; good && i < gguf_file_n_tensors(better); i++)
        good = has_bytes(f, i, gguf_file_tensor_data(better, i),
                         gguf_file_tensor(better, i)->size);
    ok(good, "each tensor is at its place in the right file");
    gguf_file_close(f);
    remove(in_dir("a-00001-of-00002.gguf"));
    remove(in_dir("a-00002-of-00002.gguf"));
    remove(in_dir("b-00001-of-00002.gguf"));
    remove(in_dir("b-00002-of-00002.gguf"));
}

/* Restore each tensor of the second job after its replacement. */
static enum gguf_status restore_second(void *user, size_t job,
                                       struct gguf_quant_improver *h,
                                       struct gguf_error *err)
{
    struct setting *s = user;
    const struct gguf_quant *q = gguf_quant_improver_job(h);
    const struct gguf_file *f = gguf_quant_improver_file(h);
    const size_t n = gguf_quant_n_tensors(q);
    enum gguf_status st = replace_all(user, job, h, err);
    for (size_t i = 0; job && st == GGUF_OK && i < n; i++) {
        st = gguf_quant_improver_restore(h, i, err);
        s->bad |= gguf_quant_improver_is_replaced(h, i) ||
                  *(const uint8_t *)gguf_quant_improver_note(h, i) != 0;
    }
    for (size_t i = 0; i < gguf_file_n_tensors(f) && !job; i++)
        s->bad |= !has_bytes(f, i, gguf_file_tensor_data(s->better, i),
                             gguf_file_tensor(s->better, i)->size);
    s->bad |= gguf_quant_improver_restore(h, n, NULL) != GGUF_E_INVALID;
    return st;
}

/* Two jobs: the first keeps its new bytes, the second has the plain ones
 * again, with their losses. */
static void check_restored(const char *in, const struct gguf_file *better)
{
    for (unsigned threads = 1; threads < 4; threads += 2) {
        struct setting s = make_setting(better, "first"),
                       p = make_setting(better, "plain2"),
                       n = make_setting(better, "new2");
        struct gguf_error err;
        p.no_improve = true;
        bool good = run_jobs(in, &p, &err) == GGUF_OK &&
                    run_jobs(in, &n, &err) == GGUF_OK;
        s.n = 2;
        s.types[1] = "Q4_K_M";
        s.names[1] = "second";
        s.threads = threads;
        s.resume = threads > 1;
        s.improve = restore_second;
        good = good && run_jobs(in, &s, &err) == GGUF_OK && !s.bad;
        ok(good && same_files(in_dir("first"), in_dir("new2")) &&
               same_files(in_dir("second"), in_dir("plain2")) &&
               !same_files(in_dir("first"), in_dir("second")),
           "%u threads: the second job has its plain bytes again %s", threads,
           err.message);
        bool same = true;
        for (size_t i = 0; i < MAX_TENSORS; i++)
            same = same && s.last[i].rms == p.loss[i].rms &&
                   s.last[i].max == p.loss[i].max;
        ok(same, "and their losses");
        remove_all("first");
        remove_all("second");
        remove_all("plain2");
        remove_all("new2");
    }
}

/* Statuses of calls with wrong arguments, and of blocks with NaN. */
struct refusal {
    enum gguf_status size, number, nan, keep;
    char message[sizeof(((struct gguf_error *)NULL)->message)];
    bool same;
};

static enum gguf_status try_wrong_bytes(void *user, size_t job,
                                        struct gguf_quant_improver *h,
                                        struct gguf_error *err)
{
    struct refusal *r = user;
    const struct gguf_quant *q = gguf_quant_improver_job(h);
    const struct gguf_file *f = gguf_quant_improver_file(h);
    size_t i = 0, n = gguf_quant_n_tensors(q);
    (void)job, (void)err;
    while (gguf_quant_tensor(q, i)->to != GGUF_DTYPE_Q8_0)
        i++;
    const uint64_t size = gguf_quant_tensor(q, i)->to_size;
    uint8_t *bytes = malloc((size_t)size);
    uint8_t *before = malloc((size_t)size);
    memcpy(bytes, gguf_file_tensor_data(f, i), (size_t)size);
    memcpy(before, bytes, (size_t)size);
    r->size = gguf_quant_improver_replace(h, i, bytes, size - 1, NULL);
    r->number = gguf_quant_improver_replace(h, n, bytes, size, NULL);
    bytes[size - 34] = 0; /* the last block's scale: F16, NaN */
    bytes[size - 33] = 0x7e;
    struct gguf_error why;
    r->nan = gguf_quant_improver_replace(h, i, bytes, size, &why);
    memcpy(r->message, why.message, sizeof r->message);
    r->same = has_bytes(f, i, before, size) &&
              !gguf_quant_improver_is_replaced(h, i) &&
              !gguf_quant_improver_is_replaced(h, n) &&
              !gguf_quant_improver_note(h, n);
    gguf_quant_improver_set_note(h, n, bytes, 1); /* ignored */
    r->keep = gguf_quant_improver_replace(h, i, NULL, 0, NULL);
    r->same = r->same && has_bytes(f, i, before, size) &&
              gguf_quant_improver_is_replaced(h, i);
    free(bytes);
    free(before);
    return GGUF_OK;
}

static void check_refusals(const char *in)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *recipe = NULL;
    struct gguf_quant *q = NULL;
    struct gguf_error err;
    struct refusal r = { .size = GGUF_OK };
    o.improve = (struct gguf_quant_improve_callback){ try_wrong_bytes, &r };
    o.no_sync = true;
    bool good = gguf_recipe_preset(&recipe, "Q8_0", NULL, &err) == GGUF_OK;
    p.recipe = recipe;
    good = good && gguf_quant_create(&q, in, &p, &err) == GGUF_OK &&
           gguf_quant_run(q, in_dir("two"), &o, &err) == GGUF_OK;
    ok(good && r.size == GGUF_E_INVALID && r.number == GGUF_E_INVALID,
       "another size, or a tensor that does not exist");
    ok(r.nan == GGUF_E_NONFINITE && r.same && r.keep == GGUF_OK,
       "blocks with NaN are not written: %s", r.message);
    gguf_quant_destroy(q);
    gguf_recipe_destroy(recipe);
    remove_all("two");
}

/* "one" is the whole run. */
static void check_resumed(const char *in, const struct gguf_file *better)
{
    struct setting s = make_setting(better, "two"), t;
    struct gguf_error err;
    const int before = n_entries();
    s.fail_at = 3;
    ok(run_jobs(in, &s, &err) == GGUF_E_CANCELLED && n_entries() == before &&
           !strcmp(err.message, "enough of it"),
       "a callback that fails leaves nothing: %s", err.message);
    s = make_setting(better, "two");
    s.fail_at = 3;
    s.resume = true;
    ok(run_jobs(in, &s, &err) == GGUF_E_CANCELLED &&
           n_entries() == before + 2 && !file_exists("two"),
       "with resume it leaves the journal and the data");
    t = s;
    t.fail_at = 0;
    t.digest = 1;
    ok(run_jobs(in, &t, &err) == GGUF_E_MISMATCH && file_exists("two.resume"),
       "another digest: %s", err.message);
    t.digest = 0;
    t.no_improve = true;
    ok(run_jobs(in, &t, &err) == GGUF_E_MISMATCH && file_exists("two.resume"),
       "no callback at all: %s", err.message);
    t = make_setting(better, "two");
    t.resume = true;
    bool good = run_jobs(in, &t, &err) == GGUF_OK && t.n_found == 2 &&
                !t.bad && t.n_replaced == n_all - 2 && t.n_kept &&
                same_files(in_dir("one"), in_dir("two"));
    ok(good, "the next run finds 2 replaced tensors with their notes %s",
       err.message);
    remove_all("two");
}

static void check_kills(const char *in, const struct gguf_file *better, int n)
{
    int bad = 0, n_kills = 0;
    for (int done = 0; done < n;) {
        struct setting s = make_setting(better, "two");
        s.resume = true;
        s.threads = (unsigned)rnd_below(3);
        s.kill_at = 1 + (size_t)rnd_below(n_all);
        if (run_killed(in, s)) {
            n_kills++;
            bad += file_exists("two");
            continue;
        }
        bad += !same_files(in_dir("one"), in_dir("two")) ||
               file_exists("two.resume");
        remove_all("two");
        done++;
    }
    ok(!bad && n_kills >= n,
       "%d outputs, killed %d times between two replacements, are the same", n,
       n_kills);
}

/* Change a byte of a replaced tensor between two runs. */
static void check_damage(const char *in, const struct gguf_file *better)
{
    struct setting s = make_setting(better, "two");
    struct gguf_error err;
    size_t first = 0;
    while (gguf_file_tensor(better, first)->dtype != GGUF_DTYPE_Q4_K)
        first++;
    s.resume = true;
    s.fail_at = n_all;
    bool good = run_jobs(in, &s, &err) == GGUF_E_CANCELLED;
    /* the data of "one" is at the same offsets */
    struct gguf_file *f = NULL;
    good = good && gguf_file_open(&f, in_dir("one"), NULL, &err) == GGUF_OK;
    const off_t at = good ? (off_t)(f->data_off + f->tensor[first].off) : 0;
    gguf_file_close(f);
    const int fd = open(in_dir("two" GG_OUTFILE_PART), O_RDWR);
    uint8_t b = 0;
    good = good && pread(fd, &b, 1, at) == 1;
    b ^= 1;
    good = good && pwrite(fd, &b, 1, at) == 1;
    close(fd);
    s = make_setting(better, "two");
    s.resume = true;
    ok(good && run_jobs(in, &s, &err) == GGUF_OK && s.n_found == n_all - 2 &&
           s.n_replaced == 2 && !s.bad &&
           same_files(in_dir("one"), in_dir("two")),
       "a damaged tensor is encoded and replaced again (%zu found) %s",
       s.n_found, err.message);
    remove_all("two");
}

int main(void)
{
    const char *in = enter_model();
    struct gguf_quant_loss want[MAX_TENSORS];
    struct gguf_file *better = make_better(in, want);
    check_bytes(in, better, want);
    check_jobs(in, better);
    check_restored(in, better);
    check_refusals(in);
    check_resumed(in, better);
    check_kills(in, better, getenv("GGUF_TEST_LONG") ? 100 : 8);
    check_damage(in, better);
    gguf_file_close(better);
    remove(in_dir("better"));
    remove(in_dir("plain"));
    remove(in_dir("one"));
    return leave_model();
}
