/* SPDX-License-Identifier: MIT */
/* print.c - the output of a perplexity, as text and JSON */
#include "config.h"
#include "tools/common/ignore_status.h"
#include "tools/ppl/ppl.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/evaluate/options.h"
#include "tools/common/table.h"
#include "tools/common/text.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PER_LINE = 5 }; /* values; fits 80 columns with four-digit chunks */

void ppl_print_chunk(struct ppl_run *r)
{
    /* print whole lines, so that the progress bar stays below them */
    if (r->n_done % PER_LINE && r->n_done < r->e.n_chunks)
        return;
    size_t begin = (r->n_done - 1) / PER_LINE * PER_LINE;
    struct gguf_ppl sum = GGUF_PPL_INIT;
    progress_clear(&r->e.bar);
    for (size_t i = 0; i < r->n_done; i++) {
        ignore_status(gguf_ppl_add(&sum, &r->sums[i], NULL));
        if (i >= begin)
            wrap_printf("[%zu]%.4f,", r->e.first_chunk + i + 1,
                        gguf_ppl_value(&sum));
    }
    wrap_printf("\n");
    msg_flush();
}

void ppl_print_ranks(const struct ppl_run *r)
{
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < r->n_ranks; i++) {
        const size_t n = r->rank_chunks[i];
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    if (r->n_ranks)
        wrap_printf("ranks   %zu, with %zu to %zu of the chunks\n", r->n_ranks,
                    least, most);
}

void ppl_json_ranks(struct json *j, const struct ppl_run *r)
{
    if (!r->n_ranks)
        return;
    json_open(j, "rank_chunks", '(');
    for (size_t i = 0; i < r->n_ranks; i++)
        json_u64(j, NULL, r->rank_chunks[i]);
    json_close(j);
}

void ppl_print_end(const struct ppl_run *r)
{
    double n = (double)r->n_done_tokens;
    ppl_print_text_figures(r);
    ppl_print_units(r);
    ppl_print_hf_figures(r);
    ppl_print_ranks(r);
    wrap_printf("time    %.1f s, %.0f tokens/s\n", r->e.seconds,
                r->e.seconds > 0 ? n / r->e.seconds : 0);
    wrap_printf("Final estimate: PPL = %.4f +/- %.5f\n",
                gguf_ppl_value(&r->total), gguf_ppl_error(&r->total));
}

void ppl_json_settings(struct json *j, const struct ppl_run *r)
{
    if (!r->settings_json) {
        ev_json_settings(j, &r->e);
        return;
    }
    json_open(j, "settings", '{');
    json_members(j, r->settings_json);
    json_close(j);
}

void ppl_json_text(struct json *j, const struct ppl_run *r)
{
    if (!r->text_json) {
        ev_json_text(j, &r->e, r->o->task ? "tasks" : "tokens",
                     r->o->task ? r->n_tasks_read : r->e.n_tokens);
        return;
    }
    json_open(j, "text", '{');
    json_members(j, r->text_json);
    json_close(j);
}

void ppl_print_json(const struct ppl_run *r, FILE *f)
{
    struct json j;
    double n = (double)r->n_done_tokens;
    json_begin_object(&j, f);
    ev_json_model(&j, "model", &r->o->ev, r->e.own);
    json_close(&j);
    ppl_json_texts(&j, r);
    ppl_json_settings(&j, r);
    json_u64(&j, "tokens_per_chunk", r->e.n_scored_chunk);
    json_u64(&j, "first_chunk", r->e.first_chunk);
    json_open(&j, "chunk_nll", '(');
    for (size_t i = 0; i < r->n_done; i++)
        json_f64(&j, NULL, r->sums[i].sum);
    json_close(&j);
    ppl_json_windows(&j, r);
    json_u64(&j, "tokens_scored", r->total.n);
    json_f64(&j, "nll", r->total.sum / (double)r->total.n);
    json_f64(&j, "ppl", gguf_ppl_value(&r->total));
    json_f64(&j, "ppl_error", gguf_ppl_error(&r->total));
    ppl_json_units(&j, &r->total);
    ppl_json_ranks(&j, r);
    json_f64(&j, "seconds", r->e.seconds);
    json_f64(&j, "tokens_per_second", r->e.seconds > 0 ? n / r->e.seconds : 0);
    ev_json_timings(&j, &r->e.timings);
    json_end(&j);
}
