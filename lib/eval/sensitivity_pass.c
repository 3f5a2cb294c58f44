/* SPDX-License-Identifier: MIT */
/* sensitivity_pass.c - compute chunks from a layer on, and their divergences
 *
 * Sequences begin anew for each pass, as in run/layered.c: a session's memory
 * is that of one chunk. */
#include "config.h"
#include "eval/sensitivity_int.h"

#include "base/compiler.h"
#include "eval/divergence.h"
#include "gguf/op.h"

#include <string.h>

/* ---- passes ---- */

static void *carried_at(const struct gg_sensitivity_run *r, size_t c)
{
    return r->store + c * r->stored;
}

size_t gg_sensitivity_end_of_layer(const struct gg_sensitivity_run *r,
                                   uint32_t il)
{
    return r->cuts.end[il];
}

size_t gg_sensitivity_begin_of_layer(const struct gg_sensitivity_run *r,
                                     uint32_t il)
{
    return il ? r->cuts.end[il - 1] : 0;
}

enum gguf_status gg_sensitivity_begin_chunk(struct gg_sensitivity_run *r,
                                            size_t c, struct gguf_error *err)
{
    struct gguf_session *s = r->s;
    const struct gg_window w = gg_window_at(&r->windows, r->chunk[c]);
    bool more;
    gg_window_copy(&r->windows, &w, r->text, r->token);
    r->batch = (struct gguf_batch)GGUF_BATCH_INIT;
    r->batch.n = w.n;
    r->batch.token = r->token;
    r->batch.want = r->want;
    GG_TRY(gguf_session_clear(s, err));
    GG_TRY(gg_session_plan_batch(s, &r->batch, err));
    GG_TRY(gg_session_next_ubatch(s, &more, err));
    GG_TRY(gg_session_prepare_graph(s, &s->ubatch.shape, err));
    GG_TRY(gg_graph_cuts_find(&r->cuts, s->pass.graph, err));
    return gg_session_set_inputs(s, err);
}

/* Restore what chunk c carries into the layer before which it stands. */
static enum gguf_status restore_carried(struct gg_sensitivity_run *r, size_t c,
                                        struct gguf_error *err)
{
    struct gguf_tensor *t;
    char *at = carried_at(r, c);
    for (size_t i = 0;
         r->layer && (t = gg_graph_cuts_next_carried(
                          &r->cuts, r->s->pass.graph, r->layer - 1, &i));) {
        GG_TRY(gguf_tensor_set(t, at, 0, (size_t)gguf_tensor_size(t), err));
        at += gguf_tensor_size(t);
    }
    return GGUF_OK;
}

static enum gguf_status store_carried(struct gg_sensitivity_run *r, size_t c,
                                      uint32_t il, struct gguf_error *err)
{
    struct gguf_tensor *t;
    char *at = carried_at(r, c);
    for (size_t i = 0; (t = gg_graph_cuts_next_carried(
                            &r->cuts, r->s->pass.graph, il, &i));) {
        GG_TRY(gguf_tensor_get(t, at, 0, (size_t)gguf_tensor_size(t), err));
        at += gguf_tensor_size(t);
    }
    return GGUF_OK;
}

enum gguf_status gg_sensitivity_finish_chunk(struct gg_sensitivity_run *r,
                                             struct gguf_error *err)
{
    bool more;
    GG_TRY(gg_session_get_outputs(r->s, err));
    GG_TRY(gg_session_next_ubatch(r->s, &more, err));
    gg_session_finish_outputs(r->s, false);
    return GGUF_OK;
}

enum gguf_status gg_sensitivity_advance_layer(struct gg_sensitivity_run *r,
                                              struct gguf_error *err)
{
    for (size_t c = 0; c < r->n_chunks; c++) {
        GG_TRY(gg_sensitivity_begin_chunk(r, c, err));
        GG_TRY(restore_carried(r, c, err));
        GG_TRY(gg_session_compute_nodes(
            r->s, gg_sensitivity_begin_of_layer(r, r->layer),
            gg_sensitivity_end_of_layer(r, r->layer), err));
        GG_TRY(store_carried(r, c, r->layer, err));
    }
    r->layer++;
    return GGUF_OK;
}

/* Is it a node to which the trial adds noise? */
static bool is_disturbed(const struct gg_sensitivity_trial *t,
                         const struct gguf_tensor *node)
{
    return (node->op == GGUF_OP_GET_ROWS) == t->table &&
           gg_weight_noise_find(node) == t->weight;
}

/* Compute chunk c from its layer to the end, disturbed. */
static enum gguf_status compute_disturbed(struct gg_sensitivity_run *r,
                                          struct gg_sensitivity_trial *t,
                                          size_t c, struct gguf_error *err)
{
    GG_TRY(gg_sensitivity_begin_chunk(r, c, err));
    GG_TRY(restore_carried(r, c, err));
    const struct gguf_graph *g = r->s->pass.graph;
    size_t at = gg_sensitivity_begin_of_layer(r, r->layer);
    for (size_t i = at; i < g->n_nodes; i++) {
        if (!is_disturbed(t, g->nodes[i]))
            continue;
        GG_TRY(gg_session_compute_nodes(r->s, at, i + 1, err));
        GG_TRY(gg_weight_noise_add(&t->noise, g->nodes[i], &t->sums, err));
        at = i + 1;
    }
    GG_TRY(gg_session_compute_nodes(r->s, at, g->n_nodes, err));
    return gg_sensitivity_finish_chunk(r, err);
}

/* ---- divergence ---- */

/* Compute the head's graph again, with its input and disturbed. */
static enum gguf_status disturb_logits(struct gg_sensitivity_run *r,
                                       struct gg_sensitivity_trial *t,
                                       const float **out,
                                       struct gguf_error *err)
{
    struct gguf_session *s = r->s;
    struct gguf_graph *g = s->head_graph;
    size_t at = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (!is_disturbed(t, g->nodes[i]))
            continue;
        GG_TRY(gg_sched_compute_nodes(s->head_sched, g, at, i + 1, err));
        GG_TRY(gg_weight_noise_add(&t->noise, g->nodes[i], &t->sums, err));
        at = i + 1;
    }
    GG_TRY(gg_sched_compute_nodes(s->head_sched, g, at, g->n_nodes, err));
    *out = s->head_out->data;
    return GGUF_OK;
}

/* Logits of some rows, disturbed and undisturbed. */
struct rows {
    const float *base, *q;
};

/* Compute logits of n rows of chunk c from row i on. */
static enum gguf_status get_rows(struct gg_sensitivity_run *r,
                                 struct gg_sensitivity_trial *t, size_t c,
                                 size_t i, size_t n, struct rows *out,
                                 struct gguf_error *err)
{
    struct gguf_session *s = r->s;
    const size_t n_embd = s->model->hp.n_embd;
    const size_t size = n * s->model->hp.n_vocab * sizeof(float);
    const float *base = r->states + (c * r->p->n_ctx + i) * n_embd;
    const float *logits;
    if (!t->head) {
        GG_TRY(gguf_session_logits(s, i, n, &logits, err));
        memcpy(r->logits, logits, size);
        out->q = r->logits;
    }
    memcpy(s->out + i * n_embd, base, n * n_embd * sizeof *base);
    GG_TRY(gguf_session_logits(s, i, n, &out->base, err));
    if (!t->head)
        return GGUF_OK;
    memcpy(r->logits, out->base, size);
    out->base = r->logits;
    return disturb_logits(r, t, &out->q, err);
}

/* Mean divergence of all rows of chunk c; the disturbed states are outputs of
 * the session. */
static enum gguf_status compare_chunk(struct gg_sensitivity_run *r,
                                      struct gg_sensitivity_trial *t, size_t c,
                                      double *kld, struct gguf_error *err)
{
    const size_t all = r->p->n_ctx, most = gguf_session_max_logits(r->s);
    struct gg_divergence_base base;
    struct rows rows = { NULL, NULL };
    double sum = 0;
    for (size_t i = 0, n; i < all; i += n) {
        n = GG_MIN(most, all - i);
        GG_TRY(get_rows(r, t, c, i, n, &rows, err));
        const struct gg_divergence_logits l = { rows.base,
                                                r->s->model->hp.n_vocab };
        gg_divergence_set_logits(&base, &l);
        gg_divergence_compare_rows(r->p->pool, &base, rows.q, l.n_vocab, n,
                                   r->kld);
        for (size_t k = 0; k < n; k++)
            sum += r->kld[k].kld;
    }
    *kld = sum / (double)all;
    return GGUF_OK;
}

enum gguf_status gg_sensitivity_try_chunk(struct gg_sensitivity_run *r,
                                          struct gg_sensitivity_trial *t,
                                          size_t c, double *kld,
                                          struct gguf_error *err)
{
    t->sums = (struct gg_weight_noise_sums){ 0 };
    if (t->head) {
        GG_TRY(gg_sensitivity_begin_chunk(r, c, err));
        GG_TRY(gg_sensitivity_finish_chunk(r, err));
    } else {
        GG_TRY(compute_disturbed(r, t, c, err));
    }
    return compare_chunk(r, t, c, kld, err);
}
