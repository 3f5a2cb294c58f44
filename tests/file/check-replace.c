/* SPDX-License-Identifier: MIT */
/* check-replace.c - a split set that replaces another one
 *
 * The old set stays until the new one is complete: if the work ends before,
 * the folder is unchanged. Many shards do not need many descriptors, and take
 * time in proportion to their number.
 */
#include "config.h"
#include "gguf/split.h"
#include "tests/fix.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/tap.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static char dir[] = "check-replace-XXXXXX";

static const char *in_dir(const char *name)
{
    return scratch_path(dir, name);
}

/* Write n tensors of 32 bytes c. */
static void write_model(const char *name, unsigned n, unsigned c)
{
    struct fix fx;
    fix_init(&fx);
    fix_head(&fx, 3, n, 1);
    fix_kv_str(&fx, "general.architecture", "llama");
    for (unsigned i = 0; i < n; i++) {
        char t[16];
        snprintf(t, sizeof t, "t%u", i);
        fix_info(&fx, t, FIX_NE(8), GGUF_DTYPE_F32, 32 * i);
    }
    fix_pad(&fx, 32);
    fix_fill(&fx, c, 32 * n);
    if (!spill(in_dir(name), fx.data, fx.size))
        exit(99);
    fix_fini(&fx);
}

/* A checksum of all names that do not begin with a dot, and of the files'
 * content; it does not depend on the order. *n_hidden: number of the other
 * names. */
static uint64_t print_of_folder(unsigned *n_hidden)
{
    uint64_t sum = 0;
    DIR *d = opendir(dir);
    *n_hidden = 0;
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.') {
            *n_hidden += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
            continue;
        }
        size_t n = 0;
        char name[300];
        snprintf(name, sizeof name, "%s/%.255s", dir, e->d_name);
        struct stat s;
        bool file = stat(name, &s) == 0 && S_ISREG(s.st_mode);
        uint8_t *p = file ? slurp(name, &n) : NULL;
        sum += XXH3_64bits_withSeed(p ? p : (const uint8_t *)"", n,
                                    XXH3_64bits(e->d_name, strlen(e->d_name)));
        free(p);
    }
    if (d)
        closedir(d);
    return sum;
}

/* An action at a call of the progress callback. */
struct between {
    unsigned calls, at;
    int (*act)(void);
};

static bool act_between(void *user, uint64_t done, uint64_t total)
{
    struct between *b = user;
    (void)done;
    (void)total;
    return b->calls++ == b->at ? b->act() : 0;
}

static enum gguf_status split_file(const char *from, const char *to,
                                   struct between *b, struct gguf_error *err)
{
    struct gguf_split_params p = GGUF_INIT(struct gguf_split_params);
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file *s = NULL;
    struct gguf_split_plan *plan = NULL;
    p.max_tensors = 1;
    job.force = true;
    job.no_sync = true;
    job.progress.fn = b ? act_between : NULL;
    job.progress.user = b;
    gguf_error_clear(err);
    enum gguf_status st = gguf_file_open(&s, in_dir(from), NULL, err);
    if (st == GGUF_OK)
        st = gguf_split_plan_create(&plan, s, &p, err);
    if (st == GGUF_OK)
        st = gguf_split_plan_write(plan, in_dir(to), &job, err);
    gguf_split_plan_destroy(plan);
    gguf_file_close(s);
    return st;
}

static int stop_run(void)
{
    return 1;
}

/* Put a folder in the place of the third shard. */
static int block_shard(void)
{
    unlink(in_dir("s-00003-of-00005.gguf"));
    gg_os_make_folder(in_dir("s-00003-of-00005.gguf"));
    return 0;
}

static void make_old(unsigned n)
{
    struct gguf_error err;
    scratch_clean(dir);
    write_model("old.gguf", n, 1);
    write_model("new.gguf", n, 2);
    if (split_file("old.gguf", "s", NULL, &err) != GGUF_OK)
        exit(99);
}

static void check_stop(unsigned n, unsigned step, const char *what)
{
    struct gguf_error err;
    unsigned hidden, touched = 0, left = 0, at = 0;
    make_old(n);
    uint64_t before = print_of_folder(&hidden);
    for (;; at += step) {
        struct between b = { 0, at, stop_run };
        enum gguf_status st = split_file("new.gguf", "s", &b, &err);
        if (st == GGUF_OK)
            break;
        touched +=
            st != GGUF_E_CANCELLED || print_of_folder(&hidden) != before;
        left += hidden;
    }
    ok(!touched && !left && at >= n,
       "%s: stopped at any of %u places, the folder is as it was", what, at);
    ok(print_of_folder(&hidden) != before && !hidden, "else it is not");
}

/* One name cannot be given: the names given before are taken back. */
static void check_blocked(void)
{
    struct gguf_error err;
    struct between b = { 0, 9, block_shard };
    unsigned hidden;
    make_old(5);
    block_shard();
    uint64_t before = print_of_folder(&hidden);
    rmdir(in_dir("s-00003-of-00005.gguf"));
    make_old(5);
    enum gguf_status st = split_file("new.gguf", "s", &b, &err);
    ok(st == GGUF_E_IO && strstr(err.message, "s-00003-of-00005.gguf") &&
           print_of_folder(&hidden) == before && !hidden,
       "one name of five cannot be given: %s", err.message);
    rmdir(in_dir("s-00003-of-00005.gguf"));
}

/* More shards than files that may be open. */
static void check_descriptors(void)
{
    struct rlimit was, few;
    struct gguf_error err;
    make_old(400);
    if (getrlimit(RLIMIT_NOFILE, &was) != 0)
        exit(99);
    few = was;
    few.rlim_cur = 320;
    setrlimit(RLIMIT_NOFILE, &few);
    enum gguf_status st = split_file("new.gguf", "s", NULL, &err);
    setrlimit(RLIMIT_NOFILE, &was);
    ok(st == GGUF_OK, "400 shards with 320 descriptors %s", err.message);
}

/* Seconds to split a file into n shards that replace n; below 0: failed. */
static double split_time(unsigned n, struct gguf_error *err)
{
    scratch_clean(dir);
    make_old(n);
    const double begin = scratch_cpu_time();
    const enum gguf_status st = split_file("s", "again", NULL, err);
    return st == GGUF_OK ? scratch_cpu_time() - begin : -1;
}

/* Outputs are not compared with inputs one by one: with four times the number,
 * that would take 16 times as long. */
static void check_time(void)
{
    enum { FEW = 750, MANY = 4 * FEW };
    struct rlimit many;
    struct gguf_error err;
    gguf_error_clear(&err);
    if (getrlimit(RLIMIT_NOFILE, &many) != 0 || many.rlim_max < 2 * MANY) {
        skip("not enough descriptors");
        return;
    }
    many.rlim_cur = 2 * MANY;
    setrlimit(RLIMIT_NOFILE, &many);
    const double t = split_time(FEW, &err), t_4 = split_time(MANY, &err);
    ok(t > 0 && t_4 > 0 && t_4 < 10 * t,
       "%d shards that replace others: %.2f s, %d: %.2f s %s", FEW, t, MANY,
       t_4, err.message);
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    check_stop(5, 1, "five shards");
    check_stop(300, 97, "300 shards");
    check_blocked();
    check_descriptors();
    check_time();
    if (!scratch_remove(dir))
        return 99;
    return done_testing();
}
