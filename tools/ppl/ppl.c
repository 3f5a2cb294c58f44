/* SPDX-License-Identifier: MIT */
/* gguf-ppl - perplexity of a model on a text */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"
#include "tools/common/ranks.h"
#include "tools/common/stored.h"
#include "tools/common/text.h"
#include "tools/common/textfile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the run ---- */

/* What is open, torn down in this order. */
struct job {
    char *text;
    struct ppl_model own; /* or the base, with others beside it */
    struct ppl_side side;
    const struct gguf_sink *saving[4]; /* that write files, */
    size_t n_saving;                   /* of this run */
    struct gguf_pool *pool;
    struct gguf_tokens tokens;
    struct ppl_ids ids;
    struct ppl_run run;
    struct ppl_compare compare;
};

static bool fail_file(const char *file, const struct gguf_error *err)
{
    msg_fail(file, err);
    return false;
}

static bool open_model(struct job *j, const struct ppl_options *o)
{
    struct gguf_error err;
    if (!ppl_pool_open(&j->pool, o) ||
        !ppl_model_open(&j->own,
                        o->base && !o->base_is_saved ? o->base : o->model, o))
        return false;
    j->run.own = &j->own;
    j->run.model = j->own.info;
    j->run.add_bos = !o->tokens && !ppl_scan_params(o).no_bos &&
                     gguf_vocab_add_bos(gguf_model_vocab(j->own.model));
    /* before a text is waited for: can the vocabulary cut one? */
    if (!o->tokens && !ppl_only_prints(o) &&
        gguf_vocab_tokenize(gguf_model_vocab(j->own.model), "", 0,
                            GGUF_TOKENIZE_ADD_SPECIAL, &j->tokens,
                            &err) != GGUF_OK)
        return fail_file(j->own.path, &err);
    j->tokens.n = 0;
    return ((o->base && !o->base_is_saved) ||
            ppl_loras_open(&j->own.loras, o, j->own.model)) &&
           (!o->base || ppl_side_open(&j->side, o, &j->own));
}

/* The weights of all models, once the texts are known to be good. */
static bool load_models(struct job *j, const struct ppl_options *o)
{
    return ppl_weights(&j->own, j->pool, o) &&
           (!o->base || ppl_side_load(&j->side, o, j->pool));
}

/* Chunks of the tokens, those that are evaluated. */
static bool plan_chunks(struct job *j, const struct ppl_options *o)
{
    size_t n = j->run.n_texts ? ppl_all_chunks(&j->run) : 0;
    if (j->side.saved) { /* which may have one chunk */
        n = j->tokens.n / o->n_ctx;
        if (n > gguf_baseline_n_chunks(j->side.saved))
            n = gguf_baseline_n_chunks(j->side.saved);
    }
    j->run.n_tokens = j->tokens.n;
    if (o->first_chunk >= n) {
        msg_error(o->text ? o->text : o->base,
                  "there %s %zu chunk%s: none from %" PRIu64
                  " on, counted from 0",
                  n == 1 ? "is" : "are", n, text_s(n), o->first_chunk);
        return false;
    }
    n -= (size_t)o->first_chunk;
    j->run.first_chunk = (size_t)o->first_chunk;
    j->run.n_chunks = o->n_chunks && o->n_chunks < n ? (size_t)o->n_chunks : n;
    const struct gguf_scan_params p = ppl_scan_params(o);
    j->run.n_scored_chunk = gguf_scan_max_rows(ppl_longest_text(&j->run), &p);
    j->run.sums = msg_must(calloc(j->run.n_chunks, sizeof *j->run.sums));
    return true;
}

static bool read_tokens(struct job *j, const struct ppl_options *o)
{
    if (o->tokens)
        return ppl_read_ids(o->tokens, o->max_text, j->run.model.n_vocab,
                            &j->ids) &&
               ppl_check_ids(&j->run, &j->ids);
    const struct gguf_vocab *v = gguf_model_vocab(j->own.model);
    if (o->task)
        return ppl_read_tasks(&j->run, v);
    if (!o->text)
        return ppl_side_tokens(&j->side, o, &j->tokens) && plan_chunks(j, o);
    if (o->embeddings)
        return textfile_read(o->text, o->max_text, &j->text,
                             &j->run.text_size) &&
               ppl_digest_text(&j->run, j->text, j->run.text_size);
    if (!ppl_read_texts(&j->run, v, &j->tokens))
        return false;
    return plan_chunks(j, o);
}

static bool open_session(struct job *j, const struct ppl_options *o)
{
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    uint32_t n_batch = o->n_batch < o->n_ubatch ? o->n_batch : o->n_ubatch;
    uint32_t n_seq = n_batch / o->n_ctx;
    if (n_seq > j->run.n_chunks)
        n_seq = (uint32_t)j->run.n_chunks;
    sp.n_ubatch = o->tokens ? n_batch : o->n_ubatch;
    if (o->tokens && (j->run.model.is_whole || j->run.model.encodes_first))
        sp.n_ubatch = (uint32_t)j->ids.n; /* which -c bounds */
    if (o->embeddings && (j->run.model.is_whole || j->run.model.encodes_first))
        sp.n_ubatch = o->n_ctx;
    if (!ppl_model_backends(&j->own, o, j->pool))
        return false;
    sp.user = &j->run;
    if (o->compare) {
        j->compare.o = o;
        j->compare.backends = &j->own.backends;
        sp.on_graph = ppl_compare_graph;
        sp.user = &j->compare;
    }
    if (!o->task)
        j->run.n_seq = n_seq ? n_seq : 1;
    sp.n_seq = j->run.n_seq;
    sp.n_ctx = o->task ? (uint32_t)j->run.n_tokens : 0;
    return ppl_model_start(&j->own, o, &sp) &&
           (!o->base || ppl_side_start(&j->side, o, &sp, j->pool));
}

static int on_chunk(void *user, size_t chunk, size_t n_chunks,
                    const struct gguf_ppl *one, const struct gguf_ppl *all)
{
    struct ppl_run *r = user;
    (void)n_chunks;
    r->n_done = chunk - r->first_chunk + 1;
    r->sums[r->n_done - 1] = *one;
    r->total = *all;
    ppl_add_to_text(r, chunk, one);
    char value[32], error[32];
    snprintf(r->bar.note, sizeof r->bar.note, "%s +/- %s",
             text_figure(value, gguf_ppl_value(all), 4),
             text_figure(error, gguf_ppl_error(all), 2));
    if (!r->o->json)
        ppl_print_chunk(r);
    return 0;
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    struct ppl_run *r = user;
    if (r->o->mpi)
        return ppl_share_progress(r, done);
    r->n_done_tokens = done;
    return progress_report(&r->bar, done, total);
}

/* n chunks from first on, with the sinks that save; sums to r's total. */
static enum gguf_status evaluate_some(struct job *j, size_t first, size_t n,
                                      gguf_ppl_fn *fn, struct gguf_error *err)
{
    struct ppl_run *r = &j->run;
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    struct gguf_scan_params scan = ppl_run_params(r, first, n);
    scan.pool = j->pool;
    scan.progress = on_progress;
    scan.user = r;
    p.scan = &scan;
    p.on_chunk = fn;
    p.user = r;
    p.sinks = j->saving;
    p.n_sinks = j->n_saving;
    enum gguf_status st = GGUF_OK;
    if (r->o->layer_major)
        st = stored_room(j->own.session, r->o->max_memory, &scan.max_stored,
                         err);
    if (st == GGUF_OK)
        st = gguf_ppl_run(j->own.session, j->tokens.id, j->tokens.n, &p,
                          &r->total, err);
    r->timings = *gguf_session_get_timings(j->own.session);
    return st;
}

/* All chunks; what is printed of it is the caller's business. */
static enum gguf_status evaluate_chunks(struct job *j, gguf_ppl_fn *fn,
                                        const char *what,
                                        struct gguf_error *err)
{
    struct ppl_run *r = &j->run;
    progress_init(&r->bar, what, "tokens", r->o->quiet);
    double begin = progress_clock();
    enum gguf_status st =
        evaluate_some(j, r->first_chunk, r->n_chunks, fn, err);
    r->seconds = progress_clock() - begin;
    progress_clear(&r->bar);
    if (st == GGUF_E_CANCELLED && progress_stopped() && !j->n_saving)
        progress_raise();
    return st;
}

/* The file that a failure is of, or one of ending. Models are mapped: what is
 * written, or has no room, is an output. */
static const char *blamed_file(const struct ppl_options *o,
                               const struct gguf_baseline_writer *w,
                               const struct ppl_each *each,
                               enum gguf_status st,
                               const struct gguf_error *err)
{
    const bool writing = st == GGUF_OK || err->status == GGUF_E_IO ||
                         err->status == GGUF_E_NOSPACE;
    const char *file = ppl_each_failed(each);
    return file ? file : w && writing ? o->save_base : o->model;
}

/* Evaluate, and save on the way what is asked for. */
static bool evaluate_and_save(struct job *j)
{
    const struct ppl_options *o = j->run.o;
    struct gguf_baseline_writer *w = NULL;
    struct ppl_each *each = NULL;
    struct ppl_report *report;
    struct ppl_part *part;
    struct gguf_error err;
    if (!ppl_part_open(&part, &j->run, NULL))
        return false;
    if (o->save_base &&
        gguf_baseline_writer_create(&w, o->save_base, o->force, j->pool, NULL,
                                    &err) != GGUF_OK) {
        ppl_part_close(part, false);
        return fail_file(o->save_base, &err);
    }
    bool good =
        ppl_each_open(&each, &j->run, gguf_model_vocab(j->own.model), NULL);
    good = ppl_report_open(&report, &j->run, NULL) && good;
    if (w && gguf_baseline_writer_set_form(
                 w, (enum gguf_baseline_form)o->base_form, &err) != GGUF_OK)
        good = fail_file(o->save_base, &err);
    if (w)
        j->saving[j->n_saving++] = gguf_baseline_writer_sink(w);
    if (each)
        j->saving[j->n_saving++] = ppl_each_sink(each);
    if (report)
        j->saving[j->n_saving++] = ppl_report_sink(report);
    if (part)
        j->saving[j->n_saving++] = ppl_part_sink(part);
    enum gguf_status st = GGUF_OK;
    if (good)
        st = evaluate_chunks(j, on_chunk, "perplexity", &err);
    const char *file = blamed_file(o, w, each, st, &err);
    if (st == GGUF_OK && good && w)
        st = gguf_baseline_writer_commit(w, &err);
    gguf_baseline_writer_destroy(w);
    good = ppl_each_close(each, good && st == GGUF_OK);
    good = ppl_report_close(report, good, NULL);
    good = ppl_part_close(part, good);
    if (st == GGUF_E_CANCELLED && progress_stopped())
        progress_raise();
    return st == GGUF_OK ? good : fail_file(file, &err);
}

/* For ppl_part_share. */
static bool evaluate_share(void *user, struct ppl_part *part, size_t first,
                           size_t n)
{
    struct job *j = user;
    struct gguf_error err;
    j->saving[0] = ppl_part_sink(part);
    j->n_saving = 1;
    const enum gguf_status st = evaluate_some(j, first, n, NULL, &err);
    j->run.total = (struct gguf_ppl)GGUF_PPL_INIT;
    if (st == GGUF_E_CANCELLED) {
        progress_raise();
        return false; /* another rank's error, which was said */
    }
    return st == GGUF_OK || fail_file(j->run.o->model, &err);
}

static bool run_perplexity(struct job *j)
{
    struct ppl_run *r = &j->run;
    if (r->o->embeddings)
        return ppl_save_embeddings(r, j->own.session, j->text);
    if (!r->o->json)
        ppl_print_head(r);
    if (r->o->mpi)
        return ppl_part_share(r, NULL, evaluate_share, j, &j->tokens);
    if (!evaluate_and_save(j))
        return false;
    if (r->o->json)
        ppl_print_json(r, stdout);
    else
        ppl_print_end(r);
    if (!r->o->json)
        ppl_profile_print(j->own.profile);
    return true;
}

/* Node by node; a difference is a failure. */
static bool compare_backends(struct job *j)
{
    struct ppl_compare *c = &j->compare;
    struct gguf_error err;
    if (evaluate_chunks(j, NULL, "comparing", &err) != GGUF_OK)
        return fail_file(j->run.o->model, c->err.status ? &c->err : &err);
    ppl_print_compare(c);
    return !c->first.graph;
}

static void fini_options(struct ppl_options *o)
{
    free(o->self);
    opt_list_fini(&o->models);
    opt_list_fini(&o->text_args);
    ppl_free_files(o);
    opt_list_fini(&o->kv_texts);
    opt_list_fini(&o->lora_texts);
    opt_list_fini(&o->control_texts);
    opt_list_fini(&o->places);
    scaled_fini(&o->loras);
    scaled_fini(&o->controls);
}

int main(int argc, char **argv)
{
    struct ppl_options o;
    ranks_begin(&argc, &argv);
    const int n = ppl_parse_options(&o, argc, argv);
    ranks_settle(o.mpi);
    ppl_settle_rank(&o);
    if (o.merge_parts) {
        const bool merged = ppl_merge(&o, argv + 1, n);
        fini_options(&o);
        return msg_exit(merged ? MSG_DONE : MSG_FAILED);
    }
    ppl_check_local(&o);
    if (!ppl_find_texts(&o)) {
        fini_options(&o);
        return msg_exit(MSG_FAILED);
    }
    if (o.tokenize || o.detokenize) {
        const bool done = o.tokenize ? ppl_tokenize(&o) : ppl_detokenize(&o);
        fini_options(&o);
        return msg_exit(done ? MSG_DONE : MSG_FAILED);
    }
    ppl_check_paths(&o, NULL, 0);
    struct job j = { .tokens = GGUF_TOKENS_INIT,
                     .run = { .o = &o, .total = GGUF_PPL_INIT } };
    bool good =
        (!o.base_is_saved || ppl_side_saved(&j.side, &o)) &&
        open_model(&j, &o) && (ppl_only_prints(&o) || read_tokens(&j, &o)) &&
        load_models(&j, &o) && (ppl_only_prints(&o) || open_session(&j, &o));
    /* nothing before this point checks for a caught signal */
    progress_catch_signals();
    good = good && (ppl_only_prints(&o) ? ppl_print_graphs(&j.own, &o, j.pool)
                    : o.logits  ? ppl_save_rows(&j.run, j.own.session, &j.ids)
                    : o.task    ? ppl_run_tasks(&j.run, j.own.session, j.pool)
                    : o.compare ? compare_backends(&j)
                    : o.bisect  ? ppl_bisect_run(&j.side, &j.run, &j.tokens)
                    : o.layers  ? ppl_layers_run(&j.side, &j.run, &j.tokens)
                    : o.base    ? ppl_side_run(&j.side, &j.run, &j.tokens)
                                : run_perplexity(&j));
    ppl_side_close(&j.side);
    ppl_model_close(&j.own);
    gguf_pool_destroy(j.pool);
    gguf_tokens_fini(&j.tokens);
    gguf_tasks_destroy(j.run.tasks);
    free(j.ids.id);
    free(j.text);
    free(j.run.sums);
    free(j.run.rank_chunks);
    ppl_free_texts(&j.run);
    fini_options(&o);
    return msg_exit(good ? MSG_DONE : MSG_FAILED);
}
