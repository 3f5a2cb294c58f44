/* keys.c - memory of attention: a key and a value for each token
 *
 * Where a token lies does not matter: a mask, made of positions, says what it
 * sees: one for all layers that see everything, and one for those that see a
 * window. Where nothing is kept, and while a text is encoded, tokens see those
 * of their pass.
 */
#include "config.h"
#include "run/memory.h"

#include "gguf/backend.h"

/* Inputs: rows, masks, and */
enum { BUCKETS = 1 + GG_N_SIGHTS, POSITIONS };

static struct gguf_tensor *describe(const struct gg_memory *m,
                                    struct gguf_ctx *c, uint32_t il,
                                    unsigned which)
{
    struct gg_model_key_sizes n = { 0 };
    gg_model_layer_keys(m->model, il, &n);
    const int64_t d = which == 0 ? n.k : which == 1 ? n.v : n.index;
    const uint32_t type = which == 1 ? m->types.v : m->types.k;
    return d ? gguf_tensor_2d(c, type, d, (int64_t)m->n_ctx * m->n_streams)
             : NULL;
}

static struct gguf_tensor *mask_of(struct gguf_ctx *c, int64_t n_kv,
                                   const struct gg_ubatch_shape *h,
                                   const char *name)
{
    return gg_run_input(
        gguf_tensor_4d(c, GGUF_DTYPE_F32, n_kv, h->n_tok, 1, h->n_mask), name);
}

/* Do tokens see those that are kept? */
static bool sees_kept(const struct gg_memory *m,
                      const struct gg_ubatch_shape *h)
{
    return m->kept && !h->encodes;
}

static void inputs(struct gg_memory *m, const struct gg_ubatch_shape *h,
                   struct gg_model_pass *pass)
{
    struct gguf_ctx *c = pass->ctx;
    const bool kept = sees_kept(m, h);
    const int64_t n_kv = kept ? h->n_kv : h->n_tok;
    m->in[0] = kept ? gg_run_input(gguf_tensor_1d(c, GGUF_DTYPE_I32,
                                                  h->n_tok * h->n_seq),
                                   "kv_rows")
                    : NULL;
    m->in[1 + GG_SEES_ALL] = mask_of(c, n_kv, h, "mask");
    m->in[1 + GG_SEES_WINDOW] =
        m->model->hp.has_windows ? mask_of(c, n_kv, h, "window_mask") : NULL;
    m->in[BUCKETS] = NULL;
    if (gg_model_n_buckets(m->model))
        m->in[BUCKETS] = gg_run_input(
            gguf_tensor_1d(c, GGUF_DTYPE_I32, n_kv * h->n_tok * h->n_mask),
            "buckets");
    m->in[POSITIONS] =
        gg_model_reads_positions(m->model)
            ? gg_run_input(
                  gguf_tensor_4d(c, GGUF_DTYPE_I32, n_kv, 1, 1, h->n_mask),
                  "key_positions")
            : NULL;
    pass->keys = (struct gg_model_pass_keys){
        .index = kept ? m->t + 2 * (size_t)gg_model_n_places(m->model) : NULL,
        .pos = m->in[POSITIONS],
        .k = kept ? m->t : NULL,
        .v = kept ? m->t + gg_model_n_places(m->model) : NULL,
        .rows = m->in[0],
        .mask = { m->in[1], m->in[2] },
        .n_kv = n_kv,
        .n_ctx = m->n_ctx,
        .buckets = m->in[BUCKETS],
    };
}

/* Tables of gg_model_bucket, for distances from -GG_MODEL_FAR on. */
static void fill_table(const struct gg_memory *m, bool both_ways,
                       int32_t table[2 * GG_MODEL_FAR + 1])
{
    const uint32_t n = gg_model_n_buckets(m->model);
    for (int d = -GG_MODEL_FAR; d <= GG_MODEL_FAR; d++)
        table[d + GG_MODEL_FAR] = gg_model_bucket(n, both_ways, d);
}

static enum gguf_status fill_buckets(struct gg_memory *m,
                                     const struct gg_run_ubatch *u,
                                     struct gguf_error *err)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const bool kept = sees_kept(m, h);
    const int64_t n_kv = kept ? h->n_kv : h->n_tok;
    const size_t size = (size_t)n_kv * sizeof(int32_t);
    int32_t table[2 * GG_MODEL_FAR + 1];
    int32_t *row = (int32_t *)(void *)m->row;
    struct gguf_tensor *t = m->in[BUCKETS];
    if (!t || !t->buffer)
        return GGUF_OK;
    fill_table(m, !kept, table);
    for (int64_t i = 0; i < h->n_mask * h->n_tok; i++) {
        gg_ubatch_far(u, i, kept, GG_MODEL_FAR, row);
        for (int64_t k = 0; k < n_kv; k++)
            row[k] = table[row[k] + GG_MODEL_FAR];
        GG_TRY(gguf_tensor_set(t, row, (size_t)i * size, size, err));
    }
    return GGUF_OK;
}

/* A mask row by row, in place where the graph's is in host memory. */
static enum gguf_status fill_mask(struct gg_memory *m,
                                  const struct gg_run_ubatch *u,
                                  enum gg_hparams_sight which,
                                  struct gguf_error *err)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const struct gg_ubatch_sight sight = {
        .kept = sees_kept(m, h),
        .causal =
            m->model->hp.causal && !m->model->arch->no_causal && !h->encodes,
        .far = gg_model_alibi(m->model) > 0,
        .reach = m->model->hp.reach[which],
    };
    const int64_t n_kv = sight.kept ? h->n_kv : h->n_tok;
    struct gguf_tensor *t = m->in[1 + which];
    if (!t || !t->buffer)
        return GGUF_OK;
    const bool host = gguf_buft_is_host(gguf_buffer_buft(t->buffer));
    const size_t size = (size_t)n_kv * sizeof(float);
    for (int64_t i = 0; i < h->n_mask * h->n_tok; i++) {
        const size_t at = (size_t)i * size;
        float *row = host ? (float *)(void *)((char *)t->data + at) : m->row;
        gg_ubatch_mask(u, i, &sight, row);
        if (!host)
            GG_TRY(gguf_tensor_set(t, row, at, size, err));
    }
    return GGUF_OK;
}

/* Positions of keys. */
static enum gguf_status fill_positions(struct gg_memory *m,
                                       const struct gg_run_ubatch *u,
                                       struct gguf_error *err)
{
    const struct gg_ubatch_shape *h = &u->shape;
    struct gguf_tensor *t = m->in[POSITIONS];
    if (!t || !t->buffer)
        return GGUF_OK;
    for (int64_t q = 0; q < h->n_mask; q++) {
        const int32_t *pos = sees_kept(m, h)
                                 ? u->cells->stream[h->first_stream + q].pos
                                 : u->pos + q * h->n_tok;
        GG_TRY(gguf_tensor_set(t, pos, (uint64_t)(q * t->nb[3]),
                               (size_t)t->nb[3], err));
    }
    return GGUF_OK;
}

static enum gguf_status fill(struct gg_memory *m,
                             const struct gg_run_ubatch *u,
                             struct gguf_error *err)
{
    GG_TRY(gg_run_input_set(m->in[0], u->row, err));
    GG_TRY(fill_buckets(m, u, err));
    for (unsigned i = 0; i < GG_N_SIGHTS; i++)
        GG_TRY(fill_mask(m, u, (enum gg_hparams_sight)i, err));
    return fill_positions(m, u, err);
}

/* ---- forgetting ---- */

static bool can_forget(const struct gg_run_stream *s, int32_t begin,
                       int32_t end)
{
    (void)s;
    (void)begin;
    (void)end;
    return true;
}

/* Keys and values in a free cell are masked where others are read, but 0 times
 * a NaN is a NaN: a sequence must not suffer from one before it. */
static enum gguf_status forget(struct gg_memory *m, uint32_t seq,
                               uint32_t cell, uint32_t n, bool all,
                               struct gguf_error *err)
{
    const uint64_t row = (uint64_t)seq * m->n_ctx + cell;
    (void)all;
    for (size_t i = 0;
         i < GG_MEMORY_TENSORS * (size_t)gg_model_n_places(m->model); i++) {
        if (!m->t[i])
            continue;
        const uint64_t size = (uint64_t)m->t[i]->nb[1];
        GG_TRY(gguf_tensor_memset(m->t[i], 0, row * size, n * size, err));
    }
    return GGUF_OK;
}

const struct gg_memory_kind gg_memory_keys = {
    .id = GG_KEEPS_KEYS,
    .name = { "cache_k", "cache_v", "cache_index" },
    .describe = describe,
    .inputs = inputs,
    .fill = fill,
    .can_forget = can_forget,
    .forget = forget,
};
