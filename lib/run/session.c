/* SPDX-License-Identifier: MIT */
/* session.c - create and destroy sessions */
#include "config.h"
#include "run/session_int.h"

#include "base/ckd.h"
#include "backend/backend_int.h"
#include "base/mem.h"
#include "base/params.h"
#include "model/weight/weight_move.h"

/* Bytes for rows of logits that are computed at once, about. */
#define LOGITS_SIZE ((size_t)32 << 20)
#define MAX_LOGITS  4096

/* Default of n_ubatch: enough tokens for matrix products to run at full speed,
 * with as few activations as possible. */
#define DEFAULT_UBATCH 512

static struct gg_cache_types types_of(const struct gguf_session_params *p)
{
    return (struct gg_cache_types){
        .k = p->key_dtype ? p->key_dtype->id : GGUF_DTYPE_F32,
        .v = p->value_dtype ? p->value_dtype->id : GGUF_DTYPE_F32,
    };
}

static enum gguf_status check_params(const struct gguf_model *model,
                                     const struct gguf_session_params *p,
                                     struct gguf_error *err)
{
    if (!model || !p->backend)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "a session needs a model and a backend");
    if (p->n_preferred >= GGUF_SCHED_MAX_BACKENDS)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%u preferred backends, at most %d",
                            p->n_preferred, GGUF_SCHED_MAX_BACKENDS - 1);
    GG_TRY(gg_params_need_all(p->preferred, p->n_preferred,
                              "preferred backend", err));
    if (p->n_copies > GGUF_SCHED_MAX_COPIES)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%" PRIu32 " copies of inputs, at most %d",
                            p->n_copies, GGUF_SCHED_MAX_COPIES);
    if (!gguf_buft_is_host(gguf_backend_buft(p->backend)))
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "backend %s does not work in host memory",
                            gguf_backend_name(p->backend));
    const struct gg_cache_types types = types_of(p);
    GG_TRY(gg_cache_types_check(&types, model, err));
    if ((unsigned)p->pooling > GGUF_POOLING_RANK)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "pooling %d, must be 0 to %d", (int)p->pooling,
                            (int)GGUF_POOLING_RANK);
    const uint64_t n_ctx = p->n_ctx ? p->n_ctx : model->hp.n_ctx_train;
    if (n_ctx > INT32_MAX || n_ctx * p->n_seq > INT32_MAX)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%" PRIu32 " sequences of %" PRIu64
                            " tokens: must be 1 to 2^31 - 1 in all",
                            p->n_seq, n_ctx);
    if (p->unified &&
        (gg_model_all_memory_kinds(model) & GG_MODEL_MEMORY_COMPRESSED))
        return gg_error_set(
            err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
            "unified: not supported by architecture '%s', whose keys stand "
            "for blocks of tokens",
            model->arch->name);
    return GGUF_OK;
}

static enum gguf_status make_ctx(struct gguf_session *s, size_t n_tensors,
                                 size_t n_graph, struct gguf_ctx **out,
                                 struct gguf_error *err)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.allocator = s->allocator;
    p.mem_size = n_tensors * gguf_tensor_overhead() +
                 (n_graph ? gguf_graph_overhead(n_graph) : 0);
    p.no_alloc = true;
    return gguf_ctx_create(out, &p, err);
}

/* Make the tables of cells. */
static enum gguf_status make_tables(struct gguf_session *s, bool full_windows,
                                    struct gguf_error *err)
{
    const uint32_t n_window = gg_session_window_cells(s, full_windows);
    GG_TRY(gg_cells_init(&s->cells, s->n_ctx, s->n_seq, s->shared,
                         s->allocator, err));
    s->table[GG_ATTN_FULL] = &s->cells;
    s->first_visible =
        gg_mem_alloc_zero(s->allocator, s->n_seq, sizeof *s->first_visible);
    if (!s->first_visible)
        return gg_error_set_nomem(err, s->n_seq * sizeof *s->first_visible);
    if (n_window) {
        GG_TRY(gg_cells_init(&s->windows, n_window, s->n_seq, s->shared,
                             s->allocator, err));
        s->table[GG_ATTN_WINDOW] = &s->windows;
    }
    return gg_model_encodes_first(s->model)
               ? gg_cells_init(&s->encoded, s->n_ctx, s->n_seq, false,
                               s->allocator, err)
               : GGUF_OK;
}

/* Describe the memory; gg_session_place_memory() gives it buffers. */
static enum gguf_status make_memory(struct gguf_session *s,
                                    const struct gguf_session_params *p,
                                    struct gguf_error *err)
{
    const size_t n = GG_MEMORY_TENSORS * GG_N_MEMORIES *
                     (size_t)gg_model_n_unrolled_layers(s->model);
    GG_TRY(make_ctx(s, n, 0, &s->cache_ctx, err));
    GG_TRY(make_tables(s, p->full_windows, err));
    const struct gg_memory_params mp = {
        .model = s->model,
        .allocator = s->allocator,
        .n_ctx = s->n_ctx,
        .n_seq = s->n_seq,
        .n_ubatch = s->n_ubatch,
        .types = types_of(p),
        .table = { s->table[0], s->table[1] },
        .encoded = &s->encoded,
    };
    return gg_memory_init(s->memory, &mp, s->cache_ctx, err);
}

/* Make room for the largest batch, and for the outputs of a pass. */
static enum gguf_status make_scratch(struct gguf_session *s,
                                     struct gguf_error *err)
{
    s->plan.allocator = s->allocator;
    s->plan.n_seq = s->n_seq;
    s->plan.pools = gg_model_token_pooling(s->model, s->embed.kind);
    GG_TRY(gg_batch_reserve(&s->plan, (size_t)s->n_ctx * s->n_seq, err));
    GG_TRY(gg_ubatch_init(&s->ubatch, s->n_ubatch, s->allocator, err));
    s->ubatch.reads_ahead = s->n_copies > 1;
    s->ubatch.counts_past = (gg_model_all_memory_kinds(s->model) &
                             GG_MODEL_MEMORY_COMPRESSED) != 0;
    return gg_session_reserve_outputs(s, s->n_ubatch, err);
}

static enum gguf_status make_graphs(struct gguf_session *s,
                                    const struct gguf_session_params *p,
                                    struct gguf_error *err)
{
    struct gguf_backend *backends[GGUF_SCHED_MAX_BACKENDS];
    struct gguf_sched_params sp = GGUF_SCHED_PARAMS_INIT;
    for (unsigned i = 0; i < p->n_preferred; i++)
        backends[i] = p->preferred[i];
    backends[p->n_preferred] = s->backend;
    sp.allocator = s->allocator;
    sp.backends = backends;
    sp.n_backends = p->n_preferred + 1;
    sp.measure = gg_measure_find(s->allocator) != NULL;
    sp.n_copies = s->n_copies;
    sp.no_offload = p->no_offload_ops;
    GG_TRY(gguf_sched_create(&s->sched, &sp, err));
    sp.n_copies = 1;
    sp.memory_of = s->sched;
    GG_TRY(gguf_sched_create(&s->head_sched, &sp, err));
    GG_TRY(make_scratch(s, err));
    GG_TRY(gg_key_rotation_init(s, &sp, s->n_ubatch, err));
    GG_TRY(gg_session_apply_adapters(s, p->adapters, p->n_adapters, err));
    GG_TRY(gg_key_rotation_reserve(s, err));
    GG_TRY(gg_embed_reserve(&s->embed, &sp, s->n_wide, err));
    return gg_session_check_adapters(s, err);
}

static uint32_t most_wide(const struct gguf_session_params *p)
{
    uint32_t n =
        gguf_device_min_invariant_batch(gguf_backend_device(p->backend));
    for (unsigned i = 0; i < p->n_preferred; i++)
        n = GG_MAX(n, gguf_device_min_invariant_batch(
                          gguf_backend_device(p->preferred[i])));
    return n;
}

/* m: measure with it, and allocate little; NULL: make a real session. */
static enum gguf_status
create_session(struct gguf_session **out, const struct gguf_model *model,
               const struct gguf_session_params *params, struct gg_measure *m,
               struct gguf_error *err)
{
    struct gguf_session_params own = GGUF_SESSION_PARAMS_INIT;
    const struct gguf_session_params *p = &own;
    const double begin = gg_session_clock();
    *out = NULL;
    GG_TRY(
        gg_params_take(&own, sizeof own, params, "gguf_session_params", err));
    own.n_seq = GG_MAX(own.n_seq, 1);
    GG_TRY(check_params(model, p, err));
    if (m)
        gg_measure_init(m, p->allocator);
    else
        GG_TRY(gg_weights_check_in_memory(model, err));
    const struct gguf_allocator *a = m ? &m->allocator : p->allocator;
    struct gguf_session *s = gg_mem_alloc_zero(a, 1, sizeof *s);
    if (!s)
        return gg_error_set_nomem(err, sizeof *s);
    s->allocator = a;
    s->model = s->given = model;
    s->backend = p->backend;
    s->on_graph = p->on_graph;
    s->n_ctx = p->n_ctx ? p->n_ctx : model->hp.n_ctx_train;
    s->n_seq = p->n_seq;
    s->n_copies = p->n_preferred ? GG_MAX(p->n_copies, 1) : 1;
    s->memory_on_host = p->no_offload_memory;
    s->n_ubatch = p->n_ubatch ? p->n_ubatch : DEFAULT_UBATCH;
    s->n_wide = most_wide(p);
    s->n_ubatch = GG_MAX(s->n_ubatch, s->n_wide);
    s->shared = p->unified && !gg_model_needs_whole_sequence(model);
    s->shares =
        s->shared && (gg_model_all_memory_kinds(model) &
                      ~(unsigned)GG_MODEL_MEMORY_SWITCH) == GG_MODEL_MEMORY_KV;
    const uint32_t n_all = s->shared ? s->n_ctx : s->n_ctx * s->n_seq;
    if (s->n_ubatch > n_all)
        s->n_ubatch = n_all;
    s->max_logits = LOGITS_SIZE / sizeof(float) / model->hp.n_vocab;
    s->max_logits =
        GG_MIN(GG_MAX(s->max_logits, (size_t)s->n_wide), (size_t)MAX_LOGITS);
    enum gguf_status st = gg_session_override_rope(s, p, err);
    if (st == GGUF_OK)
        st = make_memory(s, p, err);
    if (st == GGUF_OK)
        st = gg_embed_init(&s->embed, s->model, p->pooling, s->n_seq,
                           s->allocator, err);
    s->embed.added = &s->added;
    if (st == GGUF_OK)
        st = make_graphs(s, p, err);
    if (st != GGUF_OK) {
        gguf_session_destroy(s);
        return st;
    }
    s->timings.create = gg_session_clock() - begin;
    *out = s;
    return GGUF_OK;
}

enum gguf_status gguf_session_create(struct gguf_session **out,
                                     const struct gguf_model *model,
                                     const struct gguf_session_params *p,
                                     struct gguf_error *err)
{
    return create_session(out, model, p, NULL, err);
}

enum gguf_status gg_session_measure(struct gguf_session **out,
                                    const struct gguf_model *model,
                                    const struct gguf_session_params *p,
                                    struct gg_measure *m,
                                    struct gguf_error *err)
{
    return create_session(out, model, p, m, err);
}

enum gguf_status gguf_session_estimate_memory(
    const struct gguf_model *model, const struct gguf_session_params *p,
    uint64_t *cache_size, uint64_t *graph_size, struct gguf_error *err)
{
    struct gg_measure m;
    struct gguf_session *s;
    GG_TRY(gg_params_need(cache_size, "cache_size", err));
    GG_TRY(gg_params_need(graph_size, "graph_size", err));
    *cache_size = *graph_size = 0;
    GG_TRY(create_session(&s, model, p, &m, err));
    gguf_session_memory_size(s, cache_size, graph_size);
    gguf_session_destroy(s);
    return GGUF_OK;
}

enum gguf_status
gguf_session_estimate_peak_memory(const struct gguf_model *model,
                                  const struct gguf_session_params *p,
                                  uint64_t *size, struct gguf_error *err)
{
    struct gg_measure m;
    struct gguf_session *s;
    GG_TRY(gg_params_need(size, "size", err));
    *size = 0;
    GG_TRY(create_session(&s, model, p, &m, err));
    *size = m.most;
    gguf_session_destroy(s);
    return GGUF_OK;
}

void gguf_session_destroy(struct gguf_session *s)
{
    if (!s)
        return;
    gg_embed_fini(&s->embed);
    gg_finite_check_fini(&s->finite_check, s->allocator);
    gg_key_rotation_fini(s);
    gguf_sched_destroy(s->head_sched);
    gguf_sched_destroy(s->sched);
    gg_session_free_adapters(s);
    for (unsigned i = 0; i < s->n_cache_buffers; i++)
        gguf_buffer_destroy(s->cache_buffer[i]);
    gguf_ctx_destroy(s->cache_ctx);
    gg_cells_fini(&s->encoded);
    gg_cells_fini(&s->windows);
    gg_cells_fini(&s->cells);
    gg_mem_free(s->allocator, s->first_visible);
    gg_memory_fini(s->memory);
    gg_ubatch_fini(&s->ubatch);
    gg_batch_fini(&s->plan);
    gg_model_variant_destroy(s->variant);
    gguf_meta_destroy(s->pairs);
    gg_mem_free(s->allocator, s->out);
    gg_mem_free(s->allocator, s->logits);
    gg_mem_free(s->allocator, s);
}

const struct gguf_model *gguf_session_model(const struct gguf_session *s)
{
    return s->given;
}

uint32_t gguf_session_n_ctx(const struct gguf_session *s)
{
    return s->n_ctx;
}

uint32_t gguf_session_n_seq(const struct gguf_session *s)
{
    return s->n_seq;
}

uint32_t gguf_session_n_ubatch(const struct gguf_session *s)
{
    return s->n_ubatch;
}

void gguf_session_memory_size(const struct gguf_session *s,
                              uint64_t *cache_size, uint64_t *graph_size)
{
    *cache_size = *graph_size = 0;
    for (unsigned i = 0; i < s->n_cache_buffers; i++)
        *cache_size += gguf_buffer_size(s->cache_buffer[i]);
    for (unsigned i = 0; i < GGUF_SCHED_MAX_BACKENDS; i++)
        *graph_size += gguf_sched_buffer_size(s->sched, i);
}
