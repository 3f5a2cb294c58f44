/* SPDX-License-Identifier: MIT */
/* backward.c - a batch forwards, then its layers backwards: see backward.h */
#include "config.h"
#include "run/backward_int.h"

#include "base/mem.h"
#include "base/params.h"

typedef struct gguf_tensor tensor;

/* ---- the object ---- */

static enum gguf_status check_session(const struct gguf_session *s,
                                      struct gguf_error *err)
{
    const char *name = s->model->arch->name;
    if (!gg_model_has_logits(s->model) ||
        gg_model_needs_whole_sequence(s->model) ||
        gg_model_encodes_first(s->model))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "gradients: models of architecture '%s' do not "
                            "predict the next token of a text",
                            name);
    if (gguf_sched_n_backends(s->sched) > 1)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
            "gradients: the session has several backends, expected one");
    return GGUF_OK;
}

enum gguf_status gg_backward_create(struct gg_backward **out,
                                    struct gguf_session *s,
                                    struct gguf_error *err)
{
    const uint32_t n_layers = gg_model_n_unrolled_layers(s->model);
    *out = NULL;
    GG_TRY(check_session(s, err));
    struct gg_backward *b = gg_mem_alloc_zero(s->allocator, 1, sizeof *b);
    if (!b)
        return gg_error_set_nomem(err, sizeof *b);
    b->s = s;
    b->allocator = b->cuts.allocator = s->allocator;
    enum gguf_status st =
        gg_graph_cuts_init(&b->cuts, n_layers, s->allocator, err);
    b->part = gg_mem_alloc_zero(s->allocator, n_layers, sizeof *b->part);
    if (st == GGUF_OK && !b->part)
        st = gg_error_set_nomem(err, n_layers * sizeof *b->part);
    if (st == GGUF_OK)
        st = gguf_galloc_create(&b->galloc, s->allocator,
                                gguf_backend_buft(s->backend), err);
    if (st == GGUF_OK)
        *out = b;
    else
        gg_backward_destroy(b);
    return st;
}

void gg_backward_want_vectors(struct gg_backward *b)
{
    b->has_vectors = true;
}

void gg_backward_want_inputs(struct gg_backward *b)
{
    b->has_inputs = true;
}

void gg_backward_destroy(struct gg_backward *b)
{
    if (!b)
        return;
    const struct gguf_allocator *a = b->allocator;
    /* the status is that of memory which the session clears again later */
    if (gguf_session_clear(b->s, NULL) != GGUF_OK)
        gg_session_forget_graphs(b->s);
    gguf_galloc_destroy(b->galloc);
    gguf_ctx_destroy(b->ctx);
    gg_graph_cuts_fini(&b->cuts);
    gg_mem_free(a, b->part);
    gg_mem_free(a, b->copy);
    gg_mem_free(a, b->result);
    gg_mem_free(a, b->seed);
    gg_mem_free(a, b->wanted);
    gg_mem_free(a, b->gradient);
    gg_mem_free(a, b->store);
    gg_mem_free(a, b->seed_store[0]);
    gg_mem_free(a, b->seed_store[1]);
    gg_mem_free(a, b);
}

/* ---- a batch ---- */

/* Parts between cuts. Layers after which no cut is possible belong to the
 * next part. */
static void find_parts(struct gg_backward *b)
{
    size_t begin = 0;
    uint64_t at = 0;
    b->n_parts = 0;
    for (uint32_t il = 0; il < b->cuts.n_layers; il++) {
        struct gg_backward_part *p = &b->part[b->n_parts];
        if (b->cuts.end[il] == begin)
            continue;
        *p = (struct gg_backward_part){
            .begin = begin, .end = b->cuts.end[il], .layer = il, .at = at
        };
        at += b->cuts.most;
        begin = p->end;
        b->n_parts++;
    }
    b->store_size = at;
    b->seed_size = b->cuts.most;
}

/* Plan a batch as one micro-batch of one sequence whose tokens are all
 * outputs, and build the session's graph. */
static enum gguf_status start_batch(struct gg_backward *b,
                                    const struct gguf_batch *batch,
                                    struct gguf_error *err)
{
    struct gguf_session *s = b->s;
    struct gguf_batch own = GGUF_BATCH_INIT;
    bool more;
    GG_TRY(gg_params_take(&own, sizeof own, batch, "gguf_batch", err));
    GG_TRY(gguf_session_clear(s, err));
    GG_TRY(gg_session_plan_batch(s, &own, err));
    GG_TRY(gg_session_next_ubatch(s, &more, err));
    const struct gg_ubatch_shape *h = &s->ubatch.shape;
    if (!more || (size_t)h->n_real != own.n || h->n_seq != 1 ||
        s->ubatch.n_out != own.n)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "gradients: expected a batch of one sequence, in "
                            "one micro-batch, whose tokens are all wanted");
    GG_TRY(gg_session_prepare_graph(s, h, err));
    GG_TRY(gg_graph_cuts_find(&b->cuts, s->pass.graph, err));
    find_parts(b);
    return GGUF_OK;
}

/* The last part must carry the states alone, a column for each token. */
static enum gguf_status check_states(const struct gg_backward *b,
                                     struct gguf_error *err)
{
    size_t k = 0;
    const tensor *t =
        b->n_parts ? gg_backward_next_carried(b, b->n_parts - 1, &k) : NULL;
    if (t && t->dtype == GGUF_DTYPE_F32 &&
        t->ne[0] == (int64_t)b->s->model->hp.n_embd &&
        gguf_tensor_n_rows(t) == b->s->ubatch.shape.n_out &&
        !gg_backward_next_carried(b, b->n_parts - 1, &k))
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                        "gradients: the result is not one state per token");
}

static size_t head_rows(const struct gg_backward *b)
{
    return (size_t)GG_MIN((int64_t)GG_BACKWARD_ROWS, b->s->ubatch.shape.n_out);
}

static enum gguf_status build_all(struct gg_backward *b,
                                  const struct gguf_batch *batch,
                                  struct gguf_error *err)
{
    GG_TRY(start_batch(b, batch, err));
    GG_TRY(check_states(b, err));
    for (uint32_t i = 0; i < b->n_parts; i++)
        GG_TRY(gg_backward_build_part(b, i, err));
    return gg_backward_build_head(b, head_rows(b), err);
}

enum gguf_status gg_backward_check(struct gg_backward *b,
                                   const struct gguf_batch *batch,
                                   struct gguf_error *err)
{
    const enum gguf_status st = build_all(b, batch, err);
    const enum gguf_status cleared =
        gguf_session_clear(b->s, st == GGUF_OK ? err : NULL);
    return st == GGUF_OK ? cleared : st;
}

/* ---- forwards ---- */

static enum gguf_status reserve_bytes(struct gg_backward *b, char **p,
                                      uint64_t size, struct gguf_error *err)
{
    gg_mem_free(b->allocator, *p);
    *p =
        size <= SIZE_MAX ? gg_mem_alloc(b->allocator, (size_t)size + 1) : NULL;
    return *p ? GGUF_OK
              : gg_error_set_nomem(err, (size_t)GG_MIN(size, SIZE_MAX));
}

static enum gguf_status reserve_stores(struct gg_backward *b, uint64_t stored,
                                       uint64_t seeds, struct gguf_error *err)
{
    if (!b->store || b->store_size > stored)
        GG_TRY(reserve_bytes(b, &b->store, b->store_size, err));
    for (int i = 0; i < 2; i++)
        if (!b->seed_store[i] || b->seed_size > seeds)
            GG_TRY(reserve_bytes(b, &b->seed_store[i], b->seed_size, err));
    return GGUF_OK;
}

/* Compute all parts, and store what each carries on. */
static enum gguf_status run_forwards(struct gg_backward *b,
                                     struct gguf_error *err)
{
    GG_TRY(gg_session_set_inputs(b->s, err));
    for (uint32_t i = 0; i < b->n_parts; i++) {
        const struct gg_backward_part *part = &b->part[i];
        char *at = b->store + part->at;
        tensor *t;
        GG_TRY(gg_session_compute_nodes(b->s, part->begin, part->end, err));
        for (size_t k = 0; (t = gg_backward_next_carried(b, i, &k));) {
            const size_t size = (size_t)gguf_tensor_size(t);
            GG_TRY(gguf_tensor_get(t, at, 0, size, err));
            at += size;
        }
    }
    return GGUF_OK;
}

/* ---- backwards ---- */

static enum gguf_status set_all(tensor *t, const void *from,
                                struct gguf_error *err)
{
    return t->data
               ? gguf_tensor_set(t, from, 0, (size_t)gguf_tensor_size(t), err)
               : GGUF_OK; /* a tensor that no node reads */
}

/* Hand out the gradients of nodes that read weights; columns beyond n_valid
 * are left out. */
static enum gguf_status hand_out(const struct gg_backward *b,
                                 const struct gg_backward_calls *calls,
                                 size_t n_valid, struct gguf_error *err)
{
    for (size_t i = b->n_wanted; i-- > b->n_inputs;) {
        const tensor *t = b->wanted[i], *dy = b->gradient[i];
        const bool is_vector = t->op == GGUF_OP_NONE;
        const tensor *w = is_vector ? t : t->src[0];
        if (!dy)
            continue;
        const struct gg_backward_gradient g = {
            .is_vector = is_vector,
            .weight = w->view_src ? w->view_src : w,
            .first_row =
                w->view_src ? (size_t)(w->view_off / (uint64_t)w->nb[1]) : 0,
            .is_lookup = t->op == GGUF_OP_GET_ROWS,
            .has_ids = t->op == GGUF_OP_MATMUL_ID,
            .g = dy->data,
            .n = (size_t)dy->ne[0],
            .n_columns = GG_MIN((size_t)gguf_tensor_n_rows(dy), n_valid),
            .x = b->has_inputs && !is_vector ? t->src[1] : NULL,
            .ids =
                b->has_inputs && t->op == GGUF_OP_MATMUL_ID ? t->src[2] : NULL,
        };
        GG_TRY(calls->on_gradient(calls->user, &g, err));
    }
    return GGUF_OK;
}

/* Compute rows `first` on of the logits, and the gradient of their states. */
static enum gguf_status run_head(struct gg_backward *b, size_t first, size_t n,
                                 size_t n_rows,
                                 const struct gg_backward_calls *calls,
                                 struct gguf_error *err)
{
    const size_t row = b->s->model->hp.n_embd * sizeof(float);
    const char *states = b->store + b->part[b->n_parts - 1].at;
    tensor *x = b->wanted[0], *logits = b->result[0], *seed = b->seed[0];
    GG_TRY(gguf_tensor_fill(x, 0, 0, n_rows * row, err));
    GG_TRY(gguf_tensor_set(x, states + first * row, 0, n * row, err));
    GG_TRY(gguf_tensor_fill(seed, 0, 0, (size_t)gguf_tensor_size(seed), err));
    struct gguf_graph *part =
        gguf_graph_view(b->ctx, b->graph, 0, b->n_forward);
    GG_TRY(gguf_ctx_status(b->ctx, err));
    GG_TRY(gguf_backend_compute(b->s->backend, part, err));
    GG_TRY(calls->on_logits(calls->user, first, n, (size_t)logits->ne[0],
                            logits->data, seed->data, err));
    part = gguf_graph_view(b->ctx, b->graph, b->n_forward, b->graph->n_nodes);
    GG_TRY(gguf_ctx_status(b->ctx, err));
    GG_TRY(gguf_backend_compute(b->s->backend, part, err));
    GG_TRY(hand_out(b, calls, n, err));
    return gguf_tensor_get(b->gradient[0], b->seed_store[0] + first * row, 0,
                           n * row, err);
}

static enum gguf_status run_all_heads(struct gg_backward *b,
                                      const struct gg_backward_calls *calls,
                                      struct gguf_error *err)
{
    const size_t n_real = b->s->ubatch.n_out, rows = head_rows(b);
    memset(b->seed_store[0], 0, (size_t)b->seed_size);
    for (size_t first = 0; first < n_real; first += rows) {
        /* placed anew each time: a view of the graph takes room in ctx */
        GG_TRY(gg_backward_build_head(b, rows, err));
        GG_TRY(gguf_galloc_alloc(b->galloc, b->graph, err));
        GG_TRY(run_head(b, first, GG_MIN(rows, n_real - first), rows, calls,
                        err));
    }
    return GGUF_OK;
}

/* Compute part i and the gradients of its inputs from those of its results. */
static enum gguf_status run_part(struct gg_backward *b, uint32_t i,
                                 const struct gg_backward_calls *calls,
                                 struct gguf_error *err)
{
    const char *in = i ? b->store + b->part[i - 1].at : NULL;
    const char *seed = b->seed_store[0];
    char *const first = b->seed_store[1], *out = first;
    GG_TRY(gg_backward_build_part(b, i, err));
    GG_TRY(gguf_galloc_alloc(b->galloc, b->graph, err));
    for (size_t k = 0; k < b->n_inputs; k++) {
        GG_TRY(set_all(b->wanted[k], in, err));
        in += gguf_tensor_size(b->wanted[k]);
    }
    for (size_t k = 0; k < b->n_results; k++) {
        GG_TRY(set_all(b->seed[k], seed, err));
        seed += gguf_tensor_size(b->seed[k]);
    }
    GG_TRY(gguf_backend_compute(b->s->backend, b->graph, err));
    GG_TRY(hand_out(b, calls, SIZE_MAX, err));
    for (size_t k = 0; k < b->n_inputs; k++) {
        const size_t size = (size_t)gguf_tensor_size(b->wanted[k]);
        if (b->gradient[k])
            GG_TRY(gguf_tensor_get(b->gradient[k], out, 0, size, err));
        else
            memset(out, 0, size);
        out += size;
    }
    b->seed_store[1] = b->seed_store[0];
    b->seed_store[0] = first;
    return GGUF_OK;
}

static enum gguf_status run_batch(struct gg_backward *b,
                                  const struct gguf_batch *batch,
                                  const struct gg_backward_calls *calls,
                                  struct gguf_error *err)
{
    const uint64_t stored = b->store_size, seeds = b->seed_size;
    GG_TRY(start_batch(b, batch, err));
    GG_TRY(check_states(b, err));
    GG_TRY(reserve_stores(b, stored, seeds, err));
    GG_TRY(run_forwards(b, err));
    GG_TRY(run_all_heads(b, calls, err));
    for (uint32_t i = b->n_parts; i-- > 0;)
        GG_TRY(run_part(b, i, calls, err));
    return GGUF_OK;
}

enum gguf_status gg_backward_run(struct gg_backward *b,
                                 const struct gguf_batch *batch,
                                 const struct gg_backward_calls *calls,
                                 struct gguf_error *err)
{
    const enum gguf_status st = run_batch(b, batch, calls, err);
    const enum gguf_status cleared =
        gguf_session_clear(b->s, st == GGUF_OK ? err : NULL);
    return st == GGUF_OK ? cleared : st;
}
