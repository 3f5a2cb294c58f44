/* SPDX-License-Identifier: MIT */
/* calibration.c - calibrate the outputs of a run */
#include "config.h"
#include "tools/quantize/calibration.h"
#include "tools/common/msg.h"
#include "tools/common/ranks.h"
#include "tools/common/text.h"

#include <gguf/calibrate.h>
#include <gguf/text.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An output that is being calibrated. */
struct work {
    const struct calibration *c;
    struct calibration_result *result;
};

/* Show the name of a tensor, without its end ".weight", beside the bar. */
static void show_tensor(struct progress *bar, const char *name)
{
    static const char end[] = ".weight";
    const size_t n = strlen(name), n_end = sizeof end - 1;
    const bool cut = n > n_end && !strcmp(name + n - n_end, end);
    struct gguf_str shown = { name, cut ? n - n_end : n };
    gguf_text_escape(bar->note, sizeof bar->note, shown);
}

/* Exchange parts with the other ranks. */
static bool exchange_parts(void *user, void *data, const uint64_t *off)
{
    (void)user;
    ranks_exchange(data, off);
    return progress_stopped();
}

/* Copy the result for a tensor. */
static bool take_tensor(void *user, const struct gguf_calibrate_tensor *t)
{
    const struct work *w = user;
    if (t->tensor >= w->result->n_tensors)
        return false;
    struct calibration_tensor *to = &w->result->tensors[t->tensor];
    free(to->note);
    *to = (struct calibration_tensor){
        .have = true,
        .feedback = t->use == GGUF_CALIBRATE_FEEDBACK,
        .strength = t->strength,
        .error_before = t->error_before,
        .error_after = t->error_after,
        .n_matrices = t->n_matrices,
        .n_new = t->n_new,
        .note = t->note ? msg_copy(t->note) : NULL
    };
    show_tensor(w->c->bar, t->name);
    return false;
}

static void warn_left_out(const struct options *o,
                          const struct gguf_calibrate_result *r)
{
    char name[512] = "";
    if (!r->n_left_out || o->quiet)
        return;
    if (r->bad)
        gguf_text_escape(name, sizeof name,
                         (struct gguf_str){ r->bad, strlen(r->bad) });
    msg_warn(o->in,
             "%zu chunk%s left out of the calibration: the input of '%s' is "
             "NaN or infinite",
             r->n_left_out, r->n_left_out == 1 ? " is" : "s are", name);
}

static void warn_no_gradients(const struct options *o,
                              const struct gguf_calibrate_result *r)
{
    if (*r->no_gradients && !o->quiet)
        msg_warn(o->in, "calibrated without gradients: %s", r->no_gradients);
}

static void warn_worse(const struct options *o, const char *path,
                       const struct gguf_calibrate_result *r)
{
    if (!isnan(r->divergence_given_up) && !o->quiet)
        msg_warn(path,
                 "the new bytes have a divergence of %.4g nats on held-out "
                 "tokens, the plain ones %.4g: they are kept; try other texts",
                 r->divergence_given_up, r->divergence_before);
}

static void warn_not_tuned(const struct options *o,
                           const struct gguf_calibrate_result *r)
{
    if (*r->tune_note && !o->quiet)
        msg_warn(o->in, "not tuned: %s", r->tune_note);
}

static void take_result(struct calibration_result *to,
                        const struct gguf_calibrate_result *r)
{
    to->n_tried = r->n_tensors;
    to->n_new = r->n_new;
    to->n_tokens = r->n_tokens;
    to->n_held_out = r->n_held_out;
    to->n_left_out = r->n_left_out;
    to->divergence_before = r->divergence_before;
    to->divergence_after = r->divergence_after;
    to->divergence_untuned = r->divergence_untuned;
    to->divergence_tuned = r->divergence_tuned;
    to->n_tuned = r->n_tuned;
    memcpy(to->tune_note, r->tune_note, sizeof to->tune_note);
    memcpy(to->no_gradients, r->no_gradients, sizeof to->no_gradients);
}

/* Make the result of a calibration that failed: that of the tensors until
 * then. */
static void take_early_end(struct calibration_result *to)
{
    for (size_t i = 0; i < to->n_tensors; i++) {
        to->n_tried += to->tensors[i].have;
        to->n_new += to->tensors[i].feedback;
    }
    to->divergence_before = to->divergence_after = (double)NAN;
    to->divergence_untuned = to->divergence_tuned = (double)NAN;
}

static enum gguf_status calibrate_output(void *user, size_t job,
                                         struct gguf_quant_improver *h,
                                         struct gguf_error *err)
{
    const struct calibration *c = user;
    const struct options *o = c->o;
    struct target *t = &c->o->targets[job];
    struct gguf_calibrate_params p = GGUF_CALIBRATE_PARAMS_INIT;
    struct gguf_calibrate_result r = GGUF_CALIBRATE_RESULT_INIT;
    const double begin = progress_clock();
    calibration_result_destroy(t->calibration);
    t->calibration = calibration_result_create(gguf_quant_n_tensors(t->job));
    struct work w = { c, t->calibration };
    p.pool = o->params.pool;
    p.tokens = c->tokens.id;
    p.n_tokens = c->tokens.n;
    p.n_ctx = c->tokens.n < c->n_ctx ? 0 : c->n_ctx;
    p.effort = c->effort;
    p.tune_steps = o->tune_steps;
    p.max_memory = o->params.max_memory;
    p.spill_path = t->path;
    p.progress = (struct gguf_progress_callback){ progress_report, c->bar };
    p.on_tensor = (struct gguf_calibrate_tensor_callback){ take_tensor, &w };
    if (o->mpi) {
        p.exchange =
            (struct gguf_calibrate_exchange_callback){ exchange_parts, NULL };
        p.rank = ranks_own();
        p.n_ranks = ranks_count();
    }
    progress_init(c->bar, "calibrating", "", o->quiet);
    c->bar->defer_close = !o->resume && !o->mpi;
    enum gguf_status st = calibration_begin_share(o, h, err);
    if (st == GGUF_OK)
        st = gguf_calibrate_run(h, c->model, &p, &r, err);
    progress_clear(c->bar);
    t->calibration->seconds = progress_clock() - begin;
    if (st == GGUF_E_NONFINITE) { /* the file is sound */
        take_early_end(t->calibration);
        msg_warn(o->in, "%s; later tensors keep the plain bytes",
                 err->message);
        gguf_error_clear(err);
        return GGUF_OK;
    }
    take_result(t->calibration, &r);
    if (st == GGUF_OK) {
        warn_left_out(o, &r);
        warn_no_gradients(o, &r);
        warn_worse(o, t->path, &r);
        warn_not_tuned(o, &r);
    }
    return st;
}

void calibration_attach(struct options *o, struct progress *bar)
{
    if (!o->calibration || o->calibration->nothing)
        return;
    o->calibration->bar = bar;
    o->improve = (struct gguf_quant_improve_callback){ calibrate_output,
                                                       o->calibration };
}

void calibration_print_plan(const struct options *o)
{
    const struct calibration *c = o->calibration;
    size_t n = 0;
    if (!c)
        return;
    for (size_t i = 0; i < c->n_texts; i++)
        n += c->texts[i].n_used > 0;
    msg_info(o->in,
             "calibration on %zu tokens of %zu text%s, chunks of %" PRIu32
             ", effort %u",
             c->tokens.n, n, text_s(n), c->n_ctx, c->effort);
}
