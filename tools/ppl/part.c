/* SPDX-License-Identifier: MIT */
/* part.c - parts: records of chunks, saved in a file or sent to rank 0
 *
 * The sink of a part runs after the other sinks and records their results for
 * each token.
 */
#include "config.h"
#include "tools/ppl/part.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"
#include "tools/common/ranks.h"
#include "base/os/os.h"

#include <stdlib.h>
#include <string.h>

/* ---- measures ---- */

#define TASKS                                                                 \
    "tasks", .n_heads = PPL_TASK_HEADS, .n_values = PPL_TASK_VALUES,          \
             .print = ppl_part_print_tasks

const struct ppl_measure ppl_measures[] = {
    { "perplexity", "tokens", .n_heads = PPL_HEADS, .n_values = 1,
      .print = ppl_part_print_text },
    { "divergence", "tokens", .side = true, .n_heads = PPL_HEADS,
      .n_values = PPL_VALUES, .print = ppl_part_print_side },
    { "hellaswag", TASKS, .task = 1 + GGUF_TASK_HELLASWAG },
    { "winogrande", TASKS, .task = 1 + GGUF_TASK_WINOGRANDE },
    { "multiple-choice", TASKS, .task = 1 + GGUF_TASK_CHOICE },
    { .name = NULL },
};

static const struct ppl_measure *find_measure(const struct ppl_options *o,
                                              const struct ppl_side *side)
{
    const struct ppl_measure *m = ppl_measures;
    while (m->task != o->task || m->side != (side != NULL))
        m++;
    return m;
}

/* ---- the sink ---- */

static enum gguf_status begin_scan(void *user,
                                   const struct gguf_scan_info *info,
                                   struct gguf_error *err)
{
    struct ppl_part *p = user;
    /* an earlier scan may have begun the part */
    return p->part ? GGUF_OK : ppl_part_begin_text(p, info, err);
}

static enum gguf_status add_rows(void *user, const struct gguf_scan_rows *rows,
                                 struct gguf_error *err)
{
    struct ppl_part *p = user;
    uint64_t n_bytes, n_words;
    const enum gguf_status st =
        gguf_scan_count_text(rows, &n_bytes, &n_words, err);
    if (st != GGUF_OK)
        return st;
    if (!p->n_rows) {
        p->head[PPL_FIRST] = rows->first;
        p->head[PPL_AT] = (double)rows->at;
    }
    p->head[PPL_BYTES] += (double)n_bytes;
    p->head[PPL_WORDS] += (double)n_words;
    p->value = msg_grow(p->value, &p->room, p->n + rows->n * p->n_values,
                        sizeof *p->value);
    p->n_rows += rows->n;
    for (uint32_t i = 0; i < rows->n; i++) {
        if (!p->side)
            p->value[p->n++] = gguf_scan_nll(rows)[i];
        for (size_t m = 0; p->side && m < p->side->n; m++) {
            const struct gguf_kld_token *t =
                ppl_side_last_tokens(p->side, m, rows->n) + i;
            const double v[PPL_VALUES] = { t->x, t->x_base, t->kld,
                                           t->same_top };
            memcpy(p->value + p->n, v, sizeof v);
            p->n += PPL_VALUES;
        }
    }
    return GGUF_OK;
}

static enum gguf_status end_chunk(void *user, size_t chunk,
                                  struct gguf_error *err)
{
    struct ppl_part *p = user;
    const enum gguf_status st =
        gguf_part_add_chunk(p->part, chunk, p->head, p->value, p->n_rows, err);
    p->n = p->n_rows = 0;
    memset(p->head, 0, sizeof p->head);
    return st;
}

/* ---- the object ---- */

bool ppl_part_open(struct ppl_part **out, struct ppl_run *r,
                   const struct ppl_side *side)
{
    *out = NULL;
    if (!r->o->part && !r->o->mpi)
        return true;
    if (!paths_can_write(r->o->part))
        return false;
    if (r->o->part && !r->o->ev.force && gg_os_find(r->o->part) == 0)
        return msg_error(r->o->part, "exists (--force replaces it)");
    struct ppl_part *p = *out = msg_must(calloc(1, sizeof *p));
    p->run = r;
    p->side = side;
    p->measure = find_measure(r->o, side);
    p->n_values = p->measure->n_values * (side ? side->n : 1);
    p->sink = (struct gguf_sink)GGUF_SINK_INIT;
    p->sink.user = p;
    p->sink.begin = begin_scan;
    p->sink.rows = add_rows;
    p->sink.chunk = end_chunk;
    return true;
}

enum gguf_status ppl_part_create(struct ppl_part *p, size_t n_chunks,
                                 struct gguf_error *err)
{
    const enum gguf_status st = gguf_part_create(
        &p->part, n_chunks, p->measure->n_heads, p->n_values, NULL, err);
    return st == GGUF_OK ? gguf_part_set_setting(p->part, "measure",
                                                 p->measure->name, err)
                         : st;
}

const struct gguf_sink *ppl_part_sink(struct ppl_part *p)
{
    return &p->sink;
}

static void destroy_part(struct ppl_part *p)
{
    gguf_part_destroy(p->part);
    free(p->value);
    free(p);
}

static bool save_part(const struct ppl_part *p)
{
    struct gguf_error err;
    char seconds[32];
    const struct ppl_options *o = p->run->o;
    if (!o->part)
        return true;
    json_format_f64(seconds, p->run->e.seconds);
    if (gguf_part_set_note(p->part, "seconds", seconds, &err) != GGUF_OK ||
        gguf_part_save(p->part, o->part, o->ev.force, &err) != GGUF_OK)
        return msg_fail(o->part, &err);
    if (!o->ev.quiet)
        msg_info(o->part, "part, %zu of %zu %s", gguf_part_n_done(p->part),
                 gguf_part_n_chunks(p->part),
                 p->measure->task ? p->measure->unit : "chunks");
    return true;
}

bool ppl_part_close(struct ppl_part *p, bool good)
{
    if (!p)
        return good;
    good = good && save_part(p);
    destroy_part(p);
    return good;
}

/* ---- sharing with other ranks ---- */

struct share {
    struct ppl_run *run;
    struct ppl_part *part;
    ppl_chunks_fn *evaluate;
    void *user;
};

static bool evaluate_range(void *user, size_t first, size_t n)
{
    const struct share *s = user;
    return s->evaluate(s->user, s->part, first, n);
}

static struct gguf_part *get_part(void *user)
{
    return ((struct share *)user)->part->part;
}

int ppl_report_share_progress(struct ppl_run *r, uint64_t done)
{
    const uint64_t chunk = r->o->task ? 1 : r->o->ev.n_ctx;
    r->n_done_tokens = r->e.n_chunks * chunk;
    for (size_t i = 0; i < r->n_ranks; i++)
        done += r->rank_chunks[i] * chunk;
    return !ranks_poll() || progress_report(&r->e.bar, done, r->n_done_tokens);
}

static void show_waiting(void *user)
{
    (void)ppl_report_share_progress(((struct share *)user)->run, 0);
}

/* Clear the sums that sinks made of this rank's share: rank 0 makes those of
 * all shares from records. */
static void clear_scores(struct ppl_run *r, struct ppl_side *side)
{
    for (size_t i = 0; side && i < side->n; i++) {
        gguf_kld_destroy(side->kld[i]);
        side->kld[i] = NULL;
    }
    r->n_bytes = r->n_words = 0;
    for (size_t i = 0; i < r->e.n_texts; i++)
        r->e.texts[i].sums = (struct gguf_ppl)GGUF_PPL_INIT;
}

/* ---- outputs ---- */

static void abort_outputs(struct ppl_outputs *x)
{
    (void)ppl_per_token_close(x->per_token, false);
    (void)ppl_report_close(x->pages, false, NULL);
    x->per_token = NULL;
    x->pages = NULL;
}

bool ppl_outputs_open(struct ppl_outputs *x, const struct ppl_run *r,
                      const struct gguf_vocab *vocab,
                      const struct ppl_side *side)
{
    bool good = ppl_per_token_open(&x->per_token, r, vocab, side);
    good = ppl_report_open(&x->pages, r, side) && good;
    if (!good)
        abort_outputs(x);
    return good;
}

/* ---- ranks ---- */

bool ppl_part_share(struct ppl_run *r, struct ppl_side *side,
                    ppl_chunks_fn *evaluate, void *user,
                    const struct gguf_tokens *tokens)
{
    struct share s = { .run = r, .evaluate = evaluate, .user = user };
    struct ppl_outputs x = { .tokens = tokens };
    const struct ev_model *m = side ? side->model[0] : r->e.own;
    if (!ppl_part_open(&s.part, r, side))
        return false;
    if (!ppl_outputs_open(&x, r, gguf_model_vocab(m->model), side))
        return ppl_part_close(s.part, false);
    r->n_ranks = ranks_count();
    r->rank_chunks = msg_must(calloc(r->n_ranks + 1, sizeof *r->rank_chunks));
    const struct ranks_work work = { .first = r->e.first_chunk,
                                     .n = r->e.n_chunks,
                                     .together = r->o->task ? 1 : r->e.n_seq,
                                     .done = r->rank_chunks,
                                     .evaluate = evaluate_range,
                                     .part = get_part,
                                     .waiting = show_waiting,
                                     .user = &s };
    ev_begin_work(&r->e, s.part->measure->name, s.part->measure->unit);
    bool good = ranks_share(&work);
    ev_end_work(&r->e);
    clear_scores(r, side);
    good = good && save_part(s.part);
    if (good && !ranks_is_worker())
        good = s.part->measure->print(r, side, s.part->part, &x);
    else
        abort_outputs(&x);
    destroy_part(s.part);
    return good;
}
