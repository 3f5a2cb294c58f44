/* SPDX-License-Identifier: MIT */
/* check-input.c - files on the disk after a run whose input changes, whose
 * journal is another run's, or whose output cannot get its name */
#include "config.h"
#include "base/compiler.h"
#include "base/outfile_int.h"
#include "gguf/paths.h"
#include "tests/quant/fixture.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char in[4000];     /* a copy: in_dir() reuses its paths */
static struct stat first; /* attributes of the input at the start */

/* Action of the progress callback at one of its calls. */
struct event {
    uint64_t calls, at;
    void (*fn)(void);
    bool cancel;
};

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct event *e = user;
    (void)done, (void)total;
    if (++e->calls != e->at)
        return 0;
    if (e->fn)
        e->fn();
    return e->cancel;
}

static enum gguf_status run_job(struct event *e, bool resume,
                                struct gguf_error *err)
{
    struct setup s = SETUP("Q8_0");
    s.p.progress = (struct gguf_progress_callback){ on_progress, e };
    s.resume = resume;
    return quantize(in, in_dir("out"), s, err);
}

static void set_time(const struct timespec t)
{
    struct timespec both[2] = { t, t };
    if (utimensat(AT_FDCWD, in, both, 0))
        exit(99);
}

static uint64_t count_calls(void)
{
    struct event e = { .calls = 0 };
    struct gguf_error err;
    if (run_job(&e, false, &err) != GGUF_OK)
        exit(99);
    remove(in_dir("out"));
    return e.calls;
}

/* -------------------------------------------- while the run reads --- */

static void cut_off(void)
{
    if (truncate(in, first.st_size - 100))
        exit(99);
}

/* Truncate the file and keep its time. */
static void cut_secretly(void)
{
    cut_off();
    set_time(first.st_mtim);
}

static void touch_it(void)
{
    struct timespec t = first.st_mtim;
    t.tv_nsec = (t.tv_nsec + 1) % 1000000000;
    set_time(t);
}

static void check_changes(uint64_t n_calls)
{
    static const struct {
        void (*fn)(void);
        const char *name;
    } changes[] = { { cut_off, "cut off in its last page" },
                    { cut_secretly, "of another size, at the same time" },
                    { touch_it, "changed a nanosecond later" } };
    int before = n_entries();
    for (size_t i = 0; i < GG_LEN(changes); i++)
        for (int late = 0; late < 2; late++) {
            struct event e = { .at = late ? n_calls : 1, .fn = changes[i].fn };
            struct gguf_error err;
            ok(run_job(&e, false, &err) == GGUF_E_MISMATCH &&
                   n_entries() == before && strstr(err.message, "in.gguf"),
               "an input %s, %s: %s", changes[i].name,
               late ? "late" : "at once", err.message);
            write_model(in, -1, 0, 0);
            set_time(first.st_mtim);
        }
    struct event e = { .calls = 0 };
    struct gguf_error err;
    ok(run_job(&e, false, &err) == GGUF_OK, "and without a change %s",
       err.message);
    remove(in_dir("out"));
}

static void cut_imatrix(void)
{
    struct stat s;
    const char *path = in_dir("imatrix");
    if (stat(path, &s) || truncate(path, s.st_size - 100))
        exit(99);
}

/* The importance data file changes, in either form, during a run that uses it;
 * its copy in the output is checked. */
static void check_imatrix(uint64_t n_calls)
{
    for (int form = 0; form < 2; form++) {
        struct gguf_imatrix *made = model_imatrix(), *im = NULL, *sum = NULL;
        struct event e = { .at = n_calls / 2, .fn = cut_imatrix };
        struct setup s = SETUP("Q8_0");
        struct gguf_error err;
        bool dat = form == GGUF_IMATRIX_DAT;
        bool good =
            made &&
            gguf_imatrix_save(made, in_dir("imatrix"),
                              (enum gguf_imatrix_form)form, 0,
                              &err) == GGUF_OK &&
            gguf_imatrix_load(&im, in_dir("imatrix"), NULL, &err) == GGUF_OK &&
            gguf_imatrix_create(&sum, NULL, &err) == GGUF_OK;
        s.p.progress = (struct gguf_progress_callback){ on_progress, &e };
        s.p.imatrix = im;
        int before = n_entries();
        ok(good && quantize(in, in_dir("out"), s, &err) == GGUF_E_MISMATCH &&
               n_entries() == before,
           "importance data that are cut off (%s): %s", dat ? "dat" : "gguf",
           err.message);
        ok(gguf_imatrix_save(im, in_dir("again"), GGUF_IMATRIX_GGUF, 0,
                             &err) == GGUF_E_MISMATCH &&
               gguf_imatrix_save(im, in_dir("again"), GGUF_IMATRIX_DAT, 0,
                                 &err) == GGUF_E_MISMATCH &&
               gguf_imatrix_merge(sum, im, &err) == GGUF_E_MISMATCH &&
               n_entries() == before,
           "are not saved, nor added up");
        gguf_imatrix_destroy(sum);
        gguf_imatrix_destroy(im);
        gguf_imatrix_destroy(made);
        remove(in_dir("imatrix"));
    }
}

/* ------------------------------------------------ between two runs --- */

/* Change all tensor data, and nothing else. */
static void other_data(void)
{
    static uint8_t b[1 << 16];
    int fd = open(in, O_RDWR);
    memset(b, 0x11, sizeof b);
    for (off_t at = 8192; at < first.st_size; at += (off_t)sizeof b) {
        size_t n = (size_t)GG_MIN(first.st_size - at, (off_t)sizeof b);
        if (pwrite(fd, b, n, at) != (ssize_t)n)
            exit(99);
    }
    close(fd);
    set_time(first.st_mtim);
}

/* Replace the file by a copy with the same bytes and time. */
static void other_inode(void)
{
    size_t n;
    void *p = slurp(in, &n);
    if (!p || !spill(in_dir("copy"), p, n) || rename(in_dir("copy"), in))
        exit(99);
    free(p);
    set_time(first.st_mtim);
}

static void check_identity(uint64_t n_calls)
{
    static const struct {
        void (*fn)(void);
        const char *name;
    } changes[] = { { other_data, "other data of one size and time" },
                    { touch_it, "a nanosecond later" },
                    { other_inode, "another file, equal in all else" } };
    for (size_t i = 0; i < GG_LEN(changes); i++) {
        struct event e = { .at = n_calls - 1, .cancel = true };
        struct gguf_error err;
        bool good = run_job(&e, true, &err) == GGUF_E_CANCELLED;
        changes[i].fn();
        e = (struct event){ .calls = 0 };
        ok(good && run_job(&e, true, &err) == GGUF_E_MISMATCH && !e.calls &&
               file_exists("out.resume") &&
               file_exists("out" GG_OUTFILE_PART) && !file_exists("out"),
           "%s: %s", changes[i].name, err.message);
        remove(in_dir("out.resume"));
        remove(in_dir("out" GG_OUTFILE_PART));
        write_model(in, -1, 0, 0);
        set_time(first.st_mtim);
    }
}

/* ------------------------------------------------ journals of others --- */

enum { OTHER = 12345 };

/* Give the file to another user, in a folder like /tmp. */
static void give_away(const char *name)
{
    if (chown(in_dir(name), OTHER, OTHER) || chmod(in_dir(name), 0666) ||
        chmod(dir_name(), 01777))
        exit(99);
}

static void check_others(uint64_t n_calls)
{
    static const char *const names[] = { "out.resume", "out" GG_OUTFILE_PART };
    for (size_t i = 0; i < GG_LEN(names); i++)
        for (int hard = 0; hard < 2; hard++) {
            struct event e = { .at = n_calls - 1, .cancel = true };
            struct gguf_error err;
            if (!hard && geteuid() != 0) {
                skip("%s: no other user here", names[i]);
                continue;
            }
            bool good = run_job(&e, true, &err) == GGUF_E_CANCELLED;
            if (!hard)
                give_away(names[i]);
            else
                good = good && !link(in_dir(names[i]), in_dir("hard"));
            size_t n, m;
            void *was = slurp(in_dir(names[i]), &n);
            e = (struct event){ .calls = 0 };
            good = good && run_job(&e, true, &err) == GGUF_E_MISMATCH &&
                   !e.calls && !file_exists("out");
            void *is = slurp(in_dir(names[i]), &m);
            ok(good && was && is && n == m && !memcmp(was, is, n),
               "%s, %s: %s", names[i],
               hard ? "of two names" : "of another user", err.message);
            free(was);
            free(is);
            if (chmod(dir_name(), 0700))
                exit(99);
            remove(in_dir("hard"));
            e = (struct event){ .calls = 0 };
            ok(run_job(&e, true, &err) == GGUF_OK &&
                   !file_exists("out.resume") &&
                   !file_exists("out" GG_OUTFILE_PART),
               "which is taken where that does not matter %s", err.message);
            remove(in_dir("out"));
        }
}

/* ------------------------------------------------------ all or none --- */

static void take_b(void)
{
    if (!spill(in_dir("b"), "of others", 9))
        exit(99);
}

static void folder_b(void)
{
    remove(in_dir("b"));
    if (gg_os_make_folder(in_dir("b")))
        exit(99);
}

static bool has_text(const char *name, const char *text)
{
    size_t n;
    char *p = slurp(in_dir(name), &n);
    bool same = p && n == strlen(text) && !memcmp(p, text, n);
    free(p);
    return same;
}

/* Make two outputs. event: the second one cannot get its name. */
static enum gguf_status run_two(struct event *e, bool force, bool resume,
                                const struct gguf_paths *noted,
                                struct gguf_error *err)
{
    static const char *const types[] = { "Q8_0", "Q4_0" };
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_recipe *recipe[2] = { NULL, NULL };
    struct gguf_quant *job[2] = { NULL, NULL };
    const char *paths[] = { in_dir("a"), in_dir("b") };
    enum gguf_status st = GGUF_OK;
    for (int i = 0; i < 2 && st == GGUF_OK; i++) {
        struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
        st = gguf_recipe_preset(&recipe[i], types[i], NULL, err);
        p.recipe = recipe[i];
        p.progress = (struct gguf_progress_callback){ on_progress, e };
        if (st == GGUF_OK)
            st = gguf_quant_create(&job[i], in, &p, err);
    }
    o.force = force;
    o.resume = resume;
    o.paths = noted;
    if (st == GGUF_OK)
        st = gguf_quant_run_many(job, paths, 2, &o, err);
    for (int i = 0; i < 2; i++) {
        gguf_quant_destroy(job[i]);
        gguf_recipe_destroy(recipe[i]);
    }
    return st;
}

static void check_names(void)
{
    struct gguf_error err;
    struct event e = { .calls = 0 };
    bool good = run_two(&e, false, false, NULL, &err) == GGUF_OK;
    uint64_t n_calls = e.calls;
    remove(in_dir("a"));
    remove(in_dir("b"));
    for (int resume = 0; resume < 2; resume++) {
        const char *how = resume ? "resume" : "not";
        e = (struct event){ .at = n_calls, .fn = take_b };
        ok(good && run_two(&e, false, resume, NULL, &err) == GGUF_E_EXIST &&
               !file_exists("a") && has_text("b", "of others") &&
               file_exists("a" GG_OUTFILE_PART) == resume &&
               file_exists("b" GG_OUTFILE_PART) == resume,
           "a name that is taken: none of two has its own (%s): %s", how,
           err.message);
        remove(in_dir("b"));
        if (resume) {
            e = (struct event){ .calls = 0 };
            ok(run_two(&e, false, true, NULL, &err) == GGUF_OK &&
                   file_exists("a") && file_exists("b") &&
                   !file_exists("a.resume"),
               "and the next run ends it %s", err.message);
            remove(in_dir("a"));
            remove(in_dir("b"));
        }
        if (!spill(in_dir("a"), "old", 3) || !spill(in_dir("b"), "old", 3))
            exit(99);
        e = (struct event){ .at = n_calls, .fn = folder_b };
        int before = n_entries() + (resume ? 4 : 0);
        ok(run_two(&e, true, resume, NULL, &err) == GGUF_E_IO &&
               has_text("a", "old") && file_exists("b") &&
               n_entries() == before,
           "a folder in the place of one: the old file is back (%s): %s", how,
           err.message);
        rmdir(in_dir("b"));
        if (resume) {
            e = (struct event){ .calls = 0 };
            ok(run_two(&e, true, true, NULL, &err) == GGUF_OK &&
                   !has_text("a", "old") && file_exists("b") &&
                   !file_exists("a.resume"),
               "and the next run ends it %s", err.message);
        }
        remove(in_dir("a"));
        remove(in_dir("b"));
    }
}

/* A job refuses an output or a journal that the caller also writes
 * (gguf_paths), before it reads anything. */
static void check_noted(void)
{
    static const char *const names[] = { "b", "a.resume",
                                         ("b" GG_OUTFILE_PART) };
    for (size_t i = 0; i < GG_LEN(names); i++) {
        struct event e = { .calls = 0 };
        struct gguf_paths *p;
        struct gguf_error err;
        int before = n_entries();
        ok(gguf_paths_create(&p, NULL, &err) == GGUF_OK &&
               gguf_paths_add_output(p, in_dir(names[i]), "report", &err) ==
                   GGUF_OK &&
               run_two(&e, true, true, p, &err) == GGUF_E_INVALID &&
               !e.calls && n_entries() == before,
           "a report called %s: %s", names[i], err.message);
        gguf_paths_destroy(p);
    }
}

int main(void)
{
    if (!enter_dir())
        return 99;
    snprintf(in, sizeof in, "%s", in_dir("in.gguf"));
    write_model(in, -1, 0, 0);
    if (stat(in, &first))
        return 99;
    uint64_t n_calls = count_calls();
    check_changes(n_calls);
    check_imatrix(n_calls);
    check_identity(n_calls);
    check_others(n_calls);
    check_names();
    check_noted();
    remove(in);
    ok(leave_dir(), "the folder is empty again");
    return done_testing();
}
