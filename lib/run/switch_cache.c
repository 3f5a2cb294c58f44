/* SPDX-License-Identifier: MIT */
/* switch_cache.c - memory of switched adapters: the adapter that each token
 * activates
 *
 * A row is one number, 0 for a token that activates none. No graph reads the
 * rows: each pass gets the adapters of its tokens as an input, computed from
 * the rows of the tokens that they see. */
#include "config.h"
#include "run/memory_int.h"

#include "gguf/backend.h"

static struct gguf_tensor *describe_rows(const struct gg_memory *m,
                                         struct gguf_ctx *c, uint32_t il,
                                         unsigned which)
{
    const struct gg_cells *table = gg_memory_layer_table(m, il);
    const int64_t n_rows = (int64_t)table->n_cells * table->n_streams;
    return il == 0 && which == 0
               ? gguf_tensor_create_2d(c, GGUF_DTYPE_F32, 1, n_rows)
               : NULL;
}

static void make_inputs(struct gg_memory *m, const struct gg_ubatch_shape *h,
                        struct gg_model_pass *pass)
{
    m->in[0] =
        gg_run_mark_input(gguf_tensor_create_2d(pass->ctx, GGUF_DTYPE_I32, 1,
                                                h->n_tok * h->n_seq),
                          "adapter_ids");
    pass->adapter_ids = m->in[0];
}

/* Store the adapters that the tokens of the micro-batch activate. */
static enum gguf_status store_rows(struct gg_memory *m,
                                   const struct gg_ubatch *u,
                                   struct gguf_error *err)
{
    const int64_t n = u->shape.n_tok * u->shape.n_seq;
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)gg_model_activated_adapter(m->model, u->tok[i]);
        GG_TRY(gguf_tensor_set(m->t[0], &x,
                               (uint64_t)u->row[GG_ATTN_FULL][i] * sizeof x,
                               sizeof x, err));
    }
    return GGUF_OK;
}

/* Adapter that is activated by token k of those that token i sees: a cell of
 * its stream, or a token of its group. */
static enum gguf_status get_activated(const struct gg_memory *m,
                                      const struct gg_ubatch *u,
                                      const struct gg_cells *kept, int64_t i,
                                      int64_t k, float *x,
                                      struct gguf_error *err)
{
    if (!kept) {
        const int64_t first = i / u->shape.n_tok * u->shape.n_tok;
        *x = (float)gg_model_activated_adapter(m->model, u->tok[first + k]);
        return GGUF_OK;
    }
    const struct gguf_tensor *t = m->t[0];
    const int64_t row = u->row[GG_ATTN_FULL][i];
    const int64_t at = row / kept->n_cells * kept->n_cells + k;
    if (gguf_buft_is_host(gguf_buffer_buft(t->buffer))) {
        *x = ((const float *)t->data)[at];
        return GGUF_OK;
    }
    return gguf_tensor_get(t, x, (uint64_t)at * sizeof *x, sizeof *x, err);
}

static enum gguf_status choose_adapter(struct gg_memory *m,
                                       const struct gg_ubatch *u,
                                       const struct gg_ubatch_visibility *sees,
                                       int64_t i, int32_t *id,
                                       struct gguf_error *err)
{
    uint64_t n_seen = 0, n_active = 0, sum = 0;
    gg_ubatch_fill_mask(u, i, sees, m->row);
    for (int64_t k = 0; k < sees->n_kv; k++) {
        float x = 0;
        if (m->row[k] < 0)
            continue;
        GG_TRY(get_activated(m, u, sees->kept, i, k, &x, err));
        n_seen++;
        n_active += x > 0;
        sum += (uint64_t)x;
    }
    *id = gg_model_choose_adapter(m->model, n_seen, n_active, sum);
    return GGUF_OK;
}

static enum gguf_status fill_inputs(struct gg_memory *m,
                                    const struct gg_ubatch *u,
                                    struct gguf_error *err)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const struct gg_ubatch_visibility sees = {
        .kept = m->kept ? m->table[GG_ATTN_FULL] : NULL,
        .n_kv = m->kept ? h->n_kv[GG_ATTN_FULL] : h->n_tok,
        .causal = m->model->hp.causal,
        .reach = m->model->hp.reach[GG_ATTN_FULL],
    };
    struct gguf_tensor *t = m->in[0];
    if (m->kept)
        GG_TRY(store_rows(m, u, err));
    for (int64_t i = 0; t->buffer && i < h->n_tok * h->n_seq; i++) {
        int32_t id;
        GG_TRY(choose_adapter(m, u, &sees, i, &id, err));
        GG_TRY(
            gguf_tensor_set(t, &id, (uint64_t)i * sizeof id, sizeof id, err));
    }
    return GGUF_OK;
}

const struct gg_memory_kind gg_memory_switch = {
    .id = GG_MODEL_MEMORY_SWITCH,
    .name = { "adapters" },
    .describe = describe_rows,
    .inputs = make_inputs,
    .fill = fill_inputs,
};
