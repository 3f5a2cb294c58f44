/* SPDX-License-Identifier: MIT */
/* run.c - writing several outputs from one reading of their source */
#include "config.h"
#include "tools/quantize/quantize.h"
#include "tools/common/option_hint.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <gguf/text.h>

#include <stdio.h>
#include <string.h>

/* The outputs are complete: remove the files that an earlier, interrupted run
 * with --resume left for them. */
static void discard_stale(const char *const *paths, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t n_files = 0;
        struct gguf_error err;
        const bool good =
            gguf_quant_discard(paths[i], &n_files, &err) == GGUF_OK;
        if (n_files)
            msg_warn(paths[i],
                     "removed %zu file%s of an earlier run with --resume",
                     n_files, text_s(n_files));
        if (!good)
            msg_warn(paths[i],
                     "files of an earlier run with --resume remain: %s",
                     err.message);
    }
}

static bool has_sensitivities(const struct options *o)
{
    return o->params.imatrix &&
           gguf_imatrix_n_sensitivities(o->params.imatrix) > 0;
}

enum gguf_status start_run(struct options *o, struct progress *bar,
                           struct gguf_pool **pool, struct gguf_error *err)
{
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    bool computes = !o->dry_run || has_sensitivities(o);
    for (size_t i = 0; i < o->n_targets; i++)
        computes |= has_size_limit(&o->targets[i]);
    pp.n_threads = o->threads;
    *pool = NULL;
    const enum gguf_status st =
        computes ? gguf_pool_create(pool, &pp, err) : GGUF_OK;
    o->params.overrides = o->overrides;
    o->params.n_overrides = o->n_overrides;
    o->params.progress =
        (struct gguf_progress_callback){ progress_report, bar };
    o->params.pool = *pool;
    return st;
}

enum gguf_status run_targets(const struct options *o, const char *doing,
                             const struct gguf_paths *noted,
                             struct progress *bar, const char **about,
                             struct gguf_error *err)
{
    struct gguf_quant_output out = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_quant *jobs[MAX_TARGETS];
    const char *paths[MAX_TARGETS];
    out.force = o->force;
    out.resume = o->resume;
    out.paths = noted;
    out.check = o->check;
    out.improve = o->improve;
    memcpy(out.improve_digest, o->improve_digest, sizeof out.improve_digest);
    for (size_t i = 0; i < o->n_targets; i++) {
        jobs[i] = o->targets[i].job;
        paths[i] = o->targets[i].path;
    }
    progress_init(bar, doing, NULL, o->quiet);
    bar->defer_close = !o->resume; /* files with a name are kept */
    enum gguf_status st =
        gguf_quant_run_many(jobs, paths, o->n_targets, &out, err);
    if (st == GGUF_OK && !o->resume)
        discard_stale(paths, o->n_targets);
    /* The source is open already, so that these failures are about an output.
     * If there are several, the message names it. */
    bool output = st == GGUF_E_EXIST || st == GGUF_E_NOSPACE ||
                  st == GGUF_E_IO || st == GGUF_E_INVALID ||
                  st == GGUF_E_MISMATCH;
    *about = output && o->n_targets == 1 ? paths[0] : o->in;
    return st;
}

/* Predict the divergence of the plan, if there are sensitivities. */
static enum gguf_status predict_divergence(struct options *o, struct target *t,
                                           struct progress *bar,
                                           struct gguf_error *err)
{
    if (!has_sensitivities(o))
        return GGUF_OK;
    progress_init(bar, "predicting", NULL, o->quiet);
    const enum gguf_status st =
        gguf_quant_predict(t->job, &o->target, &t->prediction, err);
    progress_clear(bar);
    return st;
}

enum gguf_status choose_target_types(struct options *o, size_t i,
                                     struct progress *bar,
                                     struct gguf_error *err)
{
    struct target *t = &o->targets[i];
    o->target.no_record = o->calib_texts.n > 0;
    t->prediction = (struct gguf_quant_prediction)GGUF_QUANT_PREDICTION_INIT;
    if (!has_size_limit(t))
        return predict_divergence(o, t, bar, err);
    o->target.max_size = t->max_size;
    o->target.max_bpw = t->max_bpw;
    o->target.measured = NULL;
    for (size_t k = 0; k < i; k++)
        if (has_size_limit(&o->targets[k]))
            o->target.measured = o->targets[k].job;
    progress_init(bar, "measuring", NULL, o->quiet);
    t->result = (struct gguf_target_result)GGUF_TARGET_RESULT_INIT;
    const enum gguf_status st =
        gguf_quant_fit_size(t->job, &o->target, &t->result, err);
    progress_clear(bar);
    return st == GGUF_OK ? predict_divergence(o, t, bar, err) : st;
}

enum gguf_status reject_unsupported_types(const struct options *o, size_t i,
                                          struct gguf_error *err)
{
    const struct gguf_quant_tensor *t;
    char name[512];
    for (size_t k = 0; (t = gguf_quant_tensor(o->targets[i].job, k)); k++) {
        if (t->to != GGUF_DTYPE_F64 || t->from == GGUF_DTYPE_F64)
            continue;
        gguf_text_escape(name, sizeof name,
                         (struct gguf_str){ t->name, strlen(t->name) });
        if (o->force) {
            msg_warn(o->targets[i].path,
                     "tensor '%s' becomes F64: llama.cpp aborts on this type",
                     name);
            return GGUF_OK;
        }
        gguf_error_clear(err);
        err->status = GGUF_E_UNSUPPORTED;
        snprintf(err->message, sizeof err->message,
                 "tensor '%.100s' would become F64: llama.cpp aborts on this "
                 "type; --force writes it",
                 name);
        return err->status;
    }
    return GGUF_OK;
}

void print_resume_hint(const struct options *o, enum gguf_status st)
{
    if (o->began && !o->quiet)
        hint_resume(o->in, o->targets[0].path, st, o->resume);
}

void record_inputs(const struct options *o, struct gguf_paths *p)
{
    for (size_t i = 0; i < o->imatrix_paths.n; i++)
        paths_read_model(p, o->imatrix_paths.arg[i], NULL, "--imatrix");
    for (size_t i = 0; i < o->types.n; i++)
        if (o->types.value[i] == TYPE_FILE)
            paths_read(p, o->types.arg[i], "--tensor-type-file");
}

void destroy_targets(struct options *o)
{
    for (size_t i = 0; i < o->n_targets; i++) {
        gguf_quant_destroy(o->targets[i].job);
        gguf_recipe_destroy(o->targets[i].recipe);
        calibration_result_destroy(o->targets[i].calibration);
    }
}
