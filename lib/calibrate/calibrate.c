/* SPDX-License-Identifier: MIT */
/* calibrate.c - calibrate an output, stage by stage */
#include "config.h"
#include "calibrate/calibrate_share.h"
#include "calibrate/tune.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/params.h"
#include "kern/cpu_features.h"

#include <math.h>

#define DEFAULT_MEMORY ((uint64_t)1 << 30) /* bytes */

/* Is the output matrix the table of embeddings, too? */
static bool is_tied(const struct gg_calibrate_job *j)
{
    const struct gg_weights *w = &j->quantized->top;
    return w->w[GG_W_OUTPUT] && w->w[GG_W_OUTPUT] == w->w[GG_W_TOKEN_EMBD];
}

static bool has_output(const struct gg_calibrate_job *j)
{
    return j->quantized->top.w[GG_W_OUTPUT] &&
           gg_model_has_logits(j->quantized);
}

static size_t count_stages(const struct gg_calibrate_job *j)
{
    return gg_stages_count(j->stream[GG_CALIBRATE_QUANTIZED].stages);
}

/* Count the stages of each tensor. */
static void count_uses(struct gg_calibrate_job *j)
{
    const struct gg_stages *g = j->stream[GG_CALIBRATE_QUANTIZED].stages;
    for (size_t i = 0; i < gg_stages_count(g); i++) {
        const struct gg_stages_stage *s = gg_stages_at(g, i);
        for (size_t k = 0; k < s->n_products; k++) {
            const struct gguf_tensor *w = s->product[k].weight;
            struct gg_calibrate_record *r =
                gg_calibrate_find_record(j, w->name);
            bool again = false;
            for (size_t e = 0; e < k; e++)
                again |= s->product[e].weight == w;
            if (r && !again)
                r->n_stages++;
        }
    }
}

/* Add up the work of all stages. */
static enum gguf_status plan_work(struct gg_calibrate_job *j,
                                  struct gguf_error *err)
{
    struct gg_calibrate_stage s;
    enum gguf_status st = GGUF_OK;
    j->total += gg_calibrate_curvature_work(j);
    for (size_t i = 0; st == GGUF_OK && i <= count_stages(j); i++) {
        st = i < count_stages(j)
                 ? gg_calibrate_stage_init(&s, j, i, false, err)
                 : gg_calibrate_stage_init_output(&s, j, is_tied(j), false,
                                                  err);
        if (st == GGUF_OK)
            j->total += gg_calibrate_stage_work(&s);
        gg_calibrate_stage_fini(&s);
    }
    j->total += gg_calibrate_tune_work(j);
    return st;
}

/* The first divergence, which a resumed run knows from the interrupted one. */
static enum gguf_status measure_before(struct gg_calibrate_job *j,
                                       struct gguf_error *err)
{
    for (size_t i = 0; i < j->n_records; i++)
        if (j->record[i].form &&
            gguf_quant_improver_is_replaced(j->improver, i))
            return GGUF_OK;
    return gg_calibrate_measure_divergence(j, false,
                                           &j->result.divergence_before, err);
}

/* Report the tensors that no stage has. */
static enum gguf_status report_rest(struct gg_calibrate_job *j,
                                    struct gguf_error *err)
{
    for (size_t i = 0; i < j->n_records; i++)
        if (j->record[i].form)
            GG_TRY(gg_calibrate_keep_tensor(
                j, &j->record[i], "the model multiplies no inputs by it",
                err));
    return GGUF_OK;
}

/* Put back all plain bytes if the new ones have more divergence. Tensors were
 * chosen by the errors of their own outputs alone. */
static enum gguf_status guard_file(struct gg_calibrate_job *j,
                                   struct gguf_error *err)
{
    struct gguf_calibrate_result *r = &j->result;
    if (!r->n_new || !(r->divergence_after > r->divergence_before))
        return GGUF_OK;
    r->n_new = 0;
    for (size_t i = 0; i < j->n_records; i++)
        if (j->record[i].result.n_new)
            GG_TRY(gg_calibrate_restore_tensor(
                j, &j->record[i],
                "the file is nearer to the original without new bytes", err));
    r->divergence_given_up = r->divergence_after;
    r->divergence_after = r->divergence_before;
    return GGUF_OK;
}

static void count_tokens(struct gg_calibrate_job *j)
{
    const struct gg_calibrate_text *x = &j->text;
    struct gg_heldout h;
    gg_heldout_init(&h, x->n_chunks * x->n_ctx, x->n_ctx, 1);
    j->result.n_tokens = h.n_tokens;
    j->result.n_held_out = h.n_held;
}

static enum gguf_status run_job(struct gg_calibrate_job *j,
                                struct gguf_error *err)
{
    const bool tied = has_output(j) && is_tied(j);
    GG_TRY(gg_calibrate_add_progress(j, 0, err));
    GG_TRY(measure_before(j, err));
    GG_TRY(gg_calibrate_curvature_init(j, err));
    GG_TRY(gg_calibrate_run_embedding(j, err));
    if (tied)
        GG_TRY(gg_calibrate_run_output(j, true, err));
    for (size_t i = 0; i < count_stages(j); i++)
        GG_TRY(gg_calibrate_run_stage(j, i, err));
    if (has_output(j) && !tied)
        GG_TRY(gg_calibrate_run_output(j, false, err));
    GG_TRY(gg_calibrate_measure_divergence(j, true,
                                           &j->result.divergence_after, err));
    GG_TRY(report_rest(j, err));
    GG_TRY(guard_file(j, err));
    GG_TRY(gg_calibrate_tune(j, err));
    j->result.n_left_out = j->text.n_bad;
    return gg_calibrate_add_progress(j, j->total, err);
}

static enum gguf_status start_job(struct gg_calibrate_job *j,
                                  struct gguf_error *err)
{
    struct gguf_model_params mp = GGUF_MODEL_PARAMS_INIT;
    mp.allocator = j->allocator;
    mp.as = gguf_model_info(j->stream[GG_CALIBRATE_ORIGINAL].model)->as;
    GG_TRY(gguf_model_create(&j->quantized, j->file, &mp, err));
    j->stream[GG_CALIBRATE_QUANTIZED].model = j->quantized;
    GG_TRY(gg_calibrate_text_init(&j->text, j->p,
                                  gguf_model_vocab(j->quantized), err));
    GG_TRY(gg_calibrate_records_init(j, err));
    GG_TRY(gg_calibrate_tune_check(j, err));
    GG_TRY(gg_calibrate_streams_init(j, err));
    count_tokens(j);
    count_uses(j);
    return plan_work(j, err);
}

static void fini_job(struct gg_calibrate_job *j)
{
    gg_calibrate_curvature_fini(j);
    gg_calibrate_streams_fini(j);
    gg_calibrate_records_fini(j);
    gg_calibrate_text_fini(&j->text);
    gguf_model_destroy(j->quantized);
    gg_linalg_fini(&j->linalg);
}

enum gguf_status gguf_calibrate_run(struct gguf_quant_improver *h,
                                    const struct gguf_model *original,
                                    const struct gguf_calibrate_params *params,
                                    struct gguf_calibrate_result *result,
                                    struct gguf_error *err)
{
    struct gguf_calibrate_params p = GGUF_CALIBRATE_PARAMS_INIT;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_calibrate_params", err));
    GG_TRY(gg_params_need(h, "improver", err));
    GG_TRY(gg_params_need(original, "original", err));
    GG_TRY(gg_params_need(p.tokens || !p.n_tokens, "tokens", err));
    GG_TRY(gg_calibrate_check_share(&p, err));
    p.max_memory = p.max_memory ? p.max_memory : DEFAULT_MEMORY;
    struct gg_calibrate_job j = {
        .p = &p,
        .allocator = p.allocator,
        .improver = h,
        .file = gguf_quant_improver_file(h),
        .text.allocator = p.allocator,
        .stream[GG_CALIBRATE_ORIGINAL].model = original,
        .result = { .struct_size = sizeof j.result,
                    .divergence_before = (double)NAN,
                    .divergence_after = (double)NAN,
                    .divergence_given_up = (double)NAN,
                    .divergence_untuned = (double)NAN,
                    .divergence_tuned = (double)NAN },
    };
    gg_linalg_init(&j.linalg, p.pool, p.allocator);
    gg_codec_kern_init(j.codec, gg_kern_cpu_detect());
    gg_codec_kern_set_native_order(j.codec);
    enum gguf_status st = start_job(&j, err);
    if (st == GGUF_OK)
        st = run_job(&j, err);
    if (st == GGUF_OK && result)
        st = gg_params_give(result, &j.result, sizeof j.result,
                            "gguf_calibrate_result", err);
    fini_job(&j);
    return st;
}
