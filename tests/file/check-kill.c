/* SPDX-License-Identifier: MIT */
/* check-kill.c - jobs that are killed at random instants
 *
 * Each job runs in a child of its own, over files of 24 MB, and is killed
 * after a random part of its measured duration. Every output name then has
 * what it had before (nothing, or an old file) or the complete new file, and
 * inputs are what they were. What may be left over beside them is one
 * temporary, .NAME.PID-N.tmp, and the journal of an edit in place, NAME
 * .edit-journal. A few kills of each job; 200 with GGUF_TEST_LONG.
 */
#include "config.h"
#include "base/outfile_int.h"
#include "gguf/edit.h"
#include "gguf/split.h"
#include "gguf/writer.h"
#include "tests/tap.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    N_TENSORS = 16,
    TENSOR_SIZE = (3 << 19) + 100, /* bytes */
    SHARD = 4,                     /* tensors in one */
    N_SHARDS = N_TENSORS / SHARD,
    LONG_TEXT = 3 << 20 /* bytes, where the header is the work */
};

static char dir[] = "check-kill-XXXXXX";
static char path_buffer[8][128];

/* NAME in the folder; good for eight calls. */
static char *in_dir(const char *name)
{
    static unsigned k;
    char *p = path_buffer[k++ % 8];
    snprintf(p, sizeof path_buffer[0], "%s/%s", dir, name);
    return p;
}

/* --------------------------------------------------------- fingerprints --- */

/* Of a file's bytes; 0: it is not there. */
static uint64_t print_of(const char *name)
{
    static uint8_t buf[1 << 16];
    size_t n;
    FILE *f = fopen(in_dir(name), "rb");
    if (!f)
        return 0;
    XXH3_state_t *s = XXH3_createState();
    XXH3_64bits_reset(s);
    while ((n = fread(buf, 1, sizeof buf, f)) > 0)
        XXH3_64bits_update(s, buf, n);
    uint64_t v = XXH3_64bits_digest(s);
    XXH3_freeState(s);
    fclose(f);
    return v ? v : 1;
}

static char *shard_name(const char *prefix, unsigned i)
{
    static char name[4][64];
    static unsigned k;
    char *p = name[k++ % 4];
    snprintf(p, sizeof name[0], "%s-%05u-of-%05u.gguf", prefix, i + 1,
             (unsigned)N_SHARDS);
    return p;
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "wb");
    if (!f || fputs(text, f) < 0 || fclose(f))
        exit(99);
}

/* --------------------------------------------------------------- models --- */

/* A model with n times c under "text". */
static void write_model(const char *name, size_t n, char c)
{
    static uint8_t data[TENSOR_SIZE];
    static const int64_t ne[] = { TENSOR_SIZE };
    struct gguf_output_params o = GGUF_OUTPUT_PARAMS_INIT;
    struct gguf_meta *m = NULL;
    struct gguf_writer *w = NULL;
    char *text = malloc(n);
    memset(text, c, n);
    o.no_sync = 1;
    enum gguf_status st = gguf_meta_create(&m, NULL, NULL);
    if (st == GGUF_OK)
        st = gguf_meta_set_str(m, "text", (struct gguf_str){ text, n }, NULL);
    if (st == GGUF_OK)
        st = gguf_writer_create(&w, m, NULL, NULL);
    for (unsigned i = 0; i < N_TENSORS && st == GGUF_OK; i++) {
        char t[16];
        snprintf(t, sizeof t, "t%02u", i);
        st = gguf_writer_add_tensor(w, (struct gguf_str){ t, 3 },
                                    GGUF_DTYPE_I8, 1, ne, NULL);
    }
    if (st == GGUF_OK)
        st = gguf_writer_open(w, in_dir(name), &o, NULL);
    for (unsigned i = 0; i < N_TENSORS && st == GGUF_OK; i++) {
        for (size_t k = 0; k < TENSOR_SIZE; k++)
            data[k] = (uint8_t)(k * 31 + i);
        st = gguf_writer_begin(w, i, NULL);
        if (st == GGUF_OK)
            st = gguf_writer_write(w, data, TENSOR_SIZE, NULL);
    }
    if (st == GGUF_OK)
        st = gguf_writer_commit(w, NULL);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
    free(text);
    if (st != GGUF_OK)
        exit(99);
}

/* What parent and child share. */
struct shared {
    atomic_int state;            /* 0, 1: at work, 2: done, 3: failed */
    _Atomic uint64_t begin, end; /* microseconds */
    _Atomic uint64_t done, total;
};
static struct shared *shared;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Of the last run. */
static double seconds(void)
{
    return 1e-6 *
           (double)(atomic_load(&shared->end) - atomic_load(&shared->begin));
}

static int note(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    atomic_store(&shared->done, done);
    atomic_store(&shared->total, total);
    return 0;
}

/* ----------------------------------------------------------------- jobs --- */

static enum gguf_status run_split(int sync)
{
    struct gguf_split_params p = GGUF_SPLIT_PARAMS_INIT;
    struct gguf_split_job j = GGUF_SPLIT_JOB_INIT;
    struct gguf_file *s = NULL;
    struct gguf_split_plan *plan = NULL;
    p.max_tensors = SHARD;
    j.force = 1;
    j.no_sync = !sync;
    j.progress = note;
    enum gguf_status st = gguf_file_open(&s, in_dir("in.gguf"), NULL, NULL);
    if (st == GGUF_OK)
        st = gguf_split_plan_create(&plan, s, &p, NULL);
    if (st == GGUF_OK)
        st = gguf_split_plan_write(plan, in_dir("out"), &j, NULL);
    gguf_split_plan_destroy(plan);
    gguf_file_close(s);
    return st;
}

static enum gguf_status run_merge(int sync)
{
    struct gguf_split_job j = GGUF_SPLIT_JOB_INIT;
    struct gguf_file *s = NULL;
    j.force = 1;
    j.no_sync = !sync;
    j.progress = note;
    enum gguf_status st = gguf_file_open(&s, in_dir("set"), NULL, NULL);
    if (st == GGUF_OK)
        st = gguf_split_merge(s, in_dir("merged.gguf"), &j, NULL);
    gguf_file_close(s);
    return st;
}

/* Replace model.gguf by itself with another text: of c and n bytes. */
static enum gguf_status edit(const char *name, size_t n, char c,
                             struct gguf_edit_params *p)
{
    struct gguf_file *f = NULL;
    struct gguf_meta *m = NULL;
    char *text = malloc(n);
    memset(text, c, n);
    p->progress = note;
    enum gguf_status st = gguf_file_open(&f, in_dir(name), NULL, NULL);
    if (st == GGUF_OK)
        st = gguf_meta_create(&m, NULL, NULL);
    if (st == GGUF_OK)
        st = gguf_meta_copy_file(m, f, NULL);
    if (st == GGUF_OK)
        st = gguf_meta_set_str(m, "text", (struct gguf_str){ text, n }, NULL);
    if (st == GGUF_OK)
        st = gguf_edit_apply(f, m, p, NULL, NULL);
    gguf_meta_destroy(m);
    gguf_file_close(f);
    free(text);
    return st;
}

/* Jobs that replace their input go there and back. */
static bool forth;

static enum gguf_status run_edit(int sync)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    p.mode = GGUF_EDIT_COPY;
    p.no_sync = !sync;
    return edit("model.gguf", 100, forth ? 'b' : 'a', &p);
}

static enum gguf_status run_order(int sync)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    p.order = forth ? GGUF_EDIT_BIG_ENDIAN : GGUF_EDIT_LITTLE_ENDIAN;
    p.no_sync = !sync;
    return edit("model.gguf", 100, 'a', &p);
}

/* The header is large, so that journal and header take their time. */
static enum gguf_status run_in_place(int sync)
{
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    p.mode = GGUF_EDIT_IN_PLACE;
    p.no_sync = !sync;
    return edit("large.gguf", LONG_TEXT, forth ? 'b' : 'a', &p);
}

/* As on a system whose files always have names. */
static enum gguf_status run_named(int sync)
{
    struct gg_outfile o;
    static uint8_t piece[1 << 16];
    memset(piece, 7, sizeof piece);
    enum gguf_status st =
        gg_outfile_open(&o, NULL, in_dir("named.gguf"),
                        GG_OUTFILE_FORCE | GG_OUTFILE_NAMED |
                            (sync ? 0u : (unsigned)GG_OUTFILE_NO_SYNC),
                        NULL);
    for (unsigned i = 0; i < 384 && st == GGUF_OK; i++) {
        st = gg_outfile_write(&o, piece, sizeof piece, NULL);
        note(NULL, i, 384);
    }
    if (st == GGUF_OK)
        st = gg_outfile_commit(&o, NULL);
    gg_outfile_abort(&o);
    return st;
}

enum { MAX_NAMES = N_SHARDS };

struct job {
    const char *name;
    enum gguf_status (*run)(int sync);
    bool replaces; /* its input, there and back; else old files are put there
                    * or not */
    const char *output[MAX_NAMES];
    uint64_t complete[2][MAX_NAMES]; /* fingerprints: of forth, of back */
};

/* Inputs that no job may touch. */
static const char *inputs[1 + N_SHARDS] = { "in.gguf" };
static uint64_t input_prints[1 + N_SHARDS];

/* ------------------------------------------------------------- one kill --- */

struct tally {
    unsigned kills, midway, quarter[4];
    unsigned absent, old, new;
    unsigned temps, journals;
    unsigned bad;      /* anything that must not be */
    double seconds[2]; /* of a run, without sync and with */
};

static pid_t start(const struct job *j, int sync)
{
    atomic_store(&shared->state, 0);
    atomic_store(&shared->done, 0);
    atomic_store(&shared->total, 0);
    pid_t pid = fork();
    if (pid < 0)
        exit(99);
    if (pid)
        return pid;
    atomic_store(&shared->begin, now());
    atomic_store(&shared->state, 1);
    enum gguf_status st = j->run(sync);
    atomic_store(&shared->end, now());
    atomic_store(&shared->state, st == GGUF_OK ? 2 : 3);
    _exit(st == GGUF_OK ? 0 : 1);
}

static void wait_for(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void run_whole(const struct job *j, int sync, struct tally *t)
{
    wait_for(start(j, sync));
    if (atomic_load(&shared->state) != 2)
        exit(99);
    t->seconds[sync] = seconds();
}

static void kill_one(const struct job *j, int sync, struct tally *t)
{
    pid_t pid = start(j, sync);
    struct timespec nap = { 0, 20000 };
    while (atomic_load(&shared->state) == 0)
        nanosleep(&nap, NULL);
    double s = t->seconds[sync] * (double)rnd_below(1000) / 1000;
    nap.tv_sec = (time_t)s;
    nap.tv_nsec = (long)((s - (double)nap.tv_sec) * 1e9);
    nanosleep(&nap, NULL);
    kill(pid, SIGKILL);
    wait_for(pid);
    t->kills++;
    t->bad += atomic_load(&shared->state) == 3;
    if (atomic_load(&shared->state) == 1) {
        uint64_t total = atomic_load(&shared->total);
        uint64_t q = total ? atomic_load(&shared->done) * 4 / total : 0;
        t->midway++;
        t->quarter[q > 3 ? 3 : q]++;
    } else { /* it was faster than thought */
        s = seconds();
        if (s > 0 && s < t->seconds[sync])
            t->seconds[sync] = s;
    }
}

/* Is there an output of this name, or the input of some job? */
static bool is_known(const struct job *j, const char *name)
{
    for (size_t i = 0; i < MAX_NAMES && j->output[i]; i++)
        if (!strcmp(name, j->output[i]))
            return true;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (!strcmp(name, inputs[i]))
            return true;
    return !strcmp(name, "model.gguf") || !strcmp(name, "large.gguf");
}

/* Nothing else may lie there but a temporary, which goes away, and the journal
 * of an edit. */
static void look_around(const struct job *j, struct tally *t)
{
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        const char *s = e->d_name;
        size_t n = strlen(s);
        if (!strcmp(s, ".") || !strcmp(s, "..") || is_known(j, s))
            continue;
        if (s[0] == '.' && n > 4 && !strcmp(s + n - 4, ".tmp")) {
            t->temps++;
            unlink(in_dir(s));
        } else if (!strcmp(s, "large.gguf.edit-journal")) {
            t->journals++;
        } else {
            printf("# %s: left over\n", s);
            t->bad++;
        }
    }
    if (d)
        closedir(d);
}

/* One output, whose fingerprint was before. */
static void check_output(const struct job *j, size_t i, uint64_t before,
                         struct tally *t)
{
    uint64_t v = print_of(j->output[i]);
    if (v == j->complete[forth][i])
        t->new ++;
    else if (v == before)
        *(v ? &t->old : &t->absent) += 1;
    else {
        printf("# %s is neither the old nor the new file\n", j->output[i]);
        t->bad++;
    }
}

/* A set without all its shards must say so. */
static void check_set(const struct job *j, struct tally *t)
{
    size_t n = 0;
    const char *any = NULL;
    for (size_t i = 0; i < N_SHARDS; i++)
        if (print_of(j->output[i]) == j->complete[forth][i]) {
            any = j->output[i];
            n++;
        }
    struct gguf_file *s = NULL;
    if (any && n < N_SHARDS)
        t->bad +=
            gguf_file_open(&s, in_dir(any), NULL, NULL) != GGUF_E_NOTFOUND;
    gguf_file_close(s);
}

/* Before recovery the file must read as one or the other; then be it. */
static void check_in_place(struct tally *t)
{
    struct gguf_file *f = NULL;
    char c = 0;
    if (gguf_file_open(&f, in_dir("large.gguf"), NULL, NULL) == GGUF_OK) {
        const struct gguf_kv *kv = gguf_file_kv_find(f, "text");
        const char *text = kv ? kv->data : "";
        c = kv && kv->size == LONG_TEXT ? text[0] : 0;
        for (size_t i = 0; c && i < LONG_TEXT; i++)
            c = text[i] == c ? c : 0;
    }
    gguf_file_close(f);
    t->bad += c != 'a' && c != 'b';
    t->bad += gguf_edit_recover(in_dir("large.gguf"), NULL, NULL) != GGUF_OK;
}

static void round_of(const struct job *j, unsigned i, unsigned kills,
                     struct tally *t)
{
    uint64_t before[MAX_NAMES] = { 0 };
    bool old = i & 1;
    for (size_t k = 0; k < MAX_NAMES && j->output[k]; k++) {
        if (!j->replaces) {
            unlink(in_dir(j->output[k]));
            if (old)
                write_text(j->output[k], "an old file");
        }
        before[k] = print_of(j->output[k]);
    }
    if (j->replaces) /* towards what it is not */
        forth = before[0] != j->complete[1][0];
    /* Waiting for the disk takes most of a run's time: an eighth do. */
    kill_one(j, i % 8 == (kills < 8 ? 0 : 7), t);
    look_around(j, t);
    if (j->run == run_in_place)
        check_in_place(t);
    for (size_t k = 0; k < MAX_NAMES && j->output[k]; k++)
        check_output(j, k, before[k], t);
    if (j->run == run_split && !old)
        check_set(j, t);
    for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++)
        if (print_of(inputs[k]) != input_prints[k]) {
            printf("# %s, an input, has changed\n", inputs[k]);
            t->bad++;
        }
}

static void check_job(struct job *j, unsigned kills)
{
    struct tally t = { 0 };
    /* Twice: the second is the one that is fast. What replaces its input is
     * back at the first file then. */
    for (int back = 0; back < 2; back++) {
        forth = !back;
        run_whole(j, 0, &t);
        for (size_t k = 0; k < MAX_NAMES && j->output[k]; k++)
            j->complete[forth][k] = print_of(j->output[k]);
    }
    if (!j->replaces)
        forth = true;
    run_whole(j, 1, &t);
    for (unsigned i = 0; i < kills; i++)
        round_of(j, i, kills, &t);
    ok(!t.bad,
       "%s: killed %u times: %u names without a file, %u with the old "
       "one, %u with the new one; %u temporaries, %u journals",
       j->name, t.kills, t.absent, t.old, t.new, t.temps, t.journals);
    ok(t.midway * 2 >= t.kills,
       "%s: %u of %u at work, in the quarters of it "
       "%u %u %u %u; a run takes %.0f ms, %.0f with the disk",
       j->name, t.midway, t.kills, t.quarter[0], t.quarter[1], t.quarter[2],
       t.quarter[3], 1e3 * t.seconds[0], 1e3 * t.seconds[1]);
}

static void make_inputs(void)
{
    write_model("in.gguf", 100, 'a');
    write_model("model.gguf", 100, 'a');
    write_model("large.gguf", LONG_TEXT, 'a');
    if (run_split(0) != GGUF_OK)
        exit(99);
    for (unsigned i = 0; i < N_SHARDS; i++) {
        inputs[1 + i] = strdup(shard_name("set", i));
        if (rename(in_dir(shard_name("out", i)), in_dir(inputs[1 + i])) != 0)
            exit(99);
    }
    for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++)
        input_prints[k] = print_of(inputs[k]);
}

int main(void)
{
    static struct job jobs[] = {
        { .name = "split", .run = run_split },
        { .name = "merge", .run = run_merge, .output = { "merged.gguf" } },
        { .name = "edit",
          .run = run_edit,
          .replaces = true,
          .output = { "model.gguf" } },
        { .name = "another byte order",
          .run = run_order,
          .replaces = true,
          .output = { "model.gguf" } },
        { .name = "edit in place",
          .run = run_in_place,
          .replaces = true,
          .output = { "large.gguf" } },
        { .name = "a named temporary",
          .run = run_named,
          .output = { "named.gguf" } },
    };
    const char *more = getenv("GGUF_TEST_LONG");
    unsigned kills = more && *more ? 200 : 10;
    void *p = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || !mkdtemp(dir))
        return 99;
    shared = p;
    make_inputs();
    for (unsigned i = 0; i < N_SHARDS; i++)
        jobs[0].output[i] = strdup(shard_name("out", i));
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++) {
        check_job(&jobs[k], kills);
        for (size_t i = 0; !jobs[k].replaces && i < MAX_NAMES; i++)
            if (jobs[k].output[i])
                unlink(in_dir(jobs[k].output[i]));
    }
    char cmd[100];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    if (system(cmd) != 0)
        return 99;
    return done_testing();
}
