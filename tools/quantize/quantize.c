/* SPDX-License-Identifier: MIT */
/* gguf-quantize - write a model with smaller tensor types */
#include "config.h"
#include "tools/quantize/calibration.h"
#include "tools/common/load.h"
#include "tools/common/msg.h"
#include "tools/common/outtext.h"
#include "tools/common/paths.h"
#include "tools/common/progress.h"
#include "tools/common/ranks.h"
#include "base/os/os_program.h"

#include <string.h>

static enum gguf_status make_recipe(struct target *t, struct gguf_error *err)
{
    static const char text[] = "base Q2_K\n";
    struct gguf_str s = { text, sizeof text - 1 };
    if (t->is_file)
        return gguf_recipe_load(&t->recipe, t->type, NULL, err);
    if (!strcmp(t->type, TYPE_AUTO))
        return gguf_recipe_parse(&t->recipe, s, NULL, err);
    return gguf_recipe_preset(&t->recipe, t->type, NULL, err);
}

/* Create recipes and plans of all targets. */
static enum gguf_status make_jobs(struct options *o, struct progress *bar,
                                  const char **about, struct gguf_error *err)
{
    for (size_t i = 0; i < o->n_targets; i++) {
        struct target *t = &o->targets[i];
        *about = t->type;
        enum gguf_status st = make_recipe(t, err);
        if (st == GGUF_OK) {
            o->params.recipe = t->recipe;
            *about = o->in;
            st = gguf_quant_create(&t->job, o->in, &o->params, err);
        }
        if (st == GGUF_OK)
            st = choose_target_types(o, i, bar, err);
        if (st == GGUF_OK)
            st = reject_unsupported_types(o, i, err);
        if (st != GGUF_OK)
            return st;
        if ((o->verbose || o->explain) && !o->json) {
            if (o->n_targets > 1)
                print_heading(t, i > 0);
            print_plan(t, o->explain);
        }
    }
    return GGUF_OK;
}

/* ---------------------------------------------------------- the report --- */

/* Record the files that are read and written besides the model and the
 * outputs, which the library records. */
static struct gguf_paths *record_paths(const struct options *o)
{
    struct gguf_paths *p = paths_new();
    record_inputs(o, p);
    for (size_t i = 0; i < o->loras.n; i++)
        paths_read_model(p, o->loras.file[i].path, NULL, "--lora");
    paths_read(p, o->recipe_file, "--recipe");
    calibration_record_inputs(o, p);
    paths_write(p, o->report, "report");
    return p;
}

/* Write the report if the run succeeded; otherwise an old report stays. */
static enum gguf_status end_report(const struct options *o, struct outtext *r,
                                   enum gguf_status st, double seconds,
                                   const char **about, struct gguf_error *err)
{
    if (r->f && st == GGUF_OK) {
        print_json(r->f, o->in, o->targets, o->n_targets, o->calibration,
                   seconds);
        st = outtext_commit(r, err);
        if (st != GGUF_OK)
            *about = o->report;
    }
    outtext_abort(r);
    return st;
}

/* ------------------------------------------------------------ the work --- */

/* Print the choices for all tensors, if tables are wanted. */
static void print_calibrations(const struct options *o, double seconds)
{
    const bool report = o->params.measure && !o->report;
    for (size_t i = 0; seconds >= 0 && i < o->n_targets; i++)
        if (o->targets[i].calibration && !o->json && (o->verbose || report)) {
            if (o->n_targets > 1)
                print_heading(&o->targets[i], true);
            else
                putchar('\n');
            print_calibration(&o->targets[i]);
        }
}

static void print_results(const struct options *o, double seconds)
{
    const struct gguf_quant_params *p = &o->params;
    if (!o->quiet) {
        print_adapter(o);
        print_skipped_norms(o->targets);
        print_replaced_importance(o->in, o->targets, o->n_targets);
        print_imatrix(o->in, o->targets, o->n_targets,
                      o->include.n + o->exclude.n > 0);
        if (seconds >= 0)
            print_nonfinite(o->in, o->targets,
                            p->nonfinite == GGUF_NONFINITE_KEEP);
        for (size_t i = 0; i < o->n_targets; i++)
            print_summary(&o->targets[i], seconds);
        if (seconds < 0)
            calibration_print_plan(o);
    }
    bool plans = o->verbose || o->explain;
    for (size_t i = 0; seconds >= 0 && i < o->n_targets; i++)
        if (p->measure && !o->report && !o->json) {
            if (o->n_targets > 1)
                print_heading(&o->targets[i], plans || i > 0);
            print_loss(&o->targets[i]);
        }
    print_calibrations(o, seconds);
    if (o->json)
        print_json(stdout, o->in, o->targets, o->n_targets, o->calibration,
                   seconds);
}

static enum gguf_status quantize_all(struct options *o, struct progress *bar,
                                     const char **about,
                                     struct gguf_error *err)
{
    struct gguf_pool *pool;
    struct gguf_paths *noted = record_paths(o);
    struct outtext report = OUTTEXT_INIT;
    double begin = progress_clock(), seconds = -1;

    enum gguf_status st = start_run(o, bar, &pool, err);
    if (st == GGUF_OK)
        st = calibration_collect(o, bar, err);
    if (st == GGUF_OK)
        st = make_jobs(o, bar, about, err);
    if (st == GGUF_OK && !o->dry_run && o->report) {
        *about = o->report;
        st = outtext_open(&report, o->report, o->force, err);
    }
    calibration_attach(o, bar);
    if (st == GGUF_OK && !o->dry_run) {
        msg_flush();
        o->began = true;
        st = run_targets(o, "quantizing", noted, bar, about, err);
        st = calibration_end_rank(o, st);
        *about = ranks_is_worker() ? o->in : *about;
        seconds = progress_clock() - begin;
    }
    progress_clear(bar);
    st = end_report(o, &report, st, seconds, about, err);
    if (st == GGUF_OK)
        print_results(o, seconds);
    destroy_targets(o);
    gguf_pool_destroy(pool);
    gguf_paths_destroy(noted);
    return st;
}

int main(int argc, char **argv)
{
    struct options o = OPTIONS_INIT;
    struct progress bar;
    struct gguf_error err;
    gg_os_program_arguments(&argc, &argv);
    ranks_begin(&argc, &argv);
    parse_command_line(&o, argc, argv);
    ranks_require(o.mpi);
    load_raise_limits();
    calibration_begin_rank(&o);
    if (!check_overrides(&o) || !calibration_open(&o)) {
        calibration_close(&o);
        options_fini(&o);
        return msg_exit(MSG_FAILED);
    }
    progress_init(&bar, "planning", NULL, o.quiet);
    progress_catch_signals();
    gguf_error_clear(&err);
    const char *about = o.in;
    enum gguf_status st = quantize_all(&o, &bar, &about, &err);
    if (st != GGUF_OK)
        msg_fail(about, &err);
    if (st != GGUF_OK)
        print_resume_hint(&o, st);
    calibration_close(&o);
    options_fini(&o);
    progress_raise();
    return msg_exit(st == GGUF_OK ? MSG_DONE : MSG_FAILED);
}
