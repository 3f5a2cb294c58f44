/* SPDX-License-Identifier: MIT */
/* check-changed.c - input files that change, or are truncated, while their
 * tensors are copied: no output remains */
#include "config.h"
#include "base/compiler.h"
#include "gguf/edit.h"
#include "gguf/split.h"
#include "gguf/writer.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_TENSORS = 4, N_FLOATS = 50000 };

static char dir[] = "check-changed-XXXXXX";

static char *in_dir(const char *name)
{
    return scratch_path(dir, name);
}

static int n_entries(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* --------------------------------------------------------------- events --- */

struct event {
    uint64_t calls, at;
    void (*fn)(void);
};

static const char *victim; /* the file that is changed */
static struct stat before; /* its attributes before */

static bool count_call(void *user, uint64_t done, uint64_t total)
{
    struct event *e = user;
    (void)done, (void)total;
    if (++e->calls == e->at)
        e->fn();
    return 0;
}

static void set_time(struct timespec t)
{
    struct timespec both[2] = { t, t };
    if (utimensat(AT_FDCWD, in_dir(victim), both, 0))
        exit(99);
}

static void touch_it(void)
{
    struct timespec t = before.st_mtim;
    t.tv_nsec = (t.tv_nsec + 1) % 1000000000;
    set_time(t);
}

/* Truncate the file and keep its time. */
static void cut_it(void)
{
    if (truncate(in_dir(victim), before.st_size - 100))
        exit(99);
    set_time(before.st_mtim);
}

/* ----------------------------------------------------------------- jobs --- */

static void write_model(const char *name)
{
    static float data[N_FLOATS];
    static const int64_t ne[] = { N_FLOATS };
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    struct gguf_writer *w;
    bool good = gguf_writer_create(&w, NULL, NULL, NULL) == GGUF_OK;
    o.force = o.no_sync = true;
    for (unsigned i = 0; i < N_TENSORS && good; i++) {
        char t[16];
        snprintf(t, sizeof t, "t%u", i);
        good = gguf_writer_add_tensor(w, (struct gguf_str){ t, 2 },
                                      GGUF_DTYPE_F32, 1, ne, NULL) == GGUF_OK;
    }
    good =
        good && gguf_writer_begin_file(w, in_dir(name), &o, NULL) == GGUF_OK;
    for (unsigned i = 0; i < N_TENSORS && good; i++)
        good = gguf_writer_begin_tensor(w, i, NULL) == GGUF_OK &&
               gguf_writer_write(w, data, sizeof data, NULL) == GGUF_OK;
    if (!good || gguf_writer_commit(w, NULL) != GGUF_OK)
        exit(99);
    gguf_writer_destroy(w);
}

static enum gguf_status edit_file(struct event *e,
                                  enum gguf_edit_byte_order order,
                                  uint32_t align, const char *output,
                                  struct gguf_error *err)
{
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_file *f = NULL;
    struct gguf_meta *m = NULL;
    p.mode = GGUF_EDIT_COPY;
    p.byte_order = order;
    p.output = output ? in_dir(output) : NULL;
    p.no_sync = true;
    p.progress.fn = count_call;
    p.progress.user = e;
    enum gguf_status st = gguf_file_open(&f, in_dir("in.gguf"), NULL, err);
    if (st == GGUF_OK)
        st = gguf_meta_create(&m, NULL, err);
    if (st == GGUF_OK && align)
        st = gguf_meta_set_u32(m, "general.alignment", align, err);
    if (st == GGUF_OK)
        st = gguf_edit_apply(f, m, &p, NULL, err);
    gguf_meta_destroy(m);
    gguf_file_close(f);
    return st;
}

static enum gguf_status run_copy(struct event *e, struct gguf_error *err)
{
    return edit_file(e, GGUF_EDIT_KEEP_ORDER, 0, "out", err);
}

static enum gguf_status run_self(struct event *e, struct gguf_error *err)
{
    return edit_file(e, GGUF_EDIT_KEEP_ORDER, 0, NULL, err);
}

static enum gguf_status run_swap(struct event *e, struct gguf_error *err)
{
    return edit_file(e, GGUF_EDIT_BIG_ENDIAN, 0, "out", err);
}

static enum gguf_status run_relayout(struct event *e, struct gguf_error *err)
{
    return edit_file(e, GGUF_EDIT_KEEP_ORDER, 4096, "out", err);
}

static enum gguf_status run_split(struct event *e, struct gguf_error *err)
{
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    struct gguf_split_output_params j =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file *s = NULL;
    struct gguf_split_plan *plan = NULL;
    p.max_tensors = 2;
    j.no_sync = true;
    j.progress.fn = count_call;
    j.progress.user = e;
    enum gguf_status st = gguf_file_open(&s, in_dir("in.gguf"), NULL, err);
    if (st == GGUF_OK)
        st = gguf_split_plan_create(&plan, s, &p, err);
    if (st == GGUF_OK)
        st = gguf_split_plan_write(plan, in_dir("out"), &j, err);
    gguf_split_plan_destroy(plan);
    gguf_file_close(s);
    return st;
}

static enum gguf_status run_merge(struct event *e, struct gguf_error *err)
{
    struct gguf_split_output_params j =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file *s = NULL;
    j.no_sync = true;
    j.progress.fn = count_call;
    j.progress.user = e;
    enum gguf_status st = gguf_file_open(&s, in_dir("set"), NULL, err);
    if (st == GGUF_OK)
        st = gguf_split_merge(s, in_dir("out"), &j, err);
    gguf_file_close(s);
    return st;
}

/* A program's own writer, which has named its input. */
static enum gguf_status run_writer(struct event *e, struct gguf_error *err)
{
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    struct gguf_file *f = NULL;
    const struct gguf_file *inputs[1];
    struct gguf_writer *w = NULL;
    enum gguf_status st = gguf_file_open(&f, in_dir("in.gguf"), NULL, err);
    if (st == GGUF_OK)
        st = gguf_writer_create(&w, NULL, NULL, err);
    inputs[0] = f;
    o.inputs = inputs;
    o.n_inputs = 1;
    o.no_sync = true;
    for (size_t i = 0; i < N_TENSORS && st == GGUF_OK; i++)
        st = gguf_writer_add_like(w, gguf_file_tensor(f, i), err);
    if (st == GGUF_OK)
        st = gguf_writer_begin_file(w, in_dir("out"), &o, err);
    for (size_t i = 0; i < N_TENSORS && st == GGUF_OK; i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
        st = gguf_writer_begin_tensor(w, i, err);
        if (st == GGUF_OK)
            st = gguf_writer_write(w, gguf_file_tensor_data(f, i), t->size,
                                   err);
        count_call(e, 0, 0);
    }
    if (st == GGUF_OK)
        st = gguf_writer_commit(w, err);
    gguf_writer_destroy(w);
    gguf_file_close(f);
    return st;
}

static const struct job {
    const char *name;
    enum gguf_status (*run)(struct event *e, struct gguf_error *err);
    const char *victim;
} jobs[] = {
    { "a copy", run_copy, "in.gguf" },
    { "a copy over itself", run_self, "in.gguf" },
    { "another byte order", run_swap, "in.gguf" },
    { "another alignment", run_relayout, "in.gguf" },
    { "a split", run_split, "in.gguf" },
    { "a merge, the first", run_merge, "set-00001-of-00002.gguf" },
    { "a merge, the last", run_merge, "set-00002-of-00002.gguf" },
    { "a writer", run_writer, "in.gguf" },
};

static void remove_outputs(void)
{
    remove(in_dir("out"));
    remove(in_dir("out-00001-of-00002.gguf"));
    remove(in_dir("out-00002-of-00002.gguf"));
}

/* Make both shards of "set", split from in.gguf. */
static void make_inputs(void)
{
    struct event e = { .calls = 0 };
    write_model("in.gguf");
    if (run_split(&e, NULL) != GGUF_OK ||
        rename(in_dir("out-00001-of-00002.gguf"),
               in_dir("set-00001-of-00002.gguf")) ||
        rename(in_dir("out-00002-of-00002.gguf"),
               in_dir("set-00002-of-00002.gguf")))
        exit(99);
}

static void check_job(const struct job *j)
{
    struct gguf_error err;
    struct event e = { .calls = 0 };
    ok(j->run(&e, &err) == GGUF_OK && e.calls > 0, "%s", j->name);
    uint64_t n_calls = e.calls;
    remove_outputs();
    victim = j->victim;
    for (int cut = 0; cut < 2; cut++)
        for (int late = 0; late < 2; late++) {
            make_inputs();
            if (stat(in_dir(victim), &before))
                exit(99);
            int n = n_entries();
            e = (struct event){ .at = late ? n_calls : 1,
                                .fn = cut ? cut_it : touch_it };
            enum gguf_status st = j->run(&e, &err);
            struct stat after;
            ok((st == GGUF_E_MISMATCH || (cut && st == GGUF_E_TRUNCATED)) &&
                   n_entries() == n && !stat(in_dir(victim), &after) &&
                   after.st_ino == before.st_ino,
               "%s of a file that is %s, %s: %s", j->name,
               cut ? "cut off" : "changed", late ? "late" : "at once",
               err.message);
        }
    make_inputs();
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    make_inputs();
    for (size_t i = 0; i < GG_LEN(jobs); i++)
        check_job(&jobs[i]);
    scratch_clean(dir);
    ok(!rmdir(dir), "nothing else is left");
    return done_testing();
}
