/* SPDX-License-Identifier: MIT */
/* bisect.c - replace weights by those of a base, and measure the divergence */
#include "config.h"
#include "eval/bisect_int.h"

#include "base/mem.h"
#include "base/params.h"
#include "eval/window.h"
#include "gguf/collect.h"
#include "run/session_int.h"

struct job {
    struct gguf_bisect *b;
    const struct gguf_bisect_params *p;
    struct gguf_scan_params scan;
    struct gguf_model *model;
    struct gguf_session *s[2]; /* sessions of base and model */
    const gguf_token *token;
    size_t n;
    /* [weights that differ], for swapping back */
    struct gg_model_swapped *was;
    double begin;
    bool over; /* time is over, or a callback ended the run */
};

static double seconds_since(const struct job *j)
{
    return gg_session_clock() - j->begin;
}

static bool is_time_over(struct job *j)
{
    if (j->p->seconds > 0 && seconds_since(j) >= j->p->seconds)
        j->over = true;
    return j->over;
}

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct job *j = user;
    const struct gguf_scan_params *p = &j->scan;
    if (p->progress.fn && p->progress.fn(p->progress.user, done, total))
        j->over = true;
    return is_time_over(j);
}

/* ---- the base ---- */

/* Collect mean squares of the base's inputs. *im is NULL if the chunks are not
 * those that gguf_collect_run() takes. */
static enum gguf_status collect_squares(struct job *j,
                                        struct gguf_imatrix **im,
                                        struct gguf_error *err)
{
    struct gguf_collect_params cp = GGUF_COLLECT_PARAMS_INIT;
    struct gguf_collect_run_params cr = GGUF_COLLECT_RUN_PARAMS_INIT;
    struct gguf_collect *c;
    *im = NULL;
    cp.allocator = j->b->allocator;
    cp.n_ctx = j->scan.n_ctx;
    cp.output = true;
    cr.first_chunk = j->scan.first_chunk;
    cr.max_chunks = j->scan.max_chunks;
    cr.pool = j->scan.pool;
    cr.progress = (struct gguf_progress_callback){ on_progress, j };
    if (j->scan.cut != GGUF_SCAN_CHUNKS || j->scan.text_end)
        /* importance data are collected from chunks side by side */
        return GGUF_OK;
    GG_TRY(gguf_collect_create(&c, &cp, err));
    enum gguf_status st =
        gguf_collect_run(c, j->s[0], j->token, j->n, &cr, err);
    if (st == GGUF_OK)
        st = gguf_collect_result(c, im, err);
    gguf_collect_destroy(c);
    return st;
}

/* ---- a measurement ---- */

static enum gguf_status measure_kld(struct job *j, struct gguf_figure *kld,
                                    struct gguf_error *err)
{
    struct gguf_scan_params sp = j->scan;
    struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
    struct gguf_kld_stats stats = GGUF_KLD_STATS_INIT;
    struct gguf_kld *k;
    kp.allocator = j->b->allocator;
    kp.pool = sp.pool;
    sp.progress = (struct gguf_progress_callback){ on_progress, j };
    GG_TRY(gguf_kld_create(&k, &kp, err));
    const struct gguf_sink *const sinks[] = { gguf_kld_sink(k) };
    enum gguf_status st =
        gguf_scan_run_models(j->s, 2, j->token, j->n, &sp, sinks, 1, err);
    if (st == GGUF_OK)
        st = gguf_kld_means(k, &stats, err);
    *kld = stats.kld;
    gguf_kld_destroy(k);
    return st;
}

static void swap_back(struct job *j, size_t n)
{
    while (n)
        gg_model_swap_back(&j->was[--n]);
    gg_session_forget_graphs(j->s[1]);
}

static enum gguf_status swap_weights(struct job *j,
                                     const struct gg_bisect_group *g,
                                     struct gguf_error *err)
{
    const struct gg_bisect_weight *w = &j->b->list[g->first];
    for (size_t i = 0; i < g->entry.n_weights; i++) {
        const enum gguf_status st = gg_model_swap(&j->was[i], j->model, w[i].i,
                                                  j->s[0]->model, w[i].k, err);
        if (st != GGUF_OK) {
            swap_back(j, i);
            return st;
        }
    }
    gg_session_forget_graphs(j->s[1]);
    return GGUF_OK;
}

/* Measure with a group's weights replaced. *done is false if the run ended
 * meanwhile. */
static enum gguf_status measure_with(struct job *j, struct gg_bisect_group *g,
                                     bool *done, struct gguf_error *err)
{
    struct gguf_figure kld;
    GG_TRY(swap_weights(j, g, err));
    gg_output_cache_replay(j->s[0]);
    const enum gguf_status st = measure_kld(j, &kld, err);
    swap_back(j, g->entry.n_weights);
    *done = st == GGUF_OK;
    if (st == GGUF_E_CANCELLED && j->over)
        return GGUF_OK;
    if (st != GGUF_OK)
        return st;
    g->entry.kld = kld;
    g->entry.gain = j->b->kld.value - kld.value;
    g->entry.measured = true;
    j->b->n_measured++;
    return GGUF_OK;
}

static void report_entry(struct job *j, const struct gguf_bisect_entry *e,
                         size_t n)
{
    if (j->p->on_done.fn &&
        j->p->on_done.fn(j->p->on_done.user, j->b, e, j->b->n_measured, n))
        j->over = true;
}

static enum gguf_status measure_all(struct job *j, struct gguf_error *err)
{
    struct gguf_bisect *b = j->b;
    const size_t all = gg_bisect_max_measurements(b, j->p->by);
    const size_t n = j->p->max_weights ? GG_MIN(j->p->max_weights, all) : all;
    struct gg_bisect_group *g;
    bool done = true;
    gg_output_cache_record(j->s[0]);
    GG_TRY(measure_kld(j, &b->kld, err));
    report_entry(j, NULL, n);
    while (done && b->n_measured < n && !is_time_over(j) &&
           (g = gg_bisect_next_group(b, j->p->by)) != NULL) {
        GG_TRY(measure_with(j, g, &done, err));
        if (done)
            report_entry(j, &g->entry, n);
    }
    return GGUF_OK;
}

/* ---- the run ---- */

static enum gguf_status check_params(const struct job *j,
                                     struct gguf_error *err)
{
    if (!j->s[0] || !j->s[1] || j->s[0] == j->s[1])
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "bisecting needs two different sessions");
    if (j->model != j->s[1]->given)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "the session has another model than the one given");
    if (j->s[0]->given == j->model)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the model is its own base");
    if ((unsigned)j->p->by > GGUF_BISECT_HALVES)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "groups of kind %u, must be 0 to 3",
                            (unsigned)j->p->by);
    return GGUF_OK;
}

static enum gguf_status measure_groups(struct job *j, struct gguf_error *err)
{
    struct gguf_imatrix *im;
    GG_TRY(collect_squares(j, &im, err));
    enum gguf_status st = gg_bisect_find_weights(
        j->b, j->model, j->s[0]->model, im, j->scan.pool, err);
    gguf_imatrix_destroy(im);
    if (st != GGUF_OK)
        return st;
    GG_TRY(gg_bisect_make_groups(j->b, j->p->by, err));
    j->was = gg_mem_alloc_zero(j->b->allocator, j->b->n + 1, sizeof *j->was);
    if (!j->was)
        return gg_error_set_nomem(err, (j->b->n + 1) * sizeof *j->was);
    st = measure_all(j, err);
    gg_mem_free(j->b->allocator, j->was);
    gg_bisect_sort(j->b);
    return st;
}

enum gguf_status gguf_bisect_run(struct gguf_bisect **out,
                                 struct gguf_model *model,
                                 struct gguf_session *session,
                                 struct gguf_session *base,
                                 const gguf_token *token, size_t n,
                                 const struct gguf_bisect_params *params,
                                 struct gguf_error *err)
{
    struct gguf_bisect_params p = GGUF_BISECT_PARAMS_INIT;
    struct job j = { .p = &p,
                     .model = model,
                     .s = { base, session },
                     .token = token,
                     .n = n,
                     .begin = gg_session_clock() };
    *out = NULL;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_bisect_params", err));
    GG_TRY(gg_window_take_params(&j.scan, p.scan, err));
    GG_TRY(check_params(&j, err));
    j.b = gg_mem_alloc_zero(p.allocator, 1, sizeof *j.b);
    if (!j.b)
        return gg_error_set_nomem(err, sizeof *j.b);
    j.b->allocator = p.allocator;
    const enum gguf_status st = measure_groups(&j, err);
    gg_output_cache_stop(base);
    if (st == GGUF_OK)
        *out = j.b;
    else
        gguf_bisect_destroy(j.b);
    return st;
}

void gguf_bisect_destroy(struct gguf_bisect *b)
{
    if (!b)
        return;
    gg_mem_free(b->allocator, b->group);
    gg_mem_free(b->allocator, b->list);
    gg_mem_free(b->allocator, b);
}

struct gguf_figure gguf_bisect_kld(const struct gguf_bisect *b)
{
    return b->kld;
}

size_t gguf_bisect_n_entries(const struct gguf_bisect *b)
{
    return b->n_groups;
}

size_t gguf_bisect_n_measured(const struct gguf_bisect *b)
{
    return b->n_measured;
}

size_t gguf_bisect_n_weights(const struct gguf_bisect *b)
{
    return b->n;
}

size_t gguf_bisect_n_left_out(const struct gguf_bisect *b)
{
    return b->n_left_out;
}

const struct gguf_bisect_entry *gguf_bisect_entry(const struct gguf_bisect *b,
                                                  size_t i)
{
    return i < b->n_groups ? &b->group[i].entry : NULL;
}

const struct gguf_bisect_weight *
gguf_bisect_weight(const struct gguf_bisect *b, size_t i, size_t k)
{
    return i < b->n_groups && k < b->group[i].entry.n_weights
               ? &b->list[b->group[i].first + k].w
               : NULL;
}
