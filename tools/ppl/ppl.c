/* SPDX-License-Identifier: MIT */
/* gguf-ppl - perplexity of a model on a text */
#include "config.h"
#include "tools/common/ignore_status.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"
#include "tools/common/ranks.h"
#include "tools/common/text.h"
#include "base/os/os_program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the run ---- */

/* Should the evaluation stop? The backend calls it between operations. */
static bool is_stopped(void *user)
{
    (void)user;
    return progress_stopped() || !ranks_poll();
}

/* Open objects, in the order in which they are destroyed. */
struct job {
    struct ev_model own; /* the model; with a base, the base or the first of
                          * the models that are compared with a file */
    struct ppl_side side;
    const struct gguf_sink *saving[4]; /* sinks that write files */
    size_t n_saving;
    struct gguf_pool *pool;
    struct gguf_tokens tokens;
    struct ppl_run run;
};

static bool open_models(struct job *j, const struct ppl_options *o)
{
    const bool has_base = j->run.e.has_base;
    if (!ev_pool_open(&j->pool, &o->ev) ||
        !ev_model_open(&j->own, has_base ? o->base : o->model, &o->ev))
        return false;
    if (has_base)
        ppl_set_base(&j->own, o);
    j->run.e.own = &j->own;
    return ev_check_vocab(&j->run.e) &&
           (has_base || ev_adapters_open(&j->own, &o->ev)) &&
           (!o->base || ppl_side_open(&j->side, o, &j->own));
}

/* Read the tokens of all texts, and choose the chunks to evaluate. */
static bool read_tokens(struct job *j, const struct ppl_options *o)
{
    struct ev_run *e = &j->run.e;
    size_t n = 0;
    if (o->task)
        return ppl_read_tasks(&j->run, gguf_model_vocab(j->own.model));
    if (o->text) {
        if (!ev_read_texts(e, o->texts.path, o->texts.n, &j->tokens))
            return false;
        n = ev_count_chunks(e);
    } else {
        if (!ppl_side_copy_tokens(&j->side, o, &j->tokens))
            return false;
        e->n_tokens = j->tokens.n;
    }
    if (j->side.saved) {
        n = gguf_scan_n_chunks(j->tokens.n, &e->scan);
        if (n > gguf_baseline_n_chunks(j->side.saved))
            n = gguf_baseline_n_chunks(j->side.saved);
    }
    if (!ev_plan_chunks(e, n, o->ev.first_chunk, o->ev.n_chunks))
        return false;
    j->run.sums = msg_must(calloc(e->n_chunks, sizeof *j->run.sums));
    return true;
}

/* Read the weights of all models, after the texts were checked. */
static bool load_models(struct job *j, const struct ppl_options *o)
{
    return ev_model_load_weights(&j->own, &o->ev, j->run.e.wants_digest,
                                 j->pool) &&
           (!o->base || ppl_side_load_weights(&j->side, &j->run, j->pool));
}

static bool open_sessions(struct job *j, const struct ppl_options *o)
{
    struct ev_run *e = &j->run.e;
    struct gguf_session_params sp;
    const uint32_t n_answers = e->n_seq;
    if (!ev_model_open_backends(&j->own, &o->ev, j->pool))
        return false;
    sp = ev_plan_session(e);
    if (o->task) {
        sp.n_seq = e->n_seq = n_answers;
        sp.n_ctx = (uint32_t)e->n_tokens;
    }
    return ev_model_begin_session(&j->own, &o->ev, &sp, false) &&
           (!o->base || ppl_side_begin_sessions(&j->side, o, &sp, j->pool));
}

void ppl_add_chunk_to_text(struct ppl_run *r, size_t chunk,
                           const struct gguf_ppl *one)
{
    struct ev_text *texts = r->e.texts;
    size_t i = r->text_at;
    if (!r->e.n_texts)
        return;
    while (chunk >= texts[i].first_chunk + texts[i].n_chunks)
        i++;
    r->text_at = i;
    ignore_status(gguf_ppl_add(&texts[i].sums, one, NULL));
}

static bool on_chunk(void *user, size_t chunk, size_t n_chunks,
                     const struct gguf_ppl *one, const struct gguf_ppl *all)
{
    struct ppl_run *r = user;
    (void)n_chunks;
    r->n_done = chunk - r->e.first_chunk + 1;
    r->sums[r->n_done - 1] = *one;
    r->total = *all;
    ppl_add_chunk_to_text(r, chunk, one);
    char value[32], error[32];
    snprintf(r->e.bar.note, sizeof r->e.bar.note, "%s +/- %s",
             text_format_number(value, gguf_ppl_value(all), 4),
             text_format_number(error, gguf_ppl_error(all), 2));
    if (!r->o->ev.json)
        ppl_print_chunk(r);
    return false;
}

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct ppl_run *r = user;
    if (r->o->mpi)
        return ppl_report_share_progress(r, done);
    r->n_done_tokens = done;
    return progress_report(&r->e.bar, done, total);
}

/* Evaluate n chunks from first on, with the sinks that write files. Adds the
 * sums to the run's total. */
static enum gguf_status evaluate_range(struct job *j, size_t first, size_t n,
                                       gguf_ppl_fn *fn, struct gguf_error *err)
{
    struct ppl_run *r = &j->run;
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    struct gguf_scan_params scan = ev_scan_params(&r->e);
    scan.first_chunk = first;
    scan.max_chunks = n;
    scan.pool = j->pool;
    scan.progress.fn = on_progress;
    scan.progress.user = r;
    p.scan = &scan;
    p.on_chunk.fn = fn;
    p.on_chunk.user = r;
    p.sinks = j->saving;
    p.n_sinks = j->n_saving;
    enum gguf_status st = GGUF_OK;
    if (r->o->ev.layer_major)
        st = ev_layer_major_budget(&r->o->ev, j->own.session, &scan.max_stored,
                                   err);
    if (st == GGUF_OK)
        st = gguf_ppl_run(j->own.session, j->tokens.id, j->tokens.n, &p,
                          &r->total, err);
    r->e.timings = *gguf_session_timings(j->own.session);
    return st;
}

/* Evaluate all chunks. Prints no message on failure. */
static enum gguf_status evaluate_chunks(struct job *j, gguf_ppl_fn *fn,
                                        const char *what,
                                        struct gguf_error *err)
{
    struct ppl_run *r = &j->run;
    ev_begin_work(&r->e, what, "tokens");
    enum gguf_status st =
        evaluate_range(j, r->e.first_chunk, r->e.n_chunks, fn, err);
    ev_end_work(&r->e);
    if (st == GGUF_E_CANCELLED && progress_stopped() && !j->n_saving)
        progress_raise();
    return st;
}

/* The file to name in the message of a failure. Models are mapped, so an error
 * of input or output, or a lack of space, is one of the output. */
static const char *find_failed_file(const struct ppl_options *o,
                                    const struct gguf_baseline_writer *w,
                                    const struct ppl_per_token *per_token,
                                    enum gguf_status st,
                                    const struct gguf_error *err)
{
    const bool writing = st == GGUF_OK || err->status == GGUF_E_IO ||
                         err->status == GGUF_E_NOSPACE;
    const char *file = ppl_per_token_failed_file(per_token);
    return file ? file : w && writing ? o->save_base : o->model;
}

/* Evaluate all chunks and write the files that the options ask for. */
static bool evaluate_and_save(struct job *j)
{
    const struct ppl_options *o = j->run.o;
    struct gguf_baseline_writer_params wp = GGUF_BASELINE_WRITER_PARAMS_INIT;
    struct gguf_baseline_writer *w = NULL;
    struct ppl_per_token *per_token = NULL;
    struct ppl_report *report;
    struct ppl_part *part;
    struct gguf_error err;
    wp.pool = j->pool;
    wp.form = (enum gguf_baseline_form)o->base_form;
    wp.force = o->ev.force;
    if (!ppl_part_open(&part, &j->run, NULL))
        return false;
    if (o->save_base &&
        gguf_baseline_writer_open(&w, o->save_base, &wp, &err) != GGUF_OK) {
        ppl_part_close(part, false);
        return msg_fail(o->save_base, &err);
    }
    bool good = ppl_per_token_open(&per_token, &j->run,
                                   gguf_model_vocab(j->own.model), NULL);
    good = ppl_report_open(&report, &j->run, NULL) && good;
    if (w)
        j->saving[j->n_saving++] = gguf_baseline_writer_sink(w);
    if (per_token)
        j->saving[j->n_saving++] = ppl_per_token_sink(per_token);
    if (report)
        j->saving[j->n_saving++] = ppl_report_sink(report);
    if (part)
        j->saving[j->n_saving++] = ppl_part_sink(part);
    enum gguf_status st = GGUF_OK;
    if (good)
        st = evaluate_chunks(j, on_chunk, "perplexity", &err);
    const char *file = find_failed_file(o, w, per_token, st, &err);
    if (st == GGUF_OK && good && w)
        st = gguf_baseline_writer_commit(w, &err);
    gguf_baseline_writer_close(w);
    good = ppl_per_token_close(per_token, good && st == GGUF_OK);
    good = ppl_report_close(report, good, NULL);
    good = ppl_part_close(part, good);
    if (st == GGUF_E_CANCELLED && progress_stopped())
        progress_raise();
    return st == GGUF_OK ? good : msg_fail(file, &err);
}

/* Callback of ppl_part_share(). */
static bool evaluate_share(void *user, struct ppl_part *part, size_t first,
                           size_t n)
{
    struct job *j = user;
    struct gguf_error err;
    j->saving[0] = ppl_part_sink(part);
    j->n_saving = 1;
    const enum gguf_status st = evaluate_range(j, first, n, NULL, &err);
    j->run.total = (struct gguf_ppl)GGUF_PPL_INIT;
    if (st == GGUF_E_CANCELLED) {
        progress_raise();
        return false; /* another rank printed its error */
    }
    return st == GGUF_OK || msg_fail(j->run.o->model, &err);
}

static bool run_perplexity(struct job *j)
{
    struct ppl_run *r = &j->run;
    if (!r->o->ev.json)
        ev_print_head(&r->e);
    if (r->o->mpi)
        return ppl_part_share(r, NULL, evaluate_share, j, &j->tokens);
    if (!evaluate_and_save(j))
        return false;
    if (r->o->ev.json)
        ppl_print_json(r, stdout);
    else
        ppl_print_end(r);
    return true;
}

int main(int argc, char **argv)
{
    struct ppl_options o;
    struct job j = { .tokens = GGUF_TOKENS_INIT };
    bool good;
    gg_os_program_arguments(&argc, &argv);
    ranks_begin(&argc, &argv);
    const int n = ppl_parse_options(&o, argc, argv);
    ranks_require(o.mpi);
    ppl_clear_rank_outputs(&o);
    o.ev.abort = is_stopped;
    j.run = (struct ppl_run){ .o = &o, .total = GGUF_PPL_INIT };
    if (o.merge_parts) {
        good = ppl_merge(&o, argv + 1, n);
        ppl_options_fini(&o);
        return msg_exit(good ? MSG_DONE : MSG_FAILED);
    }
    ppl_check_local(&o);
    good = ppl_find_texts(&o);
    if (good)
        ppl_check_paths(&o, NULL, 0);
    good = good && (!o.base_is_saved || ppl_side_open_saved(&j.side, &o));
    ppl_set_run(&j.run, &o);
    good = good && open_models(&j, &o) && read_tokens(&j, &o) &&
           load_models(&j, &o) && open_sessions(&j, &o);
    /* code before this point does not check for a caught signal */
    progress_catch_signals();
    good = good && (o.task   ? ppl_run_tasks(&j.run, j.own.session, j.pool)
                    : o.base ? ppl_side_run(&j.side, &j.run, &j.tokens)
                             : run_perplexity(&j));
    ppl_side_close(&j.side);
    ev_model_close(&j.own);
    gguf_pool_destroy(j.pool);
    gguf_tokens_fini(&j.tokens);
    gguf_tasks_destroy(j.run.tasks);
    free(j.run.sums);
    free(j.run.rank_chunks);
    ev_free_texts(&j.run.e);
    ppl_options_fini(&o);
    return msg_exit(good ? MSG_DONE : MSG_FAILED);
}
