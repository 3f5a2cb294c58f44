/* SPDX-License-Identifier: MIT */
/* decode.c - run a batch, one micro-batch after another */
#include "config.h"
#include "run/session_int.h"

#include "base/params.h"

#include <inttypes.h>

enum gguf_status gg_session_get_outputs(struct gguf_session *s,
                                        struct gguf_error *err)
{
    const size_t n_embd = s->model->hp.n_embd, row = n_embd * sizeof *s->out;
    const struct gg_batch_plan *p = &s->plan;
    for (uint32_t k = 0; k < s->ubatch.n_out; k++) {
        const struct gg_batch_entry *e = gg_ubatch_output(&s->ubatch, p, k);
        float *x =
            e->out != UINT32_MAX ? s->out + e->out * n_embd : s->embed.row;
        GG_TRY(gguf_tensor_get(s->states, x, (uint64_t)k * row, row, err));
        for (uint32_t i = 0; i < e->n_set; i++) {
            const uint32_t seq = p->members[e->set + i];
            if (gg_batch_is_pooled(p, seq, (uint32_t)(e - p->entry)))
                gg_embed_add(&s->embed, seq, x);
        }
    }
    return GGUF_OK;
}

/* May the next micro-batch begin before this one is computed? */
static bool may_overlap(const struct gguf_session *s)
{
    return s->n_copies > 1 && !s->finite_check.on &&
           s->embed.kind == GGUF_POOLING_NONE;
}

/* Start a pass, and queue copies of its outputs behind it. */
static enum gguf_status start_pass(struct gguf_session *s,
                                   struct gguf_error *err)
{
    const size_t n_embd = s->model->hp.n_embd, row = n_embd * sizeof *s->out;
    const int b = gguf_sched_find_backend(s->sched, s->states);
    s->in_flight = true;
    GG_TRY(gg_session_start_pass(s, err));
    for (uint32_t k = 0; k < s->ubatch.n_out; k++) {
        const struct gg_batch_entry *e =
            gg_ubatch_output(&s->ubatch, &s->plan, k);
        if (e->out != UINT32_MAX)
            GG_TRY(gguf_backend_get_async(
                gguf_sched_backend(s->sched, (unsigned)b), s->states,
                s->out + e->out * n_embd, (uint64_t)k * row, row, err));
    }
    return GGUF_OK;
}

static enum gguf_status run_pass(struct gguf_session *s,
                                 struct gguf_session_stage *stage,
                                 struct gguf_error *err)
{
    const struct gg_ubatch_shape *h = &s->ubatch.shape;
    const double begin = gg_session_clock();
    GG_TRY(gg_session_prepare_graph(s, h, err));
    GG_TRY(gg_session_set_inputs(s, err));
    if (may_overlap(s)) {
        GG_TRY(start_pass(s, err));
    } else {
        GG_TRY(gg_session_compute(s, s->sched, s->pass.graph, err));
        GG_TRY(gg_session_get_outputs(s, err));
    }
    gg_session_count_stage(stage, (uint64_t)(h->n_real * h->n_seq), begin);
    return GGUF_OK;
}

/* Stage of the timings to which a batch belongs. */
static struct gguf_session_stage *stage_of(struct gguf_session *s,
                                           bool encodes)
{
    if (encodes || gg_model_needs_whole_sequence(s->model))
        return &s->timings.encode;
    return s->plan.n_entry == 1 ? &s->timings.single : &s->timings.prompt;
}

/* How a batch is run: where its tokens go, and the most that a sequence may
 * have. */
struct way {
    bool whole;   /* sequences are cleared first, and computed as a whole */
    bool encodes; /* encode for a decoder */
    /* tables in which tokens take cells */
    struct gg_cells *table[GG_N_ATTN_TYPES];
    uint32_t most;
};

/* Check that all sequences of a decoder have an encoded text. */
static enum gguf_status check_encoded(const struct gguf_session *s,
                                      struct gguf_error *err)
{
    for (uint32_t q = 0; q < s->n_seq; q++)
        if (s->plan.count[q] && !s->encoded.seq[q].n_used)
            return gg_error_set(
                err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                "sequence %" PRIu32
                ": no text was encoded for it; call gguf_session_encode() "
                "first",
                q);
    return GGUF_OK;
}

static enum gguf_status plan_batch(struct gguf_session *s, struct way way,
                                   const struct gguf_batch *batch,
                                   struct gguf_error *err)
{
    const bool needs = gg_model_encodes_first(s->model) && !way.encodes;
    const struct gg_batch_target goal = {
        .table = { way.whole ? NULL : way.table[0], way.table[1] },
        .most = way.most,
        .share = s->shares,
        .flat = s->shares,
    };
    size_t n;
    GG_TRY(gg_batch_check(batch, s->model->hp.n_vocab, s->n_seq, &n, err));
    GG_TRY(gg_batch_check_types(batch, gg_model_n_token_types(s->model), err));
    const enum gguf_status room = gg_batch_reserve(&s->plan, n, err);
    if (room != GGUF_OK) {
        s->n_out = 0;
        gg_embed_clear(&s->embed);
        return room;
    }
    GG_TRY(gg_batch_make_plan(&s->plan, batch, n, &goal, err));
    if (s->ubatch.counts_past)
        GG_TRY(gg_compressed_cache_check(&s->plan, &s->cells, err));
    GG_TRY(gg_session_check_windows(s, err));
    if (needs)
        GG_TRY(check_encoded(s, err));
    GG_TRY(gg_session_reserve_outputs(s, s->plan.n_out, err));
    s->n_out = 0;
    gg_embed_clear(&s->embed);
    for (uint32_t q = 0; way.whole && q < s->n_seq; q++)
        if (s->plan.count[q])
            GG_TRY(gg_session_clear_sequence(s, q, err));
    gg_ubatch_start(&s->ubatch, way.table, needs ? &s->encoded : NULL,
                    s->plan.n_entry < s->n_wide ? 1 : s->n_wide, way.encodes);
    return GGUF_OK;
}

enum gguf_status gg_session_next_ubatch(struct gguf_session *s, bool *more,
                                        struct gguf_error *err)
{
    *more = gg_ubatch_next(&s->ubatch, &s->plan);
    if (!*more)
        return GGUF_OK;
    GG_TRY(gg_session_make_room(s, err));
    gg_ubatch_take_cells(&s->ubatch, &s->plan);
    return GGUF_OK;
}

void gg_session_finish_outputs(struct gguf_session *s, bool encoded)
{
    s->n_out = s->plan.n_out;
    s->embed.done = true;
    s->wide = s->plan.n_entry >= s->n_wide;
    s->out_encoded = encoded;
}

static enum gguf_status run_passes(struct gguf_session *s, struct way way,
                                   struct gguf_error *err)
{
    bool more = true;
    while (more) {
        GG_TRY(gg_session_next_ubatch(s, &more, err));
        if (more && (!way.whole || way.encodes || s->ubatch.n_out))
            GG_TRY(run_pass(s, stage_of(s, way.encodes), err));
    }
    return GGUF_OK;
}

static enum gguf_status run_batch(struct gguf_session *s, struct way way,
                                  const struct gguf_batch *batch,
                                  struct gguf_error *err)
{
    GG_TRY(plan_batch(s, way, batch, err));
    enum gguf_status st = run_passes(s, way, err);
    const double begin = gg_session_clock();
    const enum gguf_status rest = gg_session_wait(s, st ? NULL : err);
    stage_of(s, way.encodes)->seconds += gg_session_clock() - begin;
    if (st == GGUF_OK)
        st = rest;
    if (st == GGUF_OK)
        gg_session_finish_outputs(s, way.encodes);
    return st;
}

/* Append tokens to their sequences. */
static struct way append_way(struct gguf_session *s)
{
    return (struct way){ .table = { s->table[0], s->table[1] },
                         .most = s->n_ctx };
}

/* Compute whole sequences. */
static struct way whole_sequence_way(struct gguf_session *s, bool encodes)
{
    return (struct way){ .whole = true,
                         .encodes = encodes,
                         .table = { encodes ? &s->encoded : &s->cells },
                         .most = GG_MIN(s->n_ctx, s->n_ubatch) };
}

static struct way decoding_way(struct gguf_session *s)
{
    return gg_model_needs_whole_sequence(s->model)
               ? whole_sequence_way(s, false)
               : append_way(s);
}

enum gguf_status gg_session_plan_batch(struct gguf_session *s,
                                       const struct gguf_batch *batch,
                                       struct gguf_error *err)
{
    return plan_batch(s, decoding_way(s), batch, err);
}

enum gguf_status gguf_session_decode(struct gguf_session *s,
                                     const struct gguf_batch *batch,
                                     struct gguf_error *err)
{
    struct gguf_batch own = GGUF_BATCH_INIT;
    GG_TRY(gg_params_take(&own, sizeof own, batch, "gguf_batch", err));
    if (s->output_cache.replays)
        return gg_output_cache_load(s, err);
    GG_TRY(run_batch(s, decoding_way(s), &own, err));
    return s->output_cache.on ? gg_output_cache_store(s, err) : GGUF_OK;
}

enum gguf_status gguf_session_encode(struct gguf_session *s,
                                     const struct gguf_batch *batch,
                                     struct gguf_error *err)
{
    struct gguf_batch own = GGUF_BATCH_INIT;
    const bool first = gg_model_encodes_first(s->model);
    GG_TRY(gg_params_take(&own, sizeof own, batch, "gguf_batch", err));
    if (!first && !gg_model_needs_whole_sequence(s->model))
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "models of architecture '%s' have no encoder",
                            s->model->arch->name);
    return run_batch(s, whole_sequence_way(s, first), &own, err);
}
