/* SPDX-License-Identifier: MIT */
/* embed.c - pooled states, and the layers behind them */
#include "config.h"
#include "run/session_int.h"

#include "base/ckd.h"
#include "base/mem.h"
#include "sched/sched_int.h"

#include <inttypes.h>
#include <string.h>

enum gguf_status gg_embed_init(struct gg_embed *e,
                               const struct gguf_model *model,
                               enum gguf_pooling kind, uint32_t n_seq,
                               const struct gguf_allocator *a,
                               struct gguf_error *err)
{
    const size_t n_embd = model->hp.n_embd;
    size_t size;
    *e = (struct gg_embed){ .allocator = a,
                            .model = model,
                            .kind = gg_model_resolve_pooling(model, kind),
                            .n_seq = n_seq,
                            .n_embd = n_embd };
    e->has_head = gg_model_has_pooled_head(model, e->kind);
    if (e->kind == GGUF_POOLING_NONE && !e->has_head)
        return GGUF_OK;
    GG_TRY(gg_model_check_pooled(model, e->kind, err));
    e->row = gg_mem_alloc_zero(a, n_embd, sizeof *e->row);
    if (!e->row)
        return gg_error_set_nomem(err, n_embd * sizeof *e->row);
    if (e->kind == GGUF_POOLING_NONE)
        return GGUF_OK;
    if (gg_ckd_array(&size, n_seq, n_embd * sizeof *e->sum))
        return gg_error_set_nomem(err, SIZE_MAX);
    e->sum = gg_mem_alloc(a, size);
    e->n_tok = gg_mem_alloc_zero(a, n_seq, sizeof *e->n_tok);
    return e->sum && e->n_tok ? GGUF_OK : gg_error_set_nomem(err, size);
}

/* The graph is as wide as a wide batch, so that digits are always the same. */
static enum gguf_status plan_embed(struct gg_embed *e, struct gguf_error *err)
{
    struct gguf_ctx *c = e->ctx;
    gguf_ctx_reset(c);
    e->graph = NULL;
    struct gguf_graph *graph = gguf_graph_create(
        c, GG_BUILD_HEAD_NODES + gg_model_n_adapter_nodes(e->model, e->added));
    e->in = gguf_tensor_add_flags(gguf_tensor_create_2d(c, GGUF_DTYPE_F32,
                                                        (int64_t)e->n_embd,
                                                        e->n_wide),
                                  GGUF_TENSOR_INPUT);
    e->out = gguf_tensor_add_flags(
        gg_build_pooled(e->model, e->added, c, e->kind, e->in),
        GGUF_TENSOR_OUTPUT);
    GG_TRY(gguf_graph_finish(c, graph, e->out, err));
    GG_TRY(gguf_sched_alloc(e->sched, graph, err));
    e->graph = graph;
    return GGUF_OK;
}

enum gguf_status gg_embed_plan(struct gg_embed *e, struct gguf_error *err)
{
    if (!e->sched)
        return GGUF_OK;
    GG_TRY(plan_embed(e, err));
    gg_model_note_adapters(e->added, e->graph);
    return gg_sched_prepare(e->sched, err);
}

enum gguf_status gg_embed_drop_graph(struct gg_embed *e,
                                     struct gguf_error *err)
{
    e->graph = NULL;
    return e->sched ? gguf_sched_reset(e->sched, err) : GGUF_OK;
}

enum gguf_status gg_embed_reserve(struct gg_embed *e,
                                  const struct gguf_sched_params *p,
                                  uint32_t n_wide, struct gguf_error *err)
{
    if (!e->has_head)
        return GGUF_OK;
    e->n_wide = n_wide;
    GG_TRY(gguf_sched_create(&e->sched, p, err));
    GG_TRY(gg_embed_plan(e, err));
    const size_t n = (size_t)e->out->ne[0];
    e->result = gg_mem_alloc_zero(e->allocator, n, sizeof *e->result);
    if (!e->result)
        return gg_error_set_nomem(err, n * sizeof *e->result);
    return GGUF_OK;
}

void gg_embed_fini(struct gg_embed *e)
{
    gguf_sched_destroy(e->sched);
    gg_mem_free(e->allocator, e->result);
    gg_mem_free(e->allocator, e->row);
    gg_mem_free(e->allocator, e->n_tok);
    gg_mem_free(e->allocator, e->sum);
}

void gg_embed_clear(struct gg_embed *e)
{
    e->done = false;
    if (e->n_tok)
        memset(e->n_tok, 0, e->n_seq * sizeof *e->n_tok);
}

void gg_embed_add(struct gg_embed *e, uint32_t seq, const float *x)
{
    double *sum = e->sum + seq * e->n_embd;
    if (!e->n_tok[seq]++)
        memset(sum, 0, e->n_embd * sizeof *sum);
    for (size_t i = 0; i < e->n_embd; i++)
        sum[i] += (double)x[i];
}

/* ---- vectors of a session ---- */

static enum gguf_status compute_embed(struct gguf_session *s,
                                      struct gguf_error *err)
{
    struct gg_embed *e = &s->embed;
    const size_t row = e->n_embd * sizeof *e->row;
    if (!e->graph || gg_sched_is_stale(e->sched))
        GG_TRY(plan_embed(e, err));
    for (uint32_t i = 0; i < e->n_wide; i++)
        GG_TRY(gguf_tensor_set(e->in, e->row, i * row, row, err));
    GG_TRY(gg_session_compute(s, e->sched, e->graph, err));
    return gguf_tensor_get(e->out, e->result, 0,
                           (size_t)e->out->ne[0] * sizeof *e->result, err);
}

enum gguf_pooling gguf_session_pooling(const struct gguf_session *s)
{
    return s->embed.kind;
}

enum gguf_status gguf_session_embedding(struct gguf_session *s, uint32_t seq,
                                        const float **row, size_t *n,
                                        struct gguf_error *err)
{
    struct gg_embed *e = &s->embed;
    *row = NULL;
    *n = 0;
    if (e->kind == GGUF_POOLING_NONE)
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
            "the session's pooling is NONE: read states of tokens instead");
    if (seq >= e->n_seq || !e->done || !e->n_tok[seq])
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "the last batch had no tokens of sequence "
                            "%" PRIu32,
                            seq);
    for (size_t i = 0; i < e->n_embd; i++)
        e->row[i] = (float)(e->sum[seq * e->n_embd + i] / e->n_tok[seq]);
    if (e->has_head)
        GG_TRY(compute_embed(s, err));
    *row = e->has_head ? e->result : e->row;
    *n = e->has_head ? (size_t)e->out->ne[0] : e->n_embd;
    return GGUF_OK;
}

enum gguf_status gguf_session_token_embedding(struct gguf_session *s,
                                              size_t output, const float **row,
                                              size_t *n,
                                              struct gguf_error *err)
{
    struct gg_embed *e = &s->embed;
    const float *state;
    *row = NULL;
    *n = 0;
    if (e->kind != GGUF_POOLING_NONE)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "the session's pooling is '%s': tokens have "
                            "vectors if it is NONE",
                            gguf_pooling_name(e->kind));
    GG_TRY(gguf_session_states(s, output, 1, &state, err));
    if (e->has_head) {
        memcpy(e->row, state, e->n_embd * sizeof *e->row);
        GG_TRY(compute_embed(s, err));
    }
    *row = e->has_head ? e->result : state;
    *n = e->has_head ? (size_t)e->out->ne[0] : e->n_embd;
    return GGUF_OK;
}
