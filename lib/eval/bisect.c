/* bisect.c - one weight after another taken from a base, and what that gives */
#include "config.h"
#include "eval/bisect.h"

#include "base/mem.h"
#include "base/params.h"
#include "gguf/collect.h"
#include "run/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct gguf_bisect *b;
    const struct gguf_bisect_params *p;
    struct gguf_scan_params scan;
    struct gguf_model *model;
    struct gguf_session *s[2]; /* the base, the model */
    const gguf_token *token;
    size_t n;
    double begin;
    bool over; /* the time is, or a callback said so */
};

static double seconds(const struct job *j)
{
    return gg_session_clock() - j->begin;
}

static bool is_over(struct job *j)
{
    if (j->p->seconds > 0 && seconds(j) >= j->p->seconds)
        j->over = true;
    return j->over;
}

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    struct job *j = user;
    const struct gguf_scan_params *p = &j->scan;
    if (p->progress && p->progress(p->user, done, total))
        j->over = true;
    return is_over(j);
}

/* ---- the base ---- */

/* Mean squares of its inputs in the chunks; *im NULL: there are none. */
static enum gguf_status collect(struct job *j, struct gguf_imatrix **im,
                                struct gguf_error *err)
{
    struct gguf_collect_params cp = GGUF_COLLECT_PARAMS_INIT;
    struct gguf_collect_run cr = GGUF_COLLECT_RUN_INIT;
    struct gguf_collect *c;
    *im = NULL;
    cp.allocator = j->b->allocator;
    cp.n_ctx = j->scan.n_ctx;
    cp.output = true;
    cr.first_chunk = j->scan.first_chunk;
    cr.max_chunks = j->scan.max_chunks;
    cr.pool = j->scan.pool;
    cr.progress = on_progress;
    cr.user = j;
    if (j->scan.cut != GGUF_SCAN_CHUNKS || j->scan.text_end)
        return GGUF_OK; /* other chunks than those that are collected */
    GG_TRY(gguf_collect_create(&c, &cp, err));
    enum gguf_status st =
        gguf_collect_run(c, j->s[0], j->token, j->n, &cr, err);
    if (st == GGUF_OK)
        st = gguf_collect_result(c, im, err);
    gguf_collect_destroy(c);
    return st;
}

/* ---- a measurement ---- */

static enum gguf_status measure(struct job *j, struct gguf_figure *kld,
                                struct gguf_error *err)
{
    struct gguf_scan_params sp = j->scan;
    struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
    struct gguf_kld_stats stats = GGUF_KLD_STATS_INIT;
    struct gguf_kld *k;
    kp.allocator = j->b->allocator;
    kp.pool = sp.pool;
    sp.progress = on_progress;
    sp.user = j;
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

/* With weight w of the base; *done is false where the time was over before. */
static enum gguf_status measure_with(struct job *j, struct gg_bisect_weight *w,
                                     bool *done, struct gguf_error *err)
{
    struct gg_model_swapped was;
    struct gguf_figure kld;
    GG_TRY(gg_model_swap(&was, j->model, w->i, j->s[0]->model, w->k, err));
    gg_session_forget_graphs(j->s[1]);
    gg_memo_replay(j->s[0]);
    const enum gguf_status st = measure(j, &kld, err);
    gg_model_swap_back(&was);
    gg_session_forget_graphs(j->s[1]);
    *done = st == GGUF_OK;
    if (st == GGUF_E_CANCELLED && j->over)
        return GGUF_OK;
    if (st != GGUF_OK)
        return st;
    w->entry.kld = kld;
    w->entry.gain = j->b->kld.value - kld.value;
    w->entry.measured = true;
    j->b->n_measured++;
    return GGUF_OK;
}

static void report(struct job *j, const struct gguf_bisect_entry *e, size_t n)
{
    if (j->p->on_done &&
        j->p->on_done(j->p->user, j->b, e, j->b->n_measured, n))
        j->over = true;
}

static enum gguf_status measure_all(struct job *j, struct gguf_error *err)
{
    struct gguf_bisect *b = j->b;
    const size_t n =
        j->p->max_weights ? GG_MIN(j->p->max_weights, b->n) : b->n;
    bool done = true;
    gg_memo_record(j->s[0]);
    GG_TRY(measure(j, &b->kld, err));
    report(j, NULL, n);
    for (size_t i = 0; i < n && done && !is_over(j); i++) {
        GG_TRY(measure_with(j, &b->list[i], &done, err));
        if (done)
            report(j, &b->list[i].entry, n);
    }
    return GGUF_OK;
}

/* ---- in order ---- */

static int by_name(const struct gguf_bisect_entry *a,
                   const struct gguf_bisect_entry *b)
{
    return strcmp(a->name, b->name);
}

static int by_suspicion(const void *a, const void *b)
{
    const struct gguf_bisect_entry *x =
        &((const struct gg_bisect_weight *)a)->entry;
    const struct gguf_bisect_entry *y =
        &((const struct gg_bisect_weight *)b)->entry;
    if (x->suspicion == y->suspicion)
        return by_name(x, y);
    /* what is not a number comes first */
    return x->suspicion > y->suspicion || isnan(x->suspicion) ? -1 : 1;
}

/* Of a byte; of one that takes none, or less, no finite number. */
static double gain_per_byte(const struct gguf_bisect_entry *e)
{
    if (e->base_size > e->size)
        return e->gain / (double)(e->base_size - e->size);
    return e->gain > 0 ? (double)INFINITY : -(double)INFINITY;
}

static int by_gain(const void *a, const void *b)
{
    const struct gguf_bisect_entry *x =
        &((const struct gg_bisect_weight *)a)->entry;
    const struct gguf_bisect_entry *y =
        &((const struct gg_bisect_weight *)b)->entry;
    if (x->measured != y->measured)
        return x->measured ? -1 : 1;
    if (!x->measured)
        return by_suspicion(a, b);
    const double p = gain_per_byte(x), q = gain_per_byte(y);
    if (p != q)
        return p > q ? -1 : 1;
    return x->gain != y->gain ? (x->gain > y->gain ? -1 : 1) : by_name(x, y);
}

static void sort(struct gguf_bisect *b,
                 int (*order)(const void *, const void *))
{
    if (b->n)
        qsort(b->list, b->n, sizeof *b->list, order);
    for (size_t i = 0; i < b->n; i++)
        b->list[i].entry.name = b->list[i].name;
}

/* ---- all of it ---- */

static enum gguf_status check(const struct job *j, struct gguf_error *err)
{
    if (!j->s[0] || !j->s[1] || j->s[0] == j->s[1])
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "weights are exchanged between two sessions' "
                            "models");
    if (j->model != j->s[1]->given)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the session is of another model");
    if (j->s[0]->given == j->model)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the model is its own base");
    return GGUF_OK;
}

static enum gguf_status run(struct job *j, struct gguf_error *err)
{
    struct gguf_imatrix *im;
    GG_TRY(collect(j, &im, err));
    const enum gguf_status st =
        gg_bisect_find(j->b, j->model, j->s[0]->model, im, j->scan.pool, err);
    gguf_imatrix_destroy(im);
    if (st != GGUF_OK)
        return st;
    sort(j->b, by_suspicion);
    GG_TRY(measure_all(j, err));
    sort(j->b, by_gain);
    return GGUF_OK;
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
    j.scan = (struct gguf_scan_params)GGUF_SCAN_PARAMS_INIT;
    if (p.scan)
        GG_TRY(gg_params_take(&j.scan, sizeof j.scan, p.scan,
                              "gguf_scan_params", err));
    GG_TRY(check(&j, err));
    j.b = gg_mem_alloc_zero(p.allocator, 1, sizeof *j.b);
    if (!j.b)
        return gg_error_set_nomem(err, sizeof *j.b);
    j.b->allocator = p.allocator;
    const enum gguf_status st = run(&j, err);
    gg_memo_stop(base);
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
    gg_mem_free(b->allocator, b->list);
    gg_mem_free(b->allocator, b);
}

struct gguf_figure gguf_bisect_kld(const struct gguf_bisect *b)
{
    return b->kld;
}

size_t gguf_bisect_n(const struct gguf_bisect *b)
{
    return b->n;
}

size_t gguf_bisect_n_measured(const struct gguf_bisect *b)
{
    return b->n_measured;
}

size_t gguf_bisect_n_left_out(const struct gguf_bisect *b)
{
    return b->n_left_out;
}

const struct gguf_bisect_entry *gguf_bisect_at(const struct gguf_bisect *b,
                                               size_t i)
{
    return i < b->n ? &b->list[i].entry : NULL;
}
