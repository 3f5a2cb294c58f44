/* SPDX-License-Identifier: MIT */
/* check-open.c - quantizing a model that is open already gives the bytes of a
 * job that opens it */
#include "config.h"
#include "base/compiler.h"
#include "gguf/split.h"
#include "tests/quant/fixture.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <unistd.h>

static struct gguf_recipe *recipe;

static struct gguf_quant_params job_params(void)
{
    struct gguf_quant_params p = GGUF_QUANT_PARAMS_INIT;
    p.recipe = recipe;
    return p;
}

/* Run the job, if not NULL, and compare its output with the file want. */
static bool makes_file(struct gguf_quant *q, const char *want, bool resume,
                       struct gguf_error *err)
{
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    const char *out = in_dir("made.gguf");
    o.no_sync = 1;
    o.resume = resume;
    bool good = q && gguf_quant_run(q, out, &o, err) == GGUF_OK &&
                same_files(out, want);
    remove(out);
    return good;
}

static void check_file(struct gguf_file *f, const char *want, const char *what)
{
    struct gguf_error err;
    struct gguf_quant *q, *r = NULL;
    struct gguf_quant_params p = job_params();
    gguf_error_clear(&err);
    ok(gguf_quant_create_file(&q, f, &p, &err) == GGUF_OK &&
           makes_file(q, want, false, &err),
       "%s: the same bytes %s", what, err.message);
    ok(makes_file(q, want, true, &err), "%s: with a journal %s", what,
       err.message);
    gguf_quant_destroy(q);
    ok(gguf_file_n_tensors(f) > 2 && gguf_file_tensor_data(f, 0),
       "%s: it stays open", what);

    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    const char *paths[2] = { in_dir("a.gguf"), in_dir("b.gguf") };
    o.no_sync = 1;
    gguf_error_clear(&err);
    bool good = gguf_quant_create_file(&q, f, &p, &err) == GGUF_OK &&
                gguf_quant_create_file(&r, f, &p, &err) == GGUF_OK;
    struct gguf_quant *jobs[2] = { q, r };
    ok(good && gguf_quant_run_many(jobs, paths, 2, &o, &err) == GGUF_OK &&
           same_files(paths[0], want) && same_files(paths[1], want),
       "%s: two jobs over it %s", what, err.message);
    gguf_quant_destroy(q);
    gguf_quant_destroy(r);
    remove(paths[0]);
    remove(paths[1]);
}

/* Jobs of two files cannot share an input. */
static void check_two(const struct gguf_file *f, const struct gguf_file *g)
{
    struct gguf_error err;
    struct gguf_quant *jobs[2] = { NULL, NULL };
    struct gguf_quant_params p = job_params();
    const char *paths[2] = { in_dir("a.gguf"), in_dir("b.gguf") };
    ok(gguf_quant_create_file(&jobs[0], f, &p, &err) == GGUF_OK &&
           gguf_quant_create_file(&jobs[1], g, &p, &err) == GGUF_OK &&
           gguf_quant_run_many(jobs, paths, 2, NULL, &err) == GGUF_E_INVALID,
       "two inputs: %s", err.message);
    gguf_quant_destroy(jobs[0]);
    gguf_quant_destroy(jobs[1]);
}

static void check_input(const char *in)
{
    struct gguf_error err;
    struct gguf_quant *q;
    struct gguf_file *f;
    struct gguf_quant_params p = job_params();
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    o.force = 1;
    int fd = open(in, O_RDONLY);
    if (fd < 0 || gguf_file_open_fd(&f, fd, NULL, NULL) != GGUF_OK)
        exit(99);
    close(fd);
    size_t size, now;
    void *before = slurp(in, &size), *after = NULL;
    ok(gguf_quant_create_file(&q, f, &p, &err) == GGUF_OK &&
           gguf_quant_run(q, in, &o, &err) == GGUF_E_INVALID &&
           (after = slurp(in, &now)) && now == size &&
           !memcmp(before, after, size),
       "a file without a path is not its own output: %s", err.message);
    gguf_quant_destroy(q);
    gguf_file_close(f);
    free(before);
    free(after);
}

static void check_set(const char *in, const char *want)
{
    struct gguf_error err;
    struct gguf_file *set = NULL, *shards = NULL;
    struct gguf_split_plan *plan = NULL;
    struct gguf_split_params sp = GGUF_INIT(struct gguf_split_params);
    struct gguf_quant_params p = job_params();
    struct gguf_quant *q = NULL;
    sp.max_tensors = 4;
    gguf_error_clear(&err);
    bool good =
        gguf_file_open(&set, in, NULL, &err) == GGUF_OK &&
        gguf_split_plan_create(&plan, set, &sp, &err) == GGUF_OK &&
        gguf_split_plan_write(plan, in_dir("s"), NULL, &err) == GGUF_OK &&
        gguf_file_open(&shards, in_dir("s"), NULL, &err) == GGUF_OK &&
        gguf_file_n_shards(shards) > 1;
    ok(good && gguf_quant_create_file(&q, shards, &p, &err) == GGUF_OK &&
           makes_file(q, want, false, &err),
       "a set of %zu: the same bytes %s",
       good ? gguf_file_n_shards(shards) : 0, err.message);
    gguf_quant_destroy(q);
    const struct gguf_file *first = gguf_file_shard(shards, 0);
    ok(good && gguf_quant_create_file(&q, first, &p, &err) == GGUF_OK &&
           gguf_quant_n_tensors(q) == gguf_file_n_tensors(first),
       "one of them is a file of %zu tensors", gguf_file_n_tensors(first));
    gguf_quant_destroy(q);
    for (size_t i = 0; i < gguf_file_n_shards(shards); i++)
        remove(gguf_file_path(gguf_file_shard(shards, i)));
    gguf_file_close(shards);
    gguf_split_plan_destroy(plan);
    gguf_file_close(set);
}

/* Calls of the check function. */
struct asked {
    const char *want[2]; /* expected outputs */
    size_t n, n_files;
    bool good;
    enum gguf_status answer;
};

static enum gguf_status ask_rows(void *user, size_t job,
                                 const struct gguf_file *output,
                                 struct gguf_error *err)
{
    struct asked *a = user;
    struct gguf_file *want;
    const size_t n = gguf_file_n_tensors(output);
    a->good &= job == a->n && job < 2 &&
               gguf_file_open(&want, a->want[job], NULL, err) == GGUF_OK;
    if (!a->good)
        return GGUF_OK;
    a->good = n == gguf_file_n_tensors(want);
    for (size_t i = 0; i < gguf_file_n_shards(output); i++)
        a->good &=
            access(gguf_file_path(gguf_file_shard(output, i)), F_OK) != 0;
    for (size_t i = 0; i < n && a->good; i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(output, i);
        const struct gguf_tensor_info *w = gguf_file_tensor(want, i);
        a->good = w->name.size == t->name.size &&
                  !memcmp(w->name.data, t->name.data, w->name.size) &&
                  w->size == t->size &&
                  !memcmp(gguf_file_tensor_data(output, i),
                          gguf_file_tensor_data(want, i), (size_t)w->size);
    }
    gguf_file_close(want);
    a->n++;
    a->n_files += gguf_file_n_shards(output);
    return a->answer == GGUF_OK || job == 0
               ? GGUF_OK
               : gguf_error_set(err, a->answer, "not to be kept");
}

/* The check function sees each output before it gets its name, and may refuse
 * it. */
static void check_asked(const char *in, const char *want, uint64_t most,
                        bool resume)
{
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_quant_params p = job_params();
    struct asked a = { { want, want }, 0, 0, true, GGUF_E_VOCAB };
    struct gguf_quant *jobs[2] = { NULL, NULL };
    struct gguf_error err;
    const char *paths[2] = { in_dir("a.gguf"), in_dir("b.gguf") };
    p.max_file_size = most;
    o.check = (struct gguf_quant_check_callback){ ask_rows, &a };
    o.no_sync = 1;
    o.resume = resume;
    const int before = n_entries();
    if (gguf_quant_create(&jobs[0], in, &p, NULL) != GGUF_OK ||
        gguf_quant_create(&jobs[1], in, &p, NULL) != GGUF_OK)
        exit(99);
    const size_t n = gguf_quant_n_files(jobs[0]);
    ok(gguf_quant_run_many(jobs, paths, 2, &o, &err) == GGUF_E_VOCAB &&
           a.good && a.n == 2 && a.n_files == 2 * n &&
           strstr(err.message, "b") && strstr(err.message, "not to be kept"),
       "%zu files%s are asked about before they have names: %s", n,
       resume ? ", with a journal," : "", err.message);
    for (size_t i = 0; i < 2 && resume; i++) {
        size_t gone = 0;
        ok(gguf_quant_discard(paths[i], &gone, NULL) == GGUF_OK &&
               gone == n + 1,
           "a journal and %zu files stayed", n);
    }
    ok(n_entries() == before, "and none is left when one is refused");
    a = (struct asked){ { want, want }, 0, 0, true, GGUF_OK };
    ok(gguf_quant_run_many(jobs, paths, 2, &o, &err) == GGUF_OK && a.good &&
           a.n == 2 && n_entries() == before + 2 * (int)n,
       "all are kept when all may be");
    gguf_quant_destroy(jobs[0]);
    gguf_quant_destroy(jobs[1]);
    char command[4200];
    snprintf(command, sizeof command, "rm -f '%s'/[ab]*.gguf", dir_name());
    if (system(command))
        perror(command);
}

int main(void)
{
    char in[4000], want[4000]; /* copies: in_dir() reuses its paths */
    struct gguf_error err;
    struct gguf_file *f, *g;
    struct gguf_file_params fp = GGUF_INIT(struct gguf_file_params);
    if (!enter_dir() || gguf_recipe_preset(&recipe, "Q4_K_M", NULL, NULL))
        return 99;
    snprintf(in, sizeof in, "%s", in_dir("in.gguf"));
    snprintf(want, sizeof want, "%s", in_dir("want.gguf"));
    write_model(in, -1, 0, 0);
    struct setup s = SETUP("Q4_K_M");
    if (quantize(in, want, s, &err) != GGUF_OK) {
        printf("Bail out! %s\n", err.message);
        return 99;
    }
    if (gguf_file_open(&f, in, NULL, &err) != GGUF_OK)
        return 99;
    check_file(f, want, "a path");

    size_t size;
    char *bytes = slurp(in, &size), *inside = malloc(size + 64);
    if (!bytes || !inside ||
        gguf_file_open_memory(&g, bytes, size, NULL, &err) != GGUF_OK)
        return 99;
    check_file(g, want, "memory");
    check_two(f, g);
    gguf_file_close(g);
    gguf_file_close(f);
    memset(inside, 1, 64);
    memcpy(inside + 64, bytes, size);
    fp.offset = 64;
    if (!spill(in_dir("inside"), inside, size + 64) ||
        gguf_file_open(&f, in_dir("inside"), &fp, &err) != GGUF_OK)
        return 99;
    check_file(f, want, "inside a file");
    gguf_file_close(f);
    remove(in_dir("inside"));
    check_input(in);
    check_set(in, want);
    check_asked(in, want, 0, false);
    check_asked(in, want, 0, true);
    check_asked(in, want, size / 3, false);
    check_asked(in, want, size / 3, true);
    free(bytes);
    free(inside);
    gguf_recipe_destroy(recipe);
    remove(in);
    remove(want);
    ok(leave_dir(), "nothing is left");
    return done_testing();
}
