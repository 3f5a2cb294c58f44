/* SPDX-License-Identifier: MIT */
/* gguf-convert - convert a Hugging Face folder to GGUF, and back */
#include "config.h"
#include "tools/common/ignore_status.h"
#include "tools/convert/convert.h"
#include "tools/common/load.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"
#include "tools/common/progress.h"
#include "base/os/os_program.h"

#include <string.h>

static void print_note(void *user, enum gguf_convert_note_kind kind,
                       const char *line)
{
    const struct options *q = user;
    if (!q->quiet && kind == GGUF_CONVERT_WARNING)
        msg_warn(q->in, "%s", line);
    else if (!q->quiet)
        msg_info(q->in, "%s", line);
}

/* Open the folder, then create recipes and plans of all outputs. */
static enum gguf_status make_jobs(struct convert_options *o,
                                  struct progress *bar, const char **about,
                                  struct gguf_error *err)
{
    struct options *q = &o->q;
    o->params.note = (struct gguf_convert_note_callback){ print_note, q };
    enum gguf_status st = gguf_convert_open(&o->from, q->in, &o->params, err);
    for (size_t i = 0; i < q->n_targets && st == GGUF_OK; i++) {
        struct target *t = &q->targets[i];
        *about = t->type;
        st = gguf_recipe_preset(&t->recipe, t->type, NULL, err);
        if (st == GGUF_OK) {
            q->params.recipe = t->recipe;
            *about = q->in;
            st = gguf_convert_create_job(&t->job, o->from, &q->params, err);
        }
        if (st == GGUF_OK)
            st = choose_target_types(q, i, bar, err);
        if (st == GGUF_OK)
            st = reject_unsupported_types(q, i, err);
    }
    return st;
}

static void print_plans(const struct convert_options *o)
{
    const struct options *q = &o->q;
    if (q->json)
        return;
    if (q->verbose || q->dry_run)
        print_sources(o);
    for (size_t i = 0; i < q->n_targets && (q->verbose || q->explain); i++) {
        print_heading(&q->targets[i], true);
        print_plan(&q->targets[i], q->explain);
    }
}

static void print_results(const struct convert_options *o, double seconds)
{
    const struct options *q = &o->q;
    if (!q->quiet) {
        print_replaced_importance(q->in, q->targets, q->n_targets);
        print_imatrix(q->in, q->targets, q->n_targets,
                      q->include.n + q->exclude.n > 0);
        if (seconds >= 0)
            print_nonfinite(q->in, q->targets,
                            q->params.nonfinite == GGUF_NONFINITE_KEEP);
        print_kind(o);
        for (size_t i = 0; i < q->n_targets; i++)
            print_summary(&q->targets[i], seconds);
        if (o->projector.arg)
            print_summary(&o->projector.target, seconds);
        for (size_t i = 0; i < q->n_targets && o->verify.text && seconds >= 0;
             i++) {
            char said[160];
            verify_format(&o->verify, &o->verify.sums[i], said, sizeof said);
            msg_info(q->targets[i].path, "%s", said);
        }
    }
    if (q->json)
        print_convert_json(o, seconds);
}

/* Write the outputs. An output that verification refuses leaves no files, not
 * even those of --resume. */
static enum gguf_status write_all(struct convert_options *o,
                                  const struct gguf_paths *noted,
                                  struct progress *bar, const char **about,
                                  struct gguf_error *err)
{
    struct options *q = &o->q;
    const enum gguf_status st =
        run_targets(q, "converting", noted, bar, about, err);
    if (o->verify.failed && q->n_targets == 1)
        *about = q->targets[0].path;
    for (size_t i = 0; i < q->n_targets && o->verify.refused && q->resume;
         i++) {
        size_t n;
        ignore_status(gguf_quant_discard(q->targets[i].path, &n, NULL));
    }
    return st;
}

static enum gguf_status convert_all(struct convert_options *o,
                                    struct progress *bar, const char **about,
                                    struct gguf_error *err)
{
    struct options *q = &o->q;
    struct gguf_pool *pool;
    struct gguf_paths *noted = paths_new();
    double begin = progress_clock(), seconds = -1;

    record_inputs(q, noted);
    paths_read(noted, o->verify.text, "--verify");
    enum gguf_status st = start_run(q, bar, &pool, err);
    if (st == GGUF_OK)
        st = make_jobs(o, bar, about, err);
    if (st == GGUF_OK)
        st = projector_plan(o, about, err);
    if (st == GGUF_OK)
        st = verify_begin(o, about, err);
    if (st == GGUF_OK)
        print_plans(o);
    if (st == GGUF_OK && !q->dry_run) {
        msg_flush();
        q->began = true;
        st = write_all(o, noted, bar, about, err);
        if (st == GGUF_OK)
            st = projector_write(o, noted, bar, about, err);
        seconds = progress_clock() - begin;
    }
    progress_clear(bar);
    if (st == GGUF_OK)
        print_results(o, seconds);
    destroy_targets(q);
    gguf_pool_destroy(pool);
    gguf_paths_destroy(noted);
    return st;
}

int main(int argc, char **argv)
{
    struct convert_options o = CONVERT_OPTIONS_INIT;
    struct progress bar;
    struct gguf_error err;
    gg_os_program_arguments(&argc, &argv);
    parse_convert(&o, argc, argv);
    if (!verify_read(&o)) {
        convert_options_fini(&o);
        return msg_exit(MSG_FAILED);
    }
    load_raise_limits();
    progress_init(&bar, "planning", NULL, o.q.quiet);
    progress_catch_signals();
    gguf_error_clear(&err);
    const char *about = o.q.in;
    enum gguf_status st = o.folder ? write_folder(&o, &bar, &about, &err)
                                   : convert_all(&o, &bar, &about, &err);
    if (st != GGUF_OK)
        msg_fail(about, &err);
    if (st == GGUF_E_ARCH && !o.folder &&
        strstr(err.message, "; nearest by names"))
        msg_error(about, "--as CLASS converts the folder as one of a known "
                         "class");
    if (st != GGUF_OK && !o.folder && !o.verify.failed)
        print_resume_hint(&o.q, st);
    convert_options_fini(&o);
    progress_raise();
    return msg_exit(st == GGUF_OK ? MSG_DONE : MSG_FAILED);
}
