/* SPDX-License-Identifier: MIT */
/* calibration_print.c - results of a calibration: a table, JSON */
#include "config.h"
#include "tools/quantize/calibration.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct calibration_result *calibration_result_create(size_t n_tensors)
{
    struct calibration_result *r = msg_must(calloc(1, sizeof *r));
    r->n_tensors = n_tensors;
    r->tensors = msg_must(calloc(n_tensors + 1, sizeof *r->tensors));
    return r;
}

void calibration_result_destroy(struct calibration_result *r)
{
    for (size_t i = 0; r && i < r->n_tensors; i++)
        free(r->tensors[i].note);
    free(r ? r->tensors : NULL);
    free(r);
}

static void add_error(struct table *t, double error)
{
    if (isfinite(error))
        table_addf(t, "%.4g", error);
    else
        table_add(t, "-");
}

void print_calibration(const struct target *target)
{
    static const char *const heads[] = { "tensor",   "type",   "bytes",
                                         "strength", "before", "after",
                                         "new",      "note" };
    const struct calibration_result *r = target->calibration;
    struct table t;
    if (!r)
        return;
    table_init(&t, "lllrrrrl", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; i < r->n_tensors; i++) {
        const struct calibration_tensor *c = &r->tensors[i];
        const struct gguf_quant_tensor *q = gguf_quant_tensor(target->job, i);
        const struct gguf_dtype_info *type = gguf_dtype_find(q->to);
        if (!c->have)
            continue;
        table_add_strz(&t, q->name);
        table_add(&t, type ? type->name : "?");
        table_add(&t, c->feedback ? "feedback" : "plain");
        table_addf(&t, "%.2g", c->strength);
        add_error(&t, c->error_before);
        add_error(&t, c->error_after);
        table_addf(&t, "%zu/%zu", c->n_new, c->n_matrices);
        table_add_strz(&t, c->note ? c->note : "");
    }
    table_show(&t, "12/45");
}

void print_calibration_summary(const struct target *target)
{
    const struct calibration_result *r = target->calibration;
    char divergence[96] = "", tokens[48] = "", tuned[64] = "";
    if (!r)
        return;
    const bool is_tuned = isfinite(r->divergence_tuned);
    if (isfinite(r->divergence_before) && isfinite(r->divergence_after))
        snprintf(divergence, sizeof divergence,
                 "; divergence on %zu held out: %.4g -> %.4g nats",
                 r->n_held_out, r->divergence_before,
                 is_tuned ? r->divergence_untuned : r->divergence_after);
    if (is_tuned)
        snprintf(tuned, sizeof tuned, ", tuned %.4g%s", r->divergence_tuned,
                 r->n_tuned ? "" : " (not used)");
    if (r->n_tokens)
        snprintf(tokens, sizeof tokens, ", from %zu tokens", r->n_tokens);
    msg_info(target->path, "new bytes in %zu of %zu tensors%s%s%s, %.1f s",
             r->n_new, r->n_tried, tokens, divergence, tuned, r->seconds);
}

void json_calibration(struct json *j, const struct calibration *c)
{
    if (!c)
        return;
    json_open(j, "calibration", '{');
    json_open(j, "texts", '[');
    for (size_t i = 0; i < c->n_texts; i++) {
        json_open(j, NULL, '{');
        json_strz(j, "path", c->texts[i].path);
        json_u64(j, "n_tokens", c->texts[i].n_tokens);
        json_u64(j, "n_used", c->texts[i].n_used);
        json_close(j);
    }
    json_close(j);
    json_u64(j, "n_tokens", c->tokens.n);
    json_u64(j, "n_ctx", c->n_ctx);
    json_u64(j, "effort", c->effort);
    json_u64(j, "tune", c->o->tune_steps);
    json_close(j);
}

void json_calibration_result(struct json *j,
                             const struct calibration_result *r)
{
    if (!r)
        return;
    json_open(j, "calibration", '{');
    json_u64(j, "n_tokens", r->n_tokens);
    json_u64(j, "n_held_out", r->n_held_out);
    json_u64(j, "n_left_out", r->n_left_out);
    json_u64(j, "n_tensors", r->n_tried);
    json_u64(j, "n_new", r->n_new);
    if (*r->no_gradients)
        json_strz(j, "no_gradients", r->no_gradients);
    json_f64(j, "divergence_before", r->divergence_before);
    json_f64(j, "divergence_after", r->divergence_after);
    json_u64(j, "n_tuned", r->n_tuned);
    json_f64(j, "divergence_untuned", r->divergence_untuned);
    json_f64(j, "divergence_tuned", r->divergence_tuned);
    if (*r->tune_note)
        json_strz(j, "tune_note", r->tune_note);
    json_f64(j, "seconds", r->seconds);
    json_close(j);
}

void json_calibrated_tensor(struct json *j, const struct calibration_result *r,
                            size_t i)
{
    if (!r || i >= r->n_tensors || !r->tensors[i].have)
        return;
    const struct calibration_tensor *c = &r->tensors[i];
    json_open(j, "calibration", '{');
    json_strz(j, "used", c->feedback ? "feedback" : "plain");
    json_f64(j, "strength", c->strength);
    json_f64(j, "error_before", c->error_before);
    json_f64(j, "error_after", c->error_after);
    json_u64(j, "n_matrices", c->n_matrices);
    json_u64(j, "n_new", c->n_new);
    if (c->note)
        json_strz(j, "note", c->note);
    json_close(j);
}
