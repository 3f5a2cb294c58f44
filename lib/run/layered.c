/* SPDX-License-Identifier: MIT */
/* layered.c - many batches, one layer after another
 *
 * Each micro-batch has the graph that it has when it is decoded alone, and is
 * computed up to the cut (graph_cuts.h) after the layer. Tensors that are
 * carried over the cut are stored, and restored into the same graph for the
 * next layer. Sequences begin anew in each layer: a session's memory is that
 * of one batch. */
#include "config.h"
#include "run/graph_cuts.h"
#include "run/session_int.h"

#include "base/ckd.h"
#include "base/mem.h"
#include "base/params.h"
#include "sched/sched_int.h"

struct layered {
    struct gguf_session *s;
    const struct gguf_batch *const *batch;
    size_t n;
    struct gguf_session_outputs_callback on_outputs;
    struct gguf_progress_callback progress;
    struct gguf_batch now; /* the current batch */
    struct gg_graph_cuts cuts;
    uint64_t *at; /* [n + 1], byte of the store at which each batch begins */
    char *store;  /* tensors that micro-batches carry, one after another */
    uint64_t done, total; /* tokens times layers */
};

/* ---- one batch ---- */

/* Clear all sequences and plan the batch. */
static enum gguf_status start_batch(struct layered *j,
                                    const struct gguf_batch *batch,
                                    struct gguf_error *err)
{
    j->now = (struct gguf_batch)GGUF_BATCH_INIT;
    GG_TRY(gg_params_take(&j->now, sizeof j->now, batch, "gguf_batch", err));
    GG_TRY(gguf_session_clear(j->s, err));
    return gg_session_plan_batch(j->s, &j->now, err);
}

/* Sum over micro-batches of the most bytes that each carries over a cut. */
static enum gguf_status measure_store(struct layered *j,
                                      const struct gguf_batch *batch,
                                      uint64_t *size, struct gguf_error *err)
{
    struct gguf_session *s = j->s;
    bool more;
    *size = 0;
    GG_TRY(start_batch(j, batch, err));
    for (;;) {
        GG_TRY(gg_session_next_ubatch(s, &more, err));
        if (!more)
            return GGUF_OK;
        GG_TRY(gg_session_prepare_graph(s, &s->ubatch.shape, err));
        GG_TRY(gg_graph_cuts_find(&j->cuts, s->pass.graph, err));
        if (gg_ckd_add(size, *size, j->cuts.most))
            return gg_error_set_nomem(err, SIZE_MAX);
    }
}

typedef enum gguf_status move_fn(struct gguf_tensor *t, char *at,
                                 struct gguf_error *err);

static enum gguf_status put_tensor(struct gguf_tensor *t, char *at,
                                   struct gguf_error *err)
{
    return gguf_tensor_set(t, at, 0, (size_t)gguf_tensor_size(t), err);
}

static enum gguf_status take_tensor(struct gguf_tensor *t, char *at,
                                    struct gguf_error *err)
{
    return gguf_tensor_get(t, at, 0, (size_t)gguf_tensor_size(t), err);
}

/* Copy the tensors that are carried over the cut after a layer, to the store
 * or from it. */
static enum gguf_status move_carried(struct layered *j, uint32_t layer,
                                     char *at, move_fn *fn,
                                     struct gguf_error *err)
{
    struct gguf_tensor *t;
    for (size_t i = 0; (t = gg_graph_cuts_next_carried(
                            &j->cuts, j->s->pass.graph, layer, &i));) {
        GG_TRY(fn(t, at, err));
        at += gguf_tensor_size(t);
    }
    return GGUF_OK;
}

/* Run one layer of a micro-batch. *at is its place in the store, and moves to
 * the next one's. */
static enum gguf_status run_layer(struct layered *j, uint32_t il, char **at,
                                  struct gguf_error *err)
{
    struct gguf_session *s = j->s;
    const struct gg_ubatch_shape *h = &s->ubatch.shape;
    const double before = gg_session_clock();
    GG_TRY(gg_session_prepare_graph(s, h, err));
    GG_TRY(gg_graph_cuts_find(&j->cuts, s->pass.graph, err));
    const size_t begin = il ? j->cuts.end[il - 1] : 0, end = j->cuts.end[il];
    if (begin < end) {
        GG_TRY(gg_session_set_inputs(s, err));
        if (il)
            GG_TRY(move_carried(j, il - 1, *at, put_tensor, err));
        GG_TRY(gg_session_compute_nodes(s, begin, end, err));
        GG_TRY(move_carried(j, il, *at, take_tensor, err));
    }
    *at += j->cuts.most;
    gg_session_count_stage(&s->timings.prompt,
                           il ? 0 : (uint64_t)(h->n_real * h->n_seq), before);
    return GGUF_OK;
}

static enum gguf_status report_progress(struct layered *j, size_t n_tok,
                                        struct gguf_error *err)
{
    j->done += n_tok;
    if (j->progress.fn && j->progress.fn(j->progress.user, j->done, j->total))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

/* Make the states of a micro-batch, after the last layer, outputs of the
 * session. */
static enum gguf_status get_outputs(struct layered *j, uint32_t n_layers,
                                    char **at, struct gguf_error *err)
{
    struct gguf_session *s = j->s;
    GG_TRY(gg_session_prepare_graph(s, &s->ubatch.shape, err));
    GG_TRY(gg_graph_cuts_find(&j->cuts, s->pass.graph, err));
    GG_TRY(move_carried(j, n_layers - 1, *at, put_tensor, err));
    *at += j->cuts.most;
    return gg_session_get_outputs(s, err);
}

typedef enum gguf_status each_fn(struct layered *j, uint32_t il, char **at,
                                 struct gguf_error *err);

/* Call fn for the micro-batches of batch b. */
static enum gguf_status each_ubatch(struct layered *j, size_t b, each_fn *fn,
                                    uint32_t il, struct gguf_error *err)
{
    char *at = j->store + j->at[b];
    bool more;
    GG_TRY(start_batch(j, j->batch[b], err));
    for (;;) {
        GG_TRY(gg_session_next_ubatch(j->s, &more, err));
        if (!more)
            return GGUF_OK;
        GG_TRY(fn(j, il, &at, err));
    }
}

static enum gguf_status run_batch(struct layered *j, uint32_t il, size_t b,
                                  struct gguf_error *err)
{
    GG_TRY(each_ubatch(j, b, run_layer, il, err));
    return report_progress(j, j->now.n, err);
}

static enum gguf_status hand_out(struct layered *j, size_t b,
                                 struct gguf_error *err)
{
    GG_TRY(each_ubatch(j, b, get_outputs, j->cuts.n_layers, err));
    gg_session_finish_outputs(j->s, false);
    return j->on_outputs.fn(j->on_outputs.user, b, err);
}

/* ---- all batches ---- */

static enum gguf_status check_session(const struct gguf_session *s, size_t n,
                                      struct gguf_error *err)
{
    if (!n)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "no batches to decode layer by layer");
    if (gg_model_needs_whole_sequence(s->model) ||
        gg_model_encodes_first(s->model))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "models of architecture '%s' are not computed "
                            "layer by layer: they encode",
                            s->model->arch->name);
    if (gguf_sched_n_backends(s->sched) > 1)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
            "layer by layer: the session has several backends, expected one");
    return GGUF_OK;
}

static enum gguf_status prepare_job(struct layered *j, struct gguf_error *err)
{
    const struct gguf_allocator *a = j->s->allocator;
    const uint32_t n_layers = gg_model_n_unrolled_layers(j->s->model);
    uint64_t size;
    GG_TRY(gg_graph_cuts_init(&j->cuts, n_layers, a, err));
    j->at = gg_mem_alloc_zero(a, (uint64_t)j->n + 1, sizeof *j->at);
    if (!j->at)
        return gg_error_set_nomem(err, (j->n + 1) * sizeof *j->at);
    for (size_t b = 0; b < j->n; b++) {
        GG_TRY(measure_store(j, j->batch[b], &size, err));
        if (gg_ckd_add(&j->at[b + 1], j->at[b], size))
            return gg_error_set_nomem(err, SIZE_MAX);
        j->total += (uint64_t)n_layers * j->batch[b]->n;
    }
    size = j->at[j->n];
    j->store = size <= SIZE_MAX ? gg_mem_alloc(a, (size_t)size) : NULL;
    return j->store ? GGUF_OK
                    : gg_error_set_nomem(err, (size_t)GG_MIN(size, SIZE_MAX));
}

static enum gguf_status run_job(struct layered *j, struct gguf_error *err)
{
    GG_TRY(gg_params_need(j->on_outputs.fn, "on_outputs", err));
    GG_TRY(check_session(j->s, j->n, err));
    GG_TRY(gg_params_need_all(j->batch, j->n, "batch", err));
    GG_TRY(prepare_job(j, err));
    for (uint32_t il = 0; il < j->cuts.n_layers; il++)
        for (size_t b = 0; b < j->n; b++)
            GG_TRY(run_batch(j, il, b, err));
    for (size_t b = 0; b < j->n; b++)
        GG_TRY(hand_out(j, b, err));
    return GGUF_OK;
}

static void fini_job(struct layered *j)
{
    const struct gguf_allocator *a = j->s->allocator;
    gg_graph_cuts_fini(&j->cuts);
    gg_mem_free(a, j->at);
    gg_mem_free(a, j->store);
}

enum gguf_status gguf_session_decode_layered(
    struct gguf_session *s, const struct gguf_batch *const *batches, size_t n,
    struct gguf_session_outputs_callback on_outputs,
    struct gguf_progress_callback progress, struct gguf_error *err)
{
    struct layered j = { .s = s,
                         .batch = batches,
                         .n = n,
                         .on_outputs = on_outputs,
                         .progress = progress,
                         .cuts.allocator = s->allocator };
    const enum gguf_status st = run_job(&j, err);
    const enum gguf_status cleared =
        gguf_session_clear(s, st == GGUF_OK ? err : NULL);
    fini_job(&j);
    return st == GGUF_OK ? cleared : st;
}

enum gguf_status gguf_session_layered_size(struct gguf_session *s,
                                           const struct gguf_batch *batch,
                                           uint64_t *size,
                                           struct gguf_error *err)
{
    struct layered j = { .s = s, .cuts.allocator = s->allocator };
    uint64_t bytes = 0;
    *size = 0;
    enum gguf_status st = check_session(s, 1, err);
    if (st == GGUF_OK)
        st = gg_graph_cuts_init(&j.cuts, gg_model_n_unrolled_layers(s->model),
                                s->allocator, err);
    if (st == GGUF_OK)
        st = measure_store(&j, batch, &bytes, err);
    const enum gguf_status cleared =
        gguf_session_clear(s, st == GGUF_OK ? err : NULL);
    fini_job(&j);
    *size = st == GGUF_OK ? bytes : 0;
    return st == GGUF_OK ? cleared : st;
}
