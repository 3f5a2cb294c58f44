/* SPDX-License-Identifier: MIT */
/* key_rotation.c - a graph that rotates the keys of all layers, some rows at a
 * time */
#include "config.h"
#include "run/session_int.h"

#include "base/mem.h"
#include "sched/sched_int.h"

/* Memory of keys; NULL: none. */
static const struct gg_memory *keys_of(const struct gguf_session *s)
{
    for (unsigned i = 0; i < GG_N_MEMORIES; i++)
        if (s->memory[i].kind && s->memory[i].kept &&
            s->memory[i].kind->id == GG_MODEL_MEMORY_KV)
            return &s->memory[i];
    return NULL;
}

static bool layer_turns(const struct gg_memory *m,
                        const struct gg_cells *table, uint32_t il)
{
    return gg_model_rotates_cache(m->model, il) &&
           gg_memory_layer_table(m, il) == table;
}

static bool any_turns(const struct gguf_session *s,
                      const struct gg_cells *table)
{
    const struct gg_memory *m = keys_of(s);
    bool any = false;
    for (uint32_t il = 0; m && il < gg_model_n_unrolled_layers(s->model); il++)
        any = any || layer_turns(m, table, il);
    return any;
}

/* Build the graph of n rows, for the layers that follow a table. */
static enum gguf_status build_graph(struct gguf_session *s,
                                    const struct gg_cells *table, int64_t n,
                                    struct gguf_error *err)
{
    struct gg_key_rotation *t = &s->key_rotation;
    const struct gg_memory *m = keys_of(s);
    const size_t n_places = gg_model_n_unrolled_layers(s->model);
    const int64_t n_by = gg_model_has_mrope(s->model) ? 4 * n : n;
    gguf_ctx_reset(t->ctx);
    t->graph = gguf_graph_create(t->ctx, GG_KEY_SHIFT_NODES * n_places);
    t->rows = gg_run_mark_input(
        gguf_tensor_create_1d(t->ctx, GGUF_DTYPE_I32, n), "rows");
    t->by = gg_run_mark_input(
        gguf_tensor_create_1d(t->ctx, GGUF_DTYPE_I32, n_by), "by");
    for (uint32_t il = 0; il < n_places; il++) {
        const struct gg_model_key_shift turn = { .k = m->t[il],
                                                 .index =
                                                     m->t[2 * n_places + il],
                                                 .rows = t->rows,
                                                 .by = t->by,
                                                 .n_ctx = s->n_ctx };
        if (layer_turns(m, table, il))
            gg_build_key_shift(s->model, t->ctx, t->graph, il, &turn);
    }
    return gguf_graph_finish(t->ctx, t->graph, NULL, err);
}

static enum gguf_status plan_graph(struct gguf_session *s,
                                   const struct gg_cells *table, int64_t n,
                                   struct gguf_error *err)
{
    GG_TRY(build_graph(s, table, n, err));
    return gguf_sched_alloc(s->key_rotation.sched, s->key_rotation.graph, err);
}

static enum gguf_status make_rows(struct gguf_session *s, size_t n_nodes,
                                  struct gguf_error *err)
{
    struct gg_key_rotation *t = &s->key_rotation;
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    p.allocator = s->allocator;
    p.mem_size =
        (n_nodes + 2) * gguf_tensor_overhead() + gguf_graph_overhead(n_nodes);
    p.no_alloc = true;
    GG_TRY(gguf_ctx_create(&t->ctx, &p, err));
    t->row = gg_mem_alloc_zero(s->allocator, t->most, 5 * sizeof *t->row);
    if (!t->row)
        return gg_error_set_nomem(err, t->most * 5 * sizeof *t->row);
    t->delta = t->row + t->most;
    return GGUF_OK;
}

enum gguf_status gg_key_rotation_init(struct gguf_session *s,
                                      const struct gguf_sched_params *p,
                                      uint32_t most, struct gguf_error *err)
{
    struct gg_key_rotation *t = &s->key_rotation;
    bool any = false;
    for (unsigned b = 0; b < GG_N_ATTN_TYPES; b++)
        any = any || (s->table[b] && any_turns(s, s->table[b]));
    if (!any || gg_model_check_key_shift(s->model, NULL) != GGUF_OK)
        return GGUF_OK;
    t->most = most;
    GG_TRY(make_rows(
        s, GG_KEY_SHIFT_NODES * (size_t)gg_model_n_unrolled_layers(s->model),
        err));
    return gguf_sched_create(&t->sched, p, err);
}

enum gguf_status gg_key_rotation_reserve(struct gguf_session *s,
                                         struct gguf_error *err)
{
    for (unsigned b = 0; s->key_rotation.ctx && b < GG_N_ATTN_TYPES; b++) {
        if (!s->table[b] || !any_turns(s, s->table[b]))
            continue;
        GG_TRY(plan_graph(s, s->table[b], s->key_rotation.most, err));
        GG_TRY(gg_sched_prepare(s->key_rotation.sched, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_key_rotation_visit_graphs(struct gguf_session *s,
                                              gg_session_visit_graph_fn *see,
                                              void *user,
                                              struct gguf_error *err)
{
    for (unsigned b = 0; s->key_rotation.ctx && b < GG_N_ATTN_TYPES; b++) {
        if (!s->table[b] || !any_turns(s, s->table[b]))
            continue;
        GG_TRY(build_graph(s, s->table[b], s->key_rotation.most, err));
        see(user, s->key_rotation.graph);
    }
    return GGUF_OK;
}

void gg_key_rotation_fini(struct gguf_session *s)
{
    gguf_sched_destroy(s->key_rotation.sched);
    gguf_ctx_destroy(s->key_rotation.ctx);
    gg_mem_free(s->allocator, s->key_rotation.row);
}

/* Rotate the first n rows. */
static enum gguf_status turn_rows(struct gguf_session *s,
                                  const struct gg_cells *table, uint32_t n,
                                  struct gguf_error *err)
{
    struct gg_key_rotation *t = &s->key_rotation;
    const uint64_t size = n * sizeof *t->delta;
    GG_TRY(plan_graph(s, table, n, err));
    GG_TRY(gg_run_set_input(t->rows, t->row, err));
    if (!gg_model_has_mrope(s->model)) {
        GG_TRY(gg_run_set_input(t->by, t->delta, err));
        return gg_session_compute(s, t->sched, t->graph, err);
    }
    /* in a text the first three axes are the position, the last is 0 */
    for (unsigned i = 0; i < 3; i++)
        GG_TRY(gguf_tensor_set(t->by, t->delta, i * size, size, err));
    GG_TRY(gguf_tensor_fill(t->by, 0, 3 * size, size, err));
    return gg_session_compute(s, t->sched, t->graph, err);
}

enum gguf_status gg_key_rotation_apply(struct gguf_session *s,
                                       const struct gg_cells *table,
                                       uint32_t stream, const int32_t *by,
                                       uint32_t n, struct gguf_error *err)
{
    struct gg_key_rotation *t = &s->key_rotation;
    uint32_t k = 0;
    if (!t->ctx || !any_turns(s, table))
        return GGUF_OK;
    for (uint32_t i = 0; i < n; i++) {
        if (!by[i])
            continue;
        t->row[k] = (int32_t)(stream * table->n_cells + i);
        t->delta[k++] = by[i];
        if (k == t->most) {
            GG_TRY(turn_rows(s, table, k, err));
            k = 0;
        }
    }
    return k ? turn_rows(s, table, k, err) : GGUF_OK;
}
