/* gguf-convert - a GGUF file of a Hugging Face folder */
#include "config.h"
#include "tools/gguf-convert.h"
#include "tools/common/load.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"
#include "tools/common/progress.h"

#include <string.h>

/* The folder, then recipes and plans of all outputs. */
static enum gguf_status make_jobs(struct convert_options *o,
                                  struct progress *bar, const char **about,
                                  struct gguf_error *err)
{
    struct options *q = &o->q;
    enum gguf_status st = gguf_convert_open(&o->from, q->in, &o->params, err);
    for (size_t i = 0; i < q->n_targets && st == GGUF_OK; i++) {
        struct target *t = &q->targets[i];
        *about = t->type;
        st = gguf_recipe_preset(&t->recipe, t->type, NULL, err);
        if (st == GGUF_OK) {
            q->params.recipe = t->recipe;
            *about = q->in;
            st = gguf_convert_job(&t->job, o->from, &q->params, err);
        }
        if (st == GGUF_OK && t->sized) {
            progress_init(bar, "measuring", NULL, q->quiet);
            t->result = (struct gguf_target_result)GGUF_TARGET_RESULT_INIT;
            st = gguf_quant_target(t->job, &q->target, &t->result, err);
            progress_clear(bar);
        }
    }
    return st;
}

static void print_plans(const struct convert_options *o)
{
    const struct options *q = &o->q;
    if (q->json)
        return;
    if (q->verbose || q->dry_run)
        print_made(o);
    for (size_t i = 0; i < q->n_targets && (q->verbose || q->explain); i++) {
        print_heading(&q->targets[i], true);
        print_plan(&q->targets[i], q->explain);
    }
}

static enum gguf_status run(struct convert_options *o,
                            const struct gguf_paths *noted,
                            struct progress *bar, const char **about,
                            struct gguf_error *err)
{
    struct options *q = &o->q;
    struct gguf_quant_output out = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_quant *jobs[MAX_TARGETS];
    const char *paths[MAX_TARGETS];
    out.force = q->force;
    out.resume = q->resume;
    out.paths = noted;
    for (size_t i = 0; i < q->n_targets; i++) {
        jobs[i] = q->targets[i].job;
        paths[i] = q->targets[i].path;
    }
    progress_init(bar, "converting", NULL, q->quiet);
    bar->linger = !q->resume; /* what has a name stays */
    enum gguf_status st =
        gguf_quant_run_many(jobs, paths, q->n_targets, &out, err);
    /* The folder is open already, so the system refused an output. If there
     * are several, the library names the one. */
    bool output = st == GGUF_E_EXIST || st == GGUF_E_NOSPACE ||
                  st == GGUF_E_IO || st == GGUF_E_INVALID ||
                  st == GGUF_E_MISMATCH;
    *about = output && q->n_targets == 1 ? paths[0] : q->in;
    return st;
}

/* What is read besides the folder's weights, which the library knows. */
static struct gguf_paths *note_paths(const struct options *o)
{
    struct gguf_paths *p = paths_new();
    for (size_t i = 0; i < o->imatrix_paths.n; i++)
        paths_read(p, o->imatrix_paths.arg[i], "--imatrix");
    for (size_t i = 0; i < o->types.n; i++)
        if (o->types.value[i] == TYPE_FILE)
            paths_read(p, o->types.arg[i], "--tensor-type-file");
    return p;
}

static void print_results(const struct convert_options *o, double seconds)
{
    const struct options *q = &o->q;
    if (!q->quiet) {
        print_mended(q->in, q->targets, q->n_targets);
        print_imatrix(q->in, q->targets, q->n_targets,
                      q->include.n + q->exclude.n > 0);
        if (seconds >= 0)
            print_nonfinite(q->in, q->targets,
                            q->params.nonfinite == GGUF_NONFINITE_KEEP);
        for (size_t i = 0; i < q->n_targets; i++)
            print_summary(&q->targets[i], seconds);
    }
    if (q->json)
        print_made_json(o, seconds);
}

static enum gguf_status work(struct convert_options *o, struct progress *bar,
                             const char **about, struct gguf_error *err)
{
    struct options *q = &o->q;
    struct gguf_pool_params pp = GGUF_POOL_PARAMS_INIT;
    struct gguf_pool *pool = NULL;
    struct gguf_paths *noted = note_paths(q);
    enum gguf_status st = GGUF_OK;
    double begin = progress_clock(), seconds = -1;

    pp.n_threads = q->threads;
    q->params.overrides = q->overrides;
    q->params.n_overrides = q->n_overrides;
    q->params.progress = progress_report;
    q->params.progress_user = bar;
    if (!q->dry_run || q->targets[0].sized)
        st = gguf_pool_create(&pool, &pp, err);
    q->params.pool = pool;
    if (st == GGUF_OK)
        st = make_jobs(o, bar, about, err);
    if (st == GGUF_OK)
        print_plans(o);
    if (st == GGUF_OK && !q->dry_run) {
        fflush(stdout);
        st = run(o, noted, bar, about, err);
        seconds = progress_clock() - begin;
    }
    progress_clear(bar);
    if (st == GGUF_OK)
        print_results(o, seconds);
    for (size_t i = 0; i < q->n_targets; i++) {
        gguf_quant_destroy(q->targets[i].job);
        gguf_recipe_destroy(q->targets[i].recipe);
    }
    gguf_pool_destroy(pool);
    gguf_paths_destroy(noted);
    return st;
}

int main(int argc, char **argv)
{
    struct convert_options o = CONVERT_OPTIONS_INIT;
    struct progress bar;
    struct gguf_error err;
    parse_convert(&o, argc, argv);
    load_raise_limits();
    progress_init(&bar, "planning", NULL, o.q.quiet);
    progress_catch_signals();
    gguf_error_clear(&err);
    const char *about = o.q.in;
    enum gguf_status st = work(&o, &bar, &about, &err);
    if (st != GGUF_OK)
        msg_fail(about, &err);
    convert_options_fini(&o);
    progress_raise();
    return msg_exit(st == GGUF_OK ? MSG_DONE : MSG_FAILED);
}
