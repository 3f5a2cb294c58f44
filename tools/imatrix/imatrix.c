/* SPDX-License-Identifier: MIT */
/* gguf-imatrix - importance data: collect, show, merge, convert */
#include "config.h"
#include "tools/imatrix/imatrix.h"
#include "tools/common/json.h"
#include "tools/common/load.h"
#include "tools/common/msg.h"
#include "tools/common/opt.h"
#include "tools/common/paths.h"
#include "tools/common/progress.h"
#include "tools/common/ranks.h"
#include "tools/common/table.h"
#include "tools/common/text.h"
#include "base/os/os_program.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gguf/imatrix.h>
#include <gguf/text.h>

/* ------------------------------------------------------------- figures --- */

/* Find the entry of the same name one layer before. Returns false if it does
 * not exist. */
static bool find_previous_layer(const struct gguf_imatrix *im,
                                const struct gguf_imatrix_entry *e, size_t *i)
{
    struct text name = { NULL, 0, 0 };
    struct gguf_str rest;
    int64_t layer = gguf_layer_from_name(
        (struct gguf_str){ e->name, strlen(e->name) }, &rest);
    if (layer < 1)
        return false;
    text_addf(&name, "blk.%" PRId64 ".%s", layer - 1, rest.data);
    bool found = name.s &&
                 gguf_imatrix_find(im, (struct gguf_str){ name.s, name.n }, i);
    text_fini(&name);
    return found;
}

/* An entry, its statistics, and its similarity to the layer before. */
struct row {
    struct gguf_imatrix_entry e;
    struct gguf_imatrix_stats s;
    double cosine, evenness;
};

static bool get_row(const struct gguf_imatrix *im, size_t i, struct row *r)
{
    r->e = (struct gguf_imatrix_entry)GGUF_IMATRIX_ENTRY_INIT;
    r->s = (struct gguf_imatrix_stats)GGUF_IMATRIX_STATS_INIT;
    if (gguf_imatrix_entry(im, i, &r->e, NULL) != GGUF_OK ||
        gguf_imatrix_stats(im, i, &r->s, NULL) != GGUF_OK)
        return false;
    size_t before;
    if (!find_previous_layer(im, &r->e, &before) ||
        gguf_imatrix_cosine(im, i, before, &r->cosine, NULL) != GGUF_OK)
        r->cosine = (double)NAN;
    r->evenness = r->s.n > 1 ? r->s.entropy / log2((double)r->s.n) : 1;
    return true;
}

static void print_statistics(const struct gguf_imatrix *im)
{
    static const char *const heads[] = { "tensor", "values", "mats",   "empty",
                                         "counts", "sum",    "min",    "max",
                                         "mean",   "stddev", "active", "even",
                                         "high",   "cosine" };
    struct table t;
    struct row r;
    table_init(&t, "lrrrrrrrrrrrrr", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; get_row(im, i, &r); i++) {
        table_add_strz(&t, r.e.name);
        table_addf(&t, "%" PRIu64, r.e.n_values);
        table_addf(&t, "%" PRIu64, r.e.n_mats ? r.e.n_mats : 1);
        table_addf(&t, "%" PRIu64, r.s.n_empty);
        if (r.s.min_count < r.s.max_count)
            table_addf(&t, "%.6g..%.6g", r.s.min_count, r.s.max_count);
        else
            table_addf(&t, "%.6g", r.s.max_count);
        table_addf(&t, "%.4g", r.s.sum);
        table_addf(&t, "%.4g", r.s.min);
        table_addf(&t, "%.4g", r.s.max);
        table_addf(&t, "%.4g", r.s.mean);
        table_addf(&t, "%.4g", r.s.stddev);
        table_addf(&t, "%.1f%%", 100 * r.s.active);
        table_addf(&t, "%.1f%%", 100 * r.evenness);
        table_addf(&t, "%.2f%%", 100 * r.s.high);
        if (isnan(r.cosine))
            table_add(&t, "");
        else
            table_addf(&t, "%.4f", r.cosine);
    }
    table_show(&t, "23916ca/487d");
}

static void print_sensitivities(const struct gguf_imatrix *im)
{
    static const char *const heads[] = { "tensor", "sensitivity", "input",
                                         "tokens" };
    struct gguf_imatrix_sensitivity s = GGUF_IMATRIX_SENSITIVITY_INIT;
    struct table t;
    if (!gguf_imatrix_n_sensitivities(im))
        return;
    printf("\n");
    table_init(&t, "lrrr", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; gguf_imatrix_sensitivity(im, i, &s, NULL) == GGUF_OK;
         i++) {
        table_add_strz(&t, s.name);
        table_addf(&t, "%.4g", s.value);
        if (s.input > 0)
            table_addf(&t, "%.4g", s.input);
        else
            table_add(&t, "table");
        table_addf(&t, "%.0f", s.n_tokens);
    }
    table_show(&t, "32");
}

static void json_sensitivities(struct json *j, const struct gguf_imatrix *im)
{
    struct gguf_imatrix_sensitivity s = GGUF_IMATRIX_SENSITIVITY_INIT;
    if (!gguf_imatrix_n_sensitivities(im))
        return;
    json_open(j, "sensitivities", '[');
    for (size_t i = 0; gguf_imatrix_sensitivity(im, i, &s, NULL) == GGUF_OK;
         i++) {
        json_open(j, NULL, '{');
        json_strz(j, "name", s.name);
        json_f64(j, "value", s.value);
        json_f64(j, "input", s.input);
        json_f64(j, "n_tokens", s.n_tokens);
        json_close(j);
    }
    json_close(j);
}

/* ------------------------------------------------- against a model --- */

/* A matrix without data, or with data of another shape. */
struct missing {
    char *name;        /* escaped for printing */
    uint64_t n_values; /* values that the data have; 0: no data */
    uint64_t n_wanted;
};

struct comparison {
    struct missing *list;
    size_t n, room;
    size_t n_none; /* matrices without data */
    uint64_t n_matrices;
    uint64_t n_unused; /* entries that belong to no matrix */
};

static void comparison_fini(struct comparison *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->list[i].name);
    free(c->list);
}

static void add_missing(struct comparison *c, struct gguf_str name,
                        uint64_t n_values, uint64_t n_wanted)
{
    struct text text = { NULL, 0, 0 };
    text_add_esc(&text, name, UINT64_MAX);
    c->list = msg_grow(c->list, &c->room, c->n + 1, sizeof *c->list);
    c->list[c->n++] = (struct missing){ text.s, n_values, n_wanted };
    c->n_none += !n_values;
}

/* Compare data with the matrices of --model. Returns false after it printed
 * that the model cannot be read. */
static bool compare_model(const struct gguf_imatrix *im,
                          const struct im_options *o, struct comparison *c)
{
    struct load l = { NULL, NULL, NULL };
    struct gguf_imatrix_entry e = GGUF_IMATRIX_ENTRY_INIT;
    const size_t n = gguf_imatrix_n_entries(im);
    if (!load_open(&l, o->model, true, &o->files))
        return false;
    bool *used = msg_must(calloc(n + 1, sizeof *used));
    for (size_t i = 0; i < gguf_file_n_tensors(l.file); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(l.file, i);
        size_t k;
        if (t->ne[1] < 2)
            continue;
        c->n_matrices++;
        const bool found = gguf_imatrix_find(im, t->name, &k) &&
                           gguf_imatrix_entry(im, k, &e, NULL) == GGUF_OK;
        const uint64_t want = t->n_elements / (uint64_t)t->ne[1];
        if (found)
            used[k] = true;
        if (gguf_imatrix_find_for_matrix(im, t->name, want, &k))
            used[k] = true;
        else
            add_missing(c, t->name, found ? e.n_values : 0, want);
    }
    for (size_t i = 0; i < n; i++)
        c->n_unused += !used[i];
    free(used);
    load_close(&l);
    return true;
}

static void print_comparison(const struct comparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct missing *m = &c->list[i];
        const char *name = m->name ? m->name : "";
        if (m->n_values)
            printf("%" PRIu64 " values, expected %" PRIu64 ": %s\n",
                   m->n_values, m->n_wanted, name);
        else
            printf("no data: %s\n", name);
    }
    printf("%" PRIu64 " matri%s, %zu without data, %zu with data of another "
           "shape; %" PRIu64 " data without a matrix\n",
           c->n_matrices, c->n_matrices == 1 ? "x" : "ces", c->n_none,
           c->n - c->n_none, c->n_unused);
}

static void json_comparison(struct json *j, const char *path,
                            const struct comparison *c)
{
    json_open(j, "model", '{');
    json_strz(j, "path", path);
    json_u64(j, "n_matrices", c->n_matrices);
    json_u64(j, "n_unused", c->n_unused);
    json_open(j, "missing", '[');
    for (size_t i = 0; i < c->n; i++) {
        const struct missing *m = &c->list[i];
        json_open(j, NULL, '{');
        json_strz(j, "name", m->name ? m->name : "");
        json_u64(j, "n_values", m->n_values);
        json_u64(j, "n_wanted", m->n_wanted);
        json_close(j);
    }
    json_close(j);
    json_close(j);
}

/* Print the JSON document. path: --model; c: comparison with it, or NULL. */
static void print_json(const struct gguf_imatrix *im, const char *path,
                       const struct comparison *c)
{
    struct json j;
    struct row r;
    json_begin_object(&j, stdout);
    json_u64(&j, "n_chunks", gguf_imatrix_n_chunks(im));
    json_u64(&j, "chunk_size", gguf_imatrix_chunk_size(im));
    if (gguf_imatrix_precision(im))
        json_strz(&j, "precision", gguf_imatrix_precision(im));
    json_open(&j, "datasets", '[');
    for (size_t i = 0; gguf_imatrix_dataset(im, i); i++)
        json_strz(&j, NULL, gguf_imatrix_dataset(im, i));
    json_close(&j);
    json_open(&j, "tensors", '[');
    for (size_t i = 0; get_row(im, i, &r); i++) {
        json_open(&j, NULL, '{');
        json_strz(&j, "name", r.e.name);
        json_u64(&j, "n_values", r.e.n_values);
        json_u64(&j, "n_mats", r.e.n_mats);
        json_u64(&j, "n_empty", r.s.n_empty);
        json_u64(&j, "n_bad", r.s.n_bad);
        json_f64(&j, "min_count", r.s.min_count);
        json_f64(&j, "max_count", r.s.max_count);
        json_f64(&j, "sum", r.s.sum);
        json_f64(&j, "min", r.s.min);
        json_f64(&j, "max", r.s.max);
        json_f64(&j, "mean", r.s.mean);
        json_f64(&j, "stddev", r.s.stddev);
        json_f64(&j, "active", r.s.active);
        json_f64(&j, "entropy", r.s.entropy);
        json_f64(&j, "high", r.s.high);
        json_f64(&j, "cosine", r.cosine);
        json_close(&j);
    }
    json_close(&j);
    json_sensitivities(&j, im);
    if (c)
        json_comparison(&j, path, c);
    json_end(&j);
}

/* Warn of experts that had less than a hundredth of the average input. */
static void warn_rare_experts(const struct gguf_imatrix *im, size_t i,
                              const struct row *r, const char *path,
                              const char *name)
{
    double sum = 0;
    float count = 0;
    uint64_t n_little = 0;
    for (uint64_t m = 0; m < r->e.n_mats; m++)
        if (gguf_imatrix_counts(im, i, m, 1, &count, NULL) == GGUF_OK)
            sum += (double)count;
    for (uint64_t m = 0; m < r->e.n_mats; m++)
        if (gguf_imatrix_counts(im, i, m, 1, &count, NULL) == GGUF_OK)
            n_little += (double)count * 100 * (double)r->e.n_mats < sum;
    if (n_little)
        msg_warn(path,
                 "tensor '%s': %" PRIu64 " of %" PRIu64
                 " experts had less than 1%% of the average input, the least "
                 "%g rows",
                 name, n_little, r->e.n_mats, r->s.min_count);
}

/* Warn once per tensor of values that quantization would replace. path: file of
 * the data; NULL if they come from several files. */
static void warn_bad_values(const struct gguf_imatrix *im, const char *path)
{
    struct row r;
    char name[512];
    for (size_t i = 0; get_row(im, i, &r); i++) {
        struct gguf_str s = { r.e.name, strlen(r.e.name) };
        gguf_text_escape(name, sizeof name, s);
        if (r.s.n_bad)
            msg_warn(path,
                     "tensor '%s': %" PRIu64 " values are negative or not "
                     "numbers",
                     name, r.s.n_bad);
        else if (r.s.max > 0x1p64)
            msg_warn(path, "tensor '%s': values above 2^64, up to %.3g", name,
                     r.s.max);
        else if (r.s.n && r.s.sum <= 0)
            msg_warn(path, "tensor '%s': all values are 0", name);
        else if (r.s.n_empty)
            msg_warn(path,
                     "tensor '%s': %" PRIu64 " of %" PRIu64
                     " matrices had no input",
                     name, r.s.n_empty, r.e.n_mats ? r.e.n_mats : 1);
        else
            warn_rare_experts(im, i, &r, path, name);
    }
}

/* ---------------------------------------------------------------- main --- */

static enum gguf_status load_all(struct gguf_imatrix **im,
                                 const struct im_options *o, char **paths,
                                 int n, const char **about,
                                 struct gguf_error *err)
{
    enum gguf_status st = gguf_imatrix_create(im, NULL, err);
    for (int i = 0; i < n && st == GGUF_OK; i++) {
        struct gguf_imatrix *one;
        *about = paths[i];
        st = gguf_imatrix_load(&one, paths[i], &o->files, err);
        if (st == GGUF_OK &&
            n == 1) { /* one file is kept as it is, without loss */
            gguf_imatrix_destroy(*im);
            *im = one;
            return GGUF_OK;
        }
        if (st == GGUF_OK)
            st = gguf_imatrix_merge(*im, one, err);
        gguf_imatrix_destroy(one);
    }
    return st;
}

static enum gguf_status save_output(const struct im_options *o,
                                    const struct gguf_imatrix *im,
                                    const char **about, struct gguf_error *err)
{
    size_t n = strlen(o->out);
    bool dat = o->form < 0 ? n > 4 && !strcmp(o->out + n - 4, ".dat")
                           : o->form == GGUF_IMATRIX_DAT;
    *about = o->out;
    enum gguf_status st = gguf_imatrix_save(
        im, o->out, dat ? GGUF_IMATRIX_DAT : GGUF_IMATRIX_GGUF, o->ev.force,
        err);
    if (st == GGUF_OK && !o->ev.quiet)
        msg_info(o->out, "%s, %zu tensor%s, %" PRIu64 " chunk%s",
                 dat ? "dat" : "gguf", gguf_imatrix_n_entries(im),
                 text_s(gguf_imatrix_n_entries(im)), gguf_imatrix_n_chunks(im),
                 text_s(gguf_imatrix_n_chunks(im)));
    return st;
}

/* End the program if an output is also an input. */
static void check_paths(const struct im_options *o, char **in, int n)
{
    struct gguf_paths *p = paths_new();
    for (int i = 0; i < n; i++)
        paths_read_model(p, in[i], NULL, "input");
    paths_read_model(p, o->model, &o->files, "--model");
    paths_read(p, o->text, "--file");
    paths_write(p, o->out, "output");
    paths_write(p, o->part, "part");
    struct text checkpoint = { NULL, 0, 0 };
    if (o->out && !o->part && (o->save_every || o->resume)) {
        text_addf(&checkpoint, "%s.part", o->out);
        paths_write(p, checkpoint.s, "checkpoint");
    }
    text_fini(&checkpoint);
    gguf_paths_destroy(p);
}

/* Check that tensors are left: readers refuse files without data. */
static bool check_not_empty(const struct im_options *o,
                            const struct gguf_imatrix *im)
{
    if (gguf_imatrix_n_entries(im))
        return true;
    return msg_error(NULL, "--%s leaves no tensor",
                     o->include.n ? "include" : "exclude");
}

/* Collect, merge or read the data. Returns false after it printed a message.
 * about: set to the file to name in messages. */
static bool get_data(struct gguf_imatrix **im, const struct im_options *o,
                     char **paths, int n, const char **about)
{
    struct gguf_error err;
    gguf_error_clear(&err);
    if (o->text && !n)
        return im_collect(im, o);
    if (o->merge_parts)
        return im_merge_parts(im, o, paths, n);
    if (load_all(im, o, paths, n, about, &err) == GGUF_OK) {
        *about = n > 1 ? NULL : *about;
        return !o->text || im_collect(im, o);
    }
    return msg_fail(*about, &err);
}

/* Print the precision of the evaluation, if it is known. */
static void print_mode(const char *precision)
{
    for (unsigned k = 0; precision && gguf_precision_name(k); k++)
        if (strcmp(gguf_precision_name(k), precision) == 0)
            printf("mode    %s (%s)\n", precision, ev_describe_precision(k));
}

/* Print statistics and the comparison with the model. */
static void print_all(const struct im_options *o,
                      const struct gguf_imatrix *im,
                      const struct comparison *c)
{
    const bool model = o->model && !o->text;
    if (o->ev.json)
        print_json(im, o->model, model ? c : NULL);
    else if (o->show || (!o->out && !o->part && !model)) {
        print_mode(gguf_imatrix_precision(im));
        print_statistics(im);
        print_sensitivities(im);
    }
    if (model && !o->ev.json)
        print_comparison(c);
}

/* Do the work after options were parsed. Returns false after it printed a
 * message. */
static bool run_tool(const struct im_options *o, char **paths, int n)
{
    struct gguf_imatrix *im = NULL;
    struct gguf_error err;
    struct comparison c = { .n = 0 };
    const char *about = o->text && strcmp(o->text, "-") != 0 ? o->text : NULL;
    const struct opt_list *texts = o->include.n ? &o->include : &o->exclude;
    bool good = get_data(&im, o, paths, n, &about);
    if (good && !im)
        return true; /* a helper rank, or a part without data */
    if (good && !o->keep_paths)
        gguf_imatrix_hide_paths(im);
    if (good && texts->n)
        gguf_imatrix_filter(im, texts->arg, texts->n, o->include.n != 0);
    if (good && !o->ev.quiet)
        warn_bad_values(im, about);
    good = good && (!texts->n || check_not_empty(o, im)) &&
           (!o->model || o->text || compare_model(im, o, &c));
    if (good)
        print_all(o, im, &c);
    progress_catch_signals(); /* output is written despite signals */
    if (good && o->out && save_output(o, im, &about, &err) != GGUF_OK) {
        msg_fail(about, &err);
        good = false;
    }
    if (good && o->text)
        im_remove_checkpoint(o);
    comparison_fini(&c);
    gguf_imatrix_destroy(im);
    return good;
}

/* Should the evaluation stop? The backend calls it between operations. */
static bool is_stopped(void *user)
{
    (void)user;
    return progress_stopped() || !ranks_poll();
}

int main(int argc, char **argv)
{
    struct im_options o;
    gg_os_program_arguments(&argc, &argv);
    ranks_begin(&argc, &argv);
    const int n = im_parse_options(&o, argc, argv);
    ranks_require(o.mpi);
    o.ev.abort = is_stopped;
    if (ranks_is_worker()) { /* rank 0 prints and writes for all */
        o.ev.quiet = true;
        o.show = o.ev.json = false;
        o.out = o.part = NULL;
    }
    load_raise_limits();
    check_paths(&o, argv + 1, n);
    const bool good = run_tool(&o, argv + 1, n);
    ev_options_fini(&o.ev);
    opt_list_fini(&o.include);
    opt_list_fini(&o.exclude);
    progress_raise();
    return msg_exit(good ? MSG_DONE : MSG_FAILED);
}
