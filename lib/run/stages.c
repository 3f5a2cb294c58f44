/* SPDX-License-Identifier: MIT */
/* stages.c - many batches, computed up to each stage of products
 *
 * All batches have the same shape, so one graph computes all of them. A batch
 * is restored at its last cut, computed up to the cut of the wanted stage,
 * stored again, and computed on to the first product. The session's memory is
 * that of one batch: sequences begin anew each time. */
#include "config.h"
#include "run/stages.h"

#include "base/ckd.h"
#include "base/mem.h"
#include "base/outfile_int.h"
#include "run/session_int.h"
#include "run/stage_list.h"

struct gg_stages {
    struct gguf_session *s;
    const struct gguf_batch *batch;
    size_t n;
    struct gg_stage_list list;
    struct gg_graph_cuts cuts;
    const struct gguf_graph *graph;
    uint64_t generation; /* gguf_graph_generation() of graph */
    size_t *at;          /* [n], cut at which each batch is stored */
    uint64_t size;       /* bytes of a stored batch, at most */
    char *store;         /* [n][size]; NULL: in the file */
    char *row;           /* [size], a batch on its way to the file */
    struct gg_outfile file;
};

/* ---- stored batches ---- */

/* Copy the tensors that are carried over a cut from memory, or to it. */
static enum gguf_status move_carried(struct gg_stages *r, size_t cut,
                                     char *data, bool restore,
                                     struct gguf_error *err)
{
    struct gguf_tensor *t;
    for (size_t i = 0;
         (t = gg_graph_cuts_next_at(&r->cuts, r->graph, cut, &i));) {
        const uint64_t size = gguf_tensor_size(t);
        GG_TRY(restore ? gguf_tensor_set(t, data, 0, size, err)
                       : gguf_tensor_get(t, data, 0, size, err));
        data += size;
    }
    return GGUF_OK;
}

static enum gguf_status restore_batch(struct gg_stages *r, size_t b,
                                      struct gguf_error *err)
{
    const size_t cut = r->at[b];
    if (r->store)
        return move_carried(r, cut, r->store + b * r->size, true, err);
    GG_TRY(gg_outfile_read_at(&r->file, b * r->size, r->row, r->cuts.live[cut],
                              err));
    return move_carried(r, cut, r->row, true, err);
}

static enum gguf_status store_batch(struct gg_stages *r, size_t b, size_t cut,
                                    struct gguf_error *err)
{
    r->at[b] = cut;
    if (r->store)
        return move_carried(r, cut, r->store + b * r->size, false, err);
    GG_TRY(move_carried(r, cut, r->row, false, err));
    return gg_outfile_write_at(&r->file, b * r->size, r->row,
                               r->cuts.live[cut], err);
}

/* ---- computing ---- */

/* Plan a batch, and make its graph. */
static enum gguf_status prepare_batch(struct gg_stages *r, size_t b,
                                      struct gguf_error *err)
{
    struct gguf_session *s = r->s;
    bool more;
    GG_TRY(gguf_session_clear(s, err));
    GG_TRY(gg_session_plan_batch(s, &r->batch[b], err));
    GG_TRY(gg_session_next_ubatch(s, &more, err));
    if (!more || (size_t)(s->ubatch.shape.n_real * s->ubatch.shape.n_seq) !=
                     r->batch[b].n)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "stages: batch %zu of %zu tokens is not one "
                            "micro-batch",
                            b, r->batch[b].n);
    return gg_session_prepare_graph(s, &s->ubatch.shape, err);
}

/* Make the graph that of a batch, with its inputs. */
static enum gguf_status start_batch(struct gg_stages *r, size_t b,
                                    struct gguf_error *err)
{
    GG_TRY(prepare_batch(r, b, err));
    if (r->s->pass.graph != r->graph ||
        gguf_graph_generation(r->graph) != r->generation)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "stages: the graph of batch %zu has another shape",
                            b);
    return gg_session_set_inputs(r->s, err);
}

/* Compute a batch from its stored place to a cut, store it there, and compute
 * on to node end. */
static enum gguf_status compute_batch(struct gg_stages *r, size_t b,
                                      size_t cut, size_t end,
                                      struct gguf_error *err)
{
    GG_TRY(start_batch(r, b, err));
    GG_TRY(restore_batch(r, b, err));
    if (r->at[b] < cut) {
        GG_TRY(gg_session_compute_nodes(r->s, r->at[b], cut, err));
        GG_TRY(store_batch(r, b, cut, err));
    }
    return gg_session_compute_nodes(r->s, r->at[b], end, err);
}

enum gguf_status gg_stages_run(struct gg_stages *r, size_t i, size_t batch,
                               struct gguf_error *err)
{
    const struct gg_stages_stage *stage = &r->list.stage[i];
    if (r->at[batch] > stage->node)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "stage %zu of batch %zu: a later one was computed",
                            i, batch);
    return compute_batch(r, batch, stage->cut, stage->node, err);
}

enum gguf_status gg_stages_finish(struct gg_stages *r, size_t batch,
                                  struct gguf_error *err)
{
    const size_t end = r->graph->n_nodes;
    GG_TRY(compute_batch(r, batch, end, end, err));
    GG_TRY(gg_session_get_outputs(r->s, err));
    gg_session_finish_outputs(r->s, false);
    return GGUF_OK;
}

/* ---- the object ---- */

static enum gguf_status check_params(const struct gg_stages_params *p,
                                     struct gguf_error *err)
{
    const struct gguf_session *s = p->session;
    if (!p->n_batches)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "stages: no batches");
    for (size_t b = 1; b < p->n_batches; b++)
        if (p->batches[b].n != p->batches[0].n)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "stages: batch %zu has %zu tokens, batch 0 "
                                "has %zu",
                                b, p->batches[b].n, p->batches[0].n);
    if (gg_model_encodes_first(s->model))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "models of architecture '%s' are not computed "
                            "stage by stage: they encode a text first",
                            s->model->arch->name);
    if (gguf_sched_n_backends(s->sched) > 1)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
            "stage by stage: the session has several backends, expected one");
    return GGUF_OK;
}

/* Find stages, cuts, and the most bytes that a batch carries. */
static enum gguf_status analyse_graph(struct gg_stages *r,
                                      struct gguf_error *err)
{
    GG_TRY(prepare_batch(r, 0, err));
    r->graph = r->s->pass.graph;
    r->generation = gguf_graph_generation(r->graph);
    GG_TRY(gg_graph_cuts_init(&r->cuts, 0, r->s->allocator, err));
    GG_TRY(gg_graph_cuts_measure(&r->cuts, r->graph, err));
    GG_TRY(gg_stage_list_init(&r->list, r->graph, r->s->allocator, err));
    gg_stage_list_find_cuts(&r->list, &r->cuts, r->graph);
    r->size = r->cuts.live[r->graph->n_nodes];
    for (size_t i = 0; i < r->list.n_stages; i++)
        r->size = GG_MAX(r->size, r->cuts.live[r->list.stage[i].cut]);
    return GGUF_OK;
}

static enum gguf_status make_store(struct gg_stages *r,
                                   const struct gg_stages_params *p,
                                   struct gguf_error *err)
{
    const struct gguf_allocator *a = r->s->allocator;
    uint64_t all;
    r->at = gg_mem_alloc_zero(a, r->n, sizeof *r->at);
    if (!r->at)
        return gg_error_set_nomem(err, r->n * sizeof *r->at);
    if (gg_ckd_mul(&all, r->size, (uint64_t)r->n) || r->size > SIZE_MAX)
        return gg_error_set_nomem(err, SIZE_MAX);
    if (!p->spill_path || all <= p->max_memory) {
        r->store = all <= SIZE_MAX ? gg_mem_alloc(a, (size_t)all) : NULL;
        return r->store
                   ? GGUF_OK
                   : gg_error_set_nomem(err, (size_t)GG_MIN(all, SIZE_MAX));
    }
    r->row = gg_mem_alloc(a, (size_t)r->size);
    if (!r->row)
        return gg_error_set_nomem(err, (size_t)r->size);
    GG_TRY(gg_outfile_open(&r->file, a, p->spill_path,
                           GG_OUTFILE_FORCE | GG_OUTFILE_NO_SYNC, err));
    return gg_outfile_reserve(&r->file, all, false, err);
}

enum gguf_status gg_stages_create(struct gg_stages **out,
                                  const struct gg_stages_params *p,
                                  struct gguf_error *err)
{
    *out = NULL;
    GG_TRY(check_params(p, err));
    struct gg_stages *r =
        gg_mem_alloc_zero(p->session->allocator, 1, sizeof *r);
    if (!r)
        return gg_error_set_nomem(err, sizeof *r);
    r->s = p->session;
    r->batch = p->batches;
    r->n = p->n_batches;
    r->file.fd = -1;
    r->cuts.allocator = r->list.allocator = r->s->allocator;
    enum gguf_status st = analyse_graph(r, err);
    if (st == GGUF_OK)
        st = make_store(r, p, err);
    if (st == GGUF_OK)
        *out = r;
    else
        gg_stages_destroy(r);
    return st;
}

void gg_stages_destroy(struct gg_stages *r)
{
    if (!r)
        return;
    const struct gguf_allocator *a = r->s->allocator;
    /* a memory of the session that cannot be cleared is reported by the next
     * call that uses it */
    if (gguf_session_clear(r->s, NULL) != GGUF_OK)
        gg_session_forget_graphs(r->s);
    gg_outfile_abort(&r->file);
    gg_stage_list_fini(&r->list);
    gg_graph_cuts_fini(&r->cuts);
    gg_mem_free(a, r->at);
    gg_mem_free(a, r->store);
    gg_mem_free(a, r->row);
    gg_mem_free(a, r);
}

/* ---- accessors ---- */

size_t gg_stages_count(const struct gg_stages *r)
{
    return r->list.n_stages;
}

const struct gg_stages_stage *gg_stages_at(const struct gg_stages *r, size_t i)
{
    return &r->list.stage[i];
}

uint64_t gg_stages_stored_size(const struct gg_stages *r)
{
    return r->size;
}

const struct gguf_tensor *gg_stages_input(const struct gg_stages *r, size_t i)
{
    return r->graph->nodes[r->list.stage[i].node]->src[1];
}

const struct gguf_tensor *gg_stages_ids(const struct gg_stages *r, size_t i)
{
    return r->list.stage[i].has_ids
               ? r->graph->nodes[r->list.stage[i].node]->src[2]
               : NULL;
}
