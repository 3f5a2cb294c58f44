/* SPDX-License-Identifier: MIT */
/* layer_compare.c - compare two models, node by node
 *
 * Each model has its session. For each micro-batch the sessions are computed
 * from one name that both graphs have to the next one. Both results are then
 * in memory, where they were computed. */
#include "config.h"
#include "eval/first_fault.h"
#include "eval/layer_sums.h"

#include "base/mem.h"
#include "base/params.h"
#include "gguf/op.h"
#include "run/session_int.h"

#include <string.h>

enum { Q, B }; /* model and base */

/* A node of each graph. */
struct pair {
    const struct gguf_tensor *t[2];
};

struct compare {
    struct gguf_layers *l;
    const struct gguf_scan_params *p;
    struct gguf_session *s[2];
    struct gg_stepper walk[2];
    struct gg_window_list windows;
    const gguf_token *text;
    uint64_t done, n_tok;
    struct gguf_batch batch; /* the current chunk */
    gguf_token *token;
    bool *want;
    size_t chunk;
    struct pair *pairs;
    size_t n_pairs, cap_pairs;
    void *copy[2]; /* copies of tensors that are not in host memory */
    size_t copy_size[2];
};

/* ---- nodes that are compared ---- */

/* A name with a space belongs to a view or a copy of a tensor. */
static bool is_named(const struct gguf_tensor *t)
{
    return t->name[0] && !strchr(t->name, ' ') && t->op &&
           t->dtype == GGUF_DTYPE_F32 && !t->view_src &&
           !gguf_op_is_view(t->op) && gguf_tensor_is_contiguous(t) &&
           !gguf_tensor_is_empty(t);
}

static enum gguf_status add_pair(struct compare *c,
                                 const struct gguf_tensor *q,
                                 const struct gguf_tensor *b,
                                 struct gguf_error *err)
{
    if (c->n_pairs == c->cap_pairs) {
        struct pair *more =
            gg_mem_grow(c->l->allocator, c->pairs, &c->cap_pairs, sizeof *more,
                        c->n_pairs + 1, err);
        if (!more)
            return GGUF_E_NOMEM;
        c->pairs = more;
    }
    c->pairs[c->n_pairs++] = (struct pair){ { q, b } };
    return GGUF_OK;
}

/* Find the names that both graphs have, in the order of both. */
static enum gguf_status find_pairs(struct compare *c, struct gguf_error *err)
{
    const struct gguf_graph *q = c->s[Q]->pass.graph, *b = c->s[B]->pass.graph;
    c->n_pairs = 0;
    for (size_t i = 0, k = 0; i < q->n_nodes; i++) {
        size_t at = k;
        if (!is_named(q->nodes[i]))
            continue;
        while (at < b->n_nodes &&
               (!is_named(b->nodes[at]) ||
                strcmp(q->nodes[i]->name, b->nodes[at]->name) != 0))
            at++;
        if (at == b->n_nodes)
            continue;
        GG_TRY(add_pair(c, q->nodes[i], b->nodes[at], err));
        k = at + 1;
    }
    return GGUF_OK;
}

/* ---- values that are not finite ---- */

/* Report a value of model or base that is not finite, with its cause. */
static enum gguf_status report_nonfinite(struct compare *c, int side,
                                         const char *name, uint32_t pos,
                                         struct gguf_error *err)
{
    struct gguf_error own;
    struct gguf_error *e = err ? err : &own;
    const struct gg_first_fault_place place = { .windows = &c->windows,
                                                .session = &c->s[side],
                                                .n_models = 1,
                                                .chunk = c->chunk,
                                                .all = true };
    (void)gg_error_set(e, GGUF_E_NONFINITE, GGUF_NO_OFFSET,
                       "%s: '%s' is not finite in chunk %zu, position "
                       "%" PRIu32,
                       side == Q ? "the model" : "the base", name,
                       c->chunk + 1, pos);
    gg_first_fault_add_cause(&place, &c->batch, e);
    return GGUF_E_NONFINITE;
}

static enum gguf_status add_rows(struct compare *c,
                                 const struct gg_layer_sums_rows *r,
                                 struct gguf_error *err)
{
    size_t bad;
    bool is_q;
    GG_TRY(gg_layer_sums_add(c->l, c->p->pool, r, &bad, &is_q, err));
    if (bad == r->n)
        return GGUF_OK;
    return report_nonfinite(
        c, is_q ? Q : B, r->name,
        r->pos ? (uint32_t)r->pos[bad] : r->first + (uint32_t)bad, err);
}

/* ---- a micro-batch ---- */

/* Floats of each token in t, and number of tokens. Returns false if the rows
 * are not tokens. */
static bool split_rows(const struct gguf_session *s,
                       const struct gguf_tensor *t, size_t *size, size_t *n)
{
    const struct gg_ubatch_shape *h = &s->ubatch.shape;
    const int64_t n_tok = h->n_tok * h->n_seq;
    int64_t rows = 1;
    for (int d = GGUF_TENSOR_DIMS - 1; d >= 0 && rows < n_tok; d--)
        rows *= t->ne[d];
    *size = (size_t)(gguf_tensor_n_elements(t) / n_tok);
    *n = (size_t)h->n_real;
    return rows == n_tok;
}

static enum gguf_status compare_pair(struct compare *c,
                                     const struct pair *pair,
                                     struct gguf_error *err)
{
    struct gg_layer_sums_rows r = { .name = pair->t[Q]->name,
                                    .chunk = c->chunk,
                                    .pos = c->s[Q]->ubatch.pos };
    const void *data[2];
    size_t size[2], n[2];
    bool good = true;
    for (int i = 0; i < 2; i++) {
        GG_TRY(gg_stepper_compute_to(&c->walk[i], pair->t[i], err));
        GG_TRY(gg_finite_check_host_bytes(pair->t[i], c->l->allocator,
                                          &c->copy[i], &c->copy_size[i],
                                          &data[i], err));
        good = split_rows(c->s[i], pair->t[i], &size[i], &n[i]) && good;
    }
    if (!good)
        return GGUF_OK; /* its rows are not tokens */
    if (size[Q] != size[B] || n[Q] != n[B])
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "'%s' has %zu numbers of each of %zu tokens, of "
                            "the base %zu of %zu",
                            r.name, size[Q], n[Q], size[B], n[B]);
    r.q = data[Q];
    r.b = data[B];
    r.n = n[Q];
    r.size = size[Q];
    return add_rows(c, &r, err);
}

static enum gguf_status compare_pass(struct compare *c, struct gguf_error *err)
{
    gg_layer_sums_begin(c->l);
    GG_TRY(find_pairs(c, err));
    for (size_t i = 0; i < c->n_pairs; i++)
        GG_TRY(compare_pair(c, &c->pairs[i], err));
    GG_TRY(gg_stepper_compute_to(&c->walk[Q], NULL, err));
    return gg_stepper_compute_to(&c->walk[B], NULL, err);
}

static enum gguf_status compare_logits(struct compare *c,
                                       struct gguf_error *err)
{
    const size_t n = gguf_session_n_outputs(c->s[Q]);
    const size_t most = GG_MIN(gguf_session_max_logits(c->s[Q]),
                               gguf_session_max_logits(c->s[B]));
    struct gg_layer_sums_rows r = { .name = "logits", .chunk = c->chunk };
    if (!gg_model_has_logits(c->s[Q]->model))
        return GGUF_OK;
    r.size = c->s[Q]->model->hp.n_vocab;
    for (size_t i = 0; i < n; i += most) {
        /* all pieces belong to one activation */
        const size_t next = c->l->next;
        r.first = (uint32_t)i;
        r.n = GG_MIN(most, n - i);
        GG_TRY(gguf_session_logits(c->s[Q], i, r.n, &r.q, err));
        GG_TRY(gguf_session_logits(c->s[B], i, r.n, &r.b, err));
        GG_TRY(add_rows(c, &r, err));
        c->l->next = next;
    }
    return GGUF_OK;
}

/* ---- chunks ---- */

static void fill_batch(struct compare *c)
{
    const struct gg_window w = gg_window_at(&c->windows, c->chunk);
    gg_window_copy(&c->windows, &w, c->text, c->token);
    c->batch = (struct gguf_batch)GGUF_BATCH_INIT;
    c->batch.n = w.n;
    c->batch.token = c->token;
    c->batch.want = c->want;
}

static enum gguf_status compare_chunk(struct compare *c,
                                      struct gguf_error *err)
{
    bool more[2] = { true, true };
    fill_batch(c);
    for (int i = 0; i < 2; i++) {
        GG_TRY(gguf_session_clear(c->s[i], err));
        GG_TRY(gg_session_plan_batch(c->s[i], &c->batch, err));
    }
    while (more[Q] && more[B]) {
        for (int i = 0; i < 2; i++)
            GG_TRY(gg_stepper_begin_pass(&c->walk[i], c->s[i], &more[i], err));
        if (more[Q] && more[B])
            GG_TRY(compare_pass(c, err));
    }
    return compare_logits(c, err);
}

static enum gguf_status report_progress(const struct compare *c,
                                        struct gguf_error *err)
{
    if (c->p->progress.fn &&
        c->p->progress.fn(c->p->progress.user, c->done, c->n_tok))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

static enum gguf_status compare_all(struct compare *c, struct gguf_error *err)
{
    GG_TRY(report_progress(c, err));
    for (c->chunk = c->windows.begin; c->chunk < c->windows.end; c->chunk++) {
        GG_TRY(compare_chunk(c, err));
        c->done += c->batch.n;
        GG_TRY(report_progress(c, err));
    }
    if (!c->l->n)
        return gg_error_set(
            err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
            "the graphs of the two models have no name in common");
    gg_layer_sums_finish(c->l);
    return GGUF_OK;
}

/* ---- setting up ---- */

static enum gguf_status check_sessions(const struct compare *c,
                                       struct gguf_error *err)
{
    const uint32_t n_ctx = c->p->n_ctx;
    if (!c->s[Q] || !c->s[B] || c->s[Q] == c->s[B])
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET,
            "comparing activations needs two different sessions");
    for (int i = 0; i < 2; i++) {
        if (gg_model_encodes_first(c->s[i]->model))
            return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                "architecture '%s' encodes a text and decodes "
                                "another: not supported, one text is expected",
                                c->s[i]->model->arch->name);
        if (n_ctx < 2 || n_ctx > gguf_session_n_ctx(c->s[i]))
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "chunks of %" PRIu32
                                " tokens: must be 2 to %" PRIu32,
                                n_ctx, gguf_session_n_ctx(c->s[i]));
    }
    if (gguf_session_n_ubatch(c->s[Q]) != gguf_session_n_ubatch(c->s[B]))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the model computes %" PRIu32
                            " tokens together, the base %" PRIu32,
                            gguf_session_n_ubatch(c->s[Q]),
                            gguf_session_n_ubatch(c->s[B]));
    return gguf_scan_compare_vocab(gguf_session_model(c->s[B]),
                                   gguf_session_model(c->s[Q]), err);
}

static enum gguf_status plan_chunks(struct compare *c, size_t n,
                                    struct gguf_error *err)
{
    const struct gguf_scan_params *p = c->p;
    const struct gguf_allocator *a = c->l->allocator;
    const struct gguf_vocab *v = gguf_model_vocab(c->s[B]->model);
    GG_TRY(gg_window_init(&c->windows, p, n, v, a, err));
    for (size_t i = c->windows.begin; i < c->windows.end; i++)
        c->n_tok += gg_window_at(&c->windows, i).n;
    c->token = gg_mem_alloc_zero(a, p->n_ctx, sizeof *c->token);
    c->want = gg_mem_alloc_zero(a, p->n_ctx, 1);
    if (!c->token || !c->want)
        return gg_error_set_nomem(err, p->n_ctx * sizeof *c->token);
    memset(c->want, 1, p->n_ctx);
    return GGUF_OK;
}

static void fini_compare(struct compare *c)
{
    const struct gguf_allocator *a = c->l->allocator;
    gg_window_fini(&c->windows);
    gg_mem_free(a, c->token);
    gg_mem_free(a, c->want);
    gg_mem_free(a, c->pairs);
    gg_mem_free(a, c->copy[Q]);
    gg_mem_free(a, c->copy[B]);
}

enum gguf_status
gguf_layers_run(struct gguf_layers **out, struct gguf_session *model,
                struct gguf_session *base, const gguf_token *token, size_t n,
                const struct gguf_scan_params *params, struct gguf_error *err)
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    struct compare c = { .p = &p, .s = { model, base }, .text = token };
    *out = NULL;
    GG_TRY(gg_window_take_params(&p, params, err));
    p.rows_from = GGUF_SCAN_SECOND_HALF; /* all tokens are outputs */
    GG_TRY(check_sessions(&c, err));
    c.l = gg_mem_alloc_zero(base->allocator, 1, sizeof *c.l);
    if (!c.l)
        return gg_error_set_nomem(err, sizeof *c.l);
    c.l->allocator = c.windows.allocator = base->allocator;
    enum gguf_status st = plan_chunks(&c, n, err);
    if (st == GGUF_OK)
        st = compare_all(&c, err);
    for (int i = 0; i < 2; i++) {
        const enum gguf_status cleared =
            gguf_session_clear(c.s[i], st == GGUF_OK ? err : NULL);
        st = st == GGUF_OK ? cleared : st;
    }
    fini_compare(&c);
    if (st == GGUF_OK)
        *out = c.l;
    else
        gguf_layers_destroy(c.l);
    return st;
}

void gguf_layers_destroy(struct gguf_layers *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n; i++)
        gg_mem_free(l->allocator, l->list[i]);
    gg_mem_free(l->allocator, (void *)l->list);
    gg_mem_free(l->allocator, l->token);
    gg_mem_free(l->allocator, l);
}

size_t gguf_layers_n_entries(const struct gguf_layers *l)
{
    return l->n;
}

const struct gguf_layers_entry *gguf_layers_entry(const struct gguf_layers *l,
                                                  size_t i)
{
    return i < l->n ? &l->list[i]->entry : NULL;
}
