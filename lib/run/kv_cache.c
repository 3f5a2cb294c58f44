/* SPDX-License-Identifier: MIT */
/* kv_cache.c - memory of attention: a key and a value for each token
 *
 * Where a token lies does not matter: a mask, made of positions, says which
 * tokens it sees. There is one mask for all layers that see everything, and
 * one for those that see a window. An encoder keeps nothing; there, and while
 * a text is encoded, tokens see those of their own pass. */
#include "config.h"
#include "run/memory_int.h"

#include "gguf/backend.h"

/* Inputs: rows to write and masks for each type of attention, and */
enum {
    ROWS,
    MASKS = ROWS + GG_N_ATTN_TYPES,
    BUCKETS = MASKS + GG_N_ATTN_TYPES,
    POSITIONS
};

static struct gguf_tensor *describe_rows(const struct gg_memory *m,
                                         struct gguf_ctx *c, uint32_t il,
                                         unsigned which)
{
    struct gg_model_key_sizes n = { 0 };
    gg_model_layer_key_sizes(m->model, il, &n);
    const int64_t d = which == 0   ? n.k
                      : which == 1 ? n.v
                      : which == 2 ? n.index
                                   : 0;
    const uint32_t type = which == 1 ? m->types.v : m->types.k;
    const struct gg_cells *table = gg_memory_layer_table(m, il);
    const int64_t n_rows = (int64_t)table->n_cells * table->n_streams;
    return d ? gguf_tensor_create_2d(c, type, d, n_rows) : NULL;
}

/* Do tokens see tokens of earlier passes? */
static bool sees_earlier_tokens(const struct gg_memory *m,
                                const struct gg_ubatch_shape *h)
{
    return m->kept && !h->encodes;
}

/* Table of a type of attention, and number of its cells that are read. */
static struct gg_ubatch_visibility
get_visibility(const struct gg_memory *m, const struct gg_ubatch_shape *h,
               unsigned which)
{
    const unsigned b = m->table[which] ? which : GG_ATTN_FULL;
    const bool kept = sees_earlier_tokens(m, h);
    return (struct gg_ubatch_visibility){
        .kept = kept ? m->table[b] : NULL,
        .n_kv = kept ? h->n_kv[b] : h->n_tok,
        .causal = m->model->hp.causal && !m->model->arch->bidirectional &&
                  !h->encodes,
        .far = gg_model_alibi_max_bias(m->model) > 0,
        .reach = m->model->hp.reach[which],
    };
}

/* Shape of the micro-batch for attention: groups side by side, or all tokens
 * of one stream. */
struct side {
    int64_t n_tok, n_seq, n_mask;
};

static struct side attention_shape(const struct gg_ubatch_shape *h)
{
    if (h->shared)
        return (struct side){ h->n_tok * h->n_seq, 1, 1 };
    return (struct side){ h->n_tok, h->n_seq, h->n_mask };
}

static struct gguf_tensor *mask_of(const struct gg_memory *m,
                                   struct gguf_ctx *c,
                                   const struct gg_ubatch_shape *h,
                                   unsigned which)
{
    static const char *const name[] = { "mask", "window_mask" };
    const struct side side = attention_shape(h);
    if (which == GG_ATTN_WINDOW && !m->model->hp.has_windows)
        return NULL;
    return gg_run_mark_input(
        gguf_tensor_create_4d(c, GGUF_DTYPE_F32,
                              get_visibility(m, h, which).n_kv, side.n_tok, 1,
                              side.n_mask),
        name[which]);
}

/* Rows to write in a table; NULL: none, or those of the other table. */
static struct gguf_tensor *rows_to_write(const struct gg_memory *m,
                                         struct gguf_ctx *c,
                                         const struct gg_ubatch_shape *h,
                                         unsigned which)
{
    static const char *const name[] = { "kv_rows", "window_rows" };
    if (!sees_earlier_tokens(m, h) || !m->table[which])
        return NULL;
    return gg_run_mark_input(
        gguf_tensor_create_1d(c, GGUF_DTYPE_I32, h->n_tok * h->n_seq),
        name[which]);
}

static void make_inputs(struct gg_memory *m, const struct gg_ubatch_shape *h,
                        struct gg_model_pass *pass)
{
    struct gguf_ctx *c = pass->ctx;
    const bool kept = sees_earlier_tokens(m, h);
    const struct side side = attention_shape(h);
    const int64_t n_kv = get_visibility(m, h, GG_ATTN_FULL).n_kv;
    const size_t n = gg_model_n_unrolled_layers(m->model);
    struct gg_model_pass_keys *keys = &pass->keys;
    for (unsigned i = 0; i < GG_N_ATTN_TYPES; i++) {
        m->in[ROWS + i] = rows_to_write(m, c, h, i);
        m->in[MASKS + i] = mask_of(m, c, h, i);
    }
    m->in[BUCKETS] = NULL;
    if (gg_model_n_position_buckets(m->model))
        m->in[BUCKETS] = gg_run_mark_input(
            gguf_tensor_create_1d(c, GGUF_DTYPE_I32,
                                  n_kv * side.n_tok * side.n_mask),
            "buckets");
    m->in[POSITIONS] =
        gg_model_reads_positions(m->model)
            ? gg_run_mark_input(gguf_tensor_create_4d(c, GGUF_DTYPE_I32, n_kv,
                                                      1, 1, side.n_mask),
                                "key_positions")
            : NULL;
    *keys = (struct gg_model_pass_keys){
        .index = kept ? m->t + 2 * n : NULL,
        .pos = m->in[POSITIONS],
        .k = kept ? m->t : NULL,
        .v = kept ? m->t + n : NULL,
        .n_tok = side.n_tok,
        .n_seq = side.n_seq,
        .first_stream = h->shared ? 0 : h->first_stream,
        .buckets = m->in[BUCKETS],
    };
    for (unsigned i = 0; i < GG_N_ATTN_TYPES; i++) {
        const struct gg_ubatch_visibility sight = get_visibility(m, h, i);
        keys->mask[i] = m->in[MASKS + i];
        keys->rows[i] = m->in[m->table[i] ? ROWS + i : ROWS];
        keys->n_kv[i] = sight.n_kv;
        keys->n_cells[i] = sight.kept ? sight.kept->n_cells : 0;
    }
}

/* Fill the table of gg_model_position_bucket(), for distances from
 * -GG_MODEL_MAX_DISTANCE on. */
static void fill_table(const struct gg_memory *m, bool both_ways,
                       int32_t table[2 * GG_MODEL_MAX_DISTANCE + 1])
{
    const uint32_t n = gg_model_n_position_buckets(m->model);
    for (int d = -GG_MODEL_MAX_DISTANCE; d <= GG_MODEL_MAX_DISTANCE; d++)
        table[d + GG_MODEL_MAX_DISTANCE] =
            gg_model_position_bucket(n, both_ways, d);
}

static enum gguf_status fill_buckets(struct gg_memory *m,
                                     const struct gg_ubatch *u,
                                     struct gguf_error *err)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const struct side side = attention_shape(h);
    const struct gg_ubatch_visibility sight =
        get_visibility(m, h, GG_ATTN_FULL);
    const size_t size = (size_t)sight.n_kv * sizeof(int32_t);
    int32_t table[2 * GG_MODEL_MAX_DISTANCE + 1];
    int32_t *row = (int32_t *)(void *)m->row;
    struct gguf_tensor *t = m->in[BUCKETS];
    if (!t || !t->buffer)
        return GGUF_OK;
    fill_table(m, !sight.kept, table);
    for (int64_t i = 0; i < side.n_mask * side.n_tok; i++) {
        gg_ubatch_fill_distances(u, i, &sight, GG_MODEL_MAX_DISTANCE, row);
        for (int64_t k = 0; k < sight.n_kv; k++)
            row[k] = table[row[k] + GG_MODEL_MAX_DISTANCE];
        GG_TRY(gguf_tensor_set(t, row, (size_t)i * size, size, err));
    }
    return GGUF_OK;
}

/* Fill a mask row by row: in place if the graph's input is in host memory. */
static enum gguf_status fill_mask(struct gg_memory *m,
                                  const struct gg_ubatch *u, unsigned which,
                                  struct gguf_error *err)
{
    const struct side side = attention_shape(&u->shape);
    const struct gg_ubatch_visibility sight =
        get_visibility(m, &u->shape, which);
    struct gguf_tensor *t = m->in[MASKS + which];
    if (!t || !t->buffer)
        return GGUF_OK;
    const bool host = gguf_buft_is_host(gguf_buffer_buft(t->buffer));
    const size_t size = (size_t)sight.n_kv * sizeof(float);
    for (int64_t i = 0; i < side.n_mask * side.n_tok; i++) {
        const size_t at = (size_t)i * size;
        float *row = host ? (float *)(void *)((char *)t->data + at) : m->row;
        gg_ubatch_fill_mask(u, i, &sight, row);
        if (!host)
            GG_TRY(gguf_tensor_set(t, row, at, size, err));
    }
    return GGUF_OK;
}

/* Fill the positions of keys. */
static enum gguf_status fill_positions(struct gg_memory *m,
                                       const struct gg_ubatch *u,
                                       struct gguf_error *err)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const struct gg_cells *kept =
        sees_earlier_tokens(m, h) ? m->table[0] : NULL;
    struct gguf_tensor *t = m->in[POSITIONS];
    if (!t || !t->buffer)
        return GGUF_OK;
    for (int64_t q = 0; q < t->ne[3]; q++) {
        const uint32_t seq = (uint32_t)u->seq[q * h->n_tok];
        const int32_t *pos =
            kept ? gg_cells_get_stream(kept, seq)->pos : u->pos + q * h->n_tok;
        GG_TRY(gguf_tensor_set(t, pos, (uint64_t)(q * t->nb[3]),
                               (size_t)t->nb[3], err));
    }
    return GGUF_OK;
}

static enum gguf_status fill_inputs(struct gg_memory *m,
                                    const struct gg_ubatch *u,
                                    struct gguf_error *err)
{
    GG_TRY(fill_buckets(m, u, err));
    for (unsigned i = 0; i < GG_N_ATTN_TYPES; i++) {
        GG_TRY(gg_run_set_input(m->in[ROWS + i], u->row[i], err));
        GG_TRY(fill_mask(m, u, i, err));
    }
    return fill_positions(m, u, err);
}

const struct gg_memory_kind gg_memory_keys = {
    .id = GG_MODEL_MEMORY_KV,
    .name = { "cache_k", "cache_v", "cache_index" },
    .describe = describe_rows,
    .inputs = make_inputs,
    .fill = fill_inputs,
};
