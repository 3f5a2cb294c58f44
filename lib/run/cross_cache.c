/* SPDX-License-Identifier: MIT */
/* cross_cache.c - memory of encoded texts: a key and a value for each token,
 * which the decoder attends to
 *
 * A pass of the encoder writes it, and passes of the decoder read all of it.
 * Its tokens have a table of their own, apart from that of decoded tokens. */
#include "config.h"
#include "run/memory_int.h"

#include <math.h>

static struct gguf_tensor *describe_rows(const struct gg_memory *m,
                                         struct gguf_ctx *c, uint32_t il,
                                         unsigned which)
{
    return gg_memory_keys.describe(m, c, il, which);
}

static void make_inputs(struct gg_memory *m, const struct gg_ubatch_shape *h,
                        struct gg_model_pass *pass)
{
    struct gguf_ctx *c = pass->ctx;
    m->in[0] = m->in[1] = NULL;
    if (h->encodes)
        m->in[0] = gg_run_mark_input(
            gguf_tensor_create_1d(c, GGUF_DTYPE_I32, h->n_tok * h->n_seq),
            "cross_rows");
    else
        m->in[1] = gg_run_mark_input(
            gguf_tensor_create_4d(c, GGUF_DTYPE_F32, h->n_cross, h->n_tok, 1,
                                  h->n_seq),
            "cross_mask");
    pass->cross = (struct gg_model_pass_cross){
        .k = m->t,
        .v = m->t + gg_model_n_unrolled_layers(m->model),
        .rows = m->in[0],
        .mask = m->in[1],
        .n_kv = h->n_cross,
        .n_cells = m->table[0]->n_cells
    };
}

/* Each token sees all of its sequence's encoded text. */
static enum gguf_status fill_inputs(struct gg_memory *m,
                                    const struct gg_ubatch *u,
                                    struct gguf_error *err)
{
    const struct gg_ubatch_shape *h = &u->shape;
    const size_t size = (size_t)h->n_cross * sizeof(float);
    GG_TRY(gg_run_set_input(m->in[0], u->row[0], err));
    if (!m->in[1] || !m->in[1]->buffer)
        return GGUF_OK;
    for (int64_t i = 0; i < h->n_seq * h->n_tok; i++) {
        const int64_t q = h->first_stream + i / h->n_tok;
        for (int64_t k = 0; k < h->n_cross; k++)
            m->row[k] = k < u->encoded->seq[q].n_used ? 0 : -INFINITY;
        GG_TRY(gguf_tensor_set(m->in[1], m->row, (size_t)i * size, size, err));
    }
    return GGUF_OK;
}

const struct gg_memory_kind gg_memory_cross = {
    .id = GG_MODEL_MEMORY_CROSS,
    .name = { "cross_k", "cross_v" },
    .encoded = true,
    .describe = describe_rows,
    .inputs = make_inputs,
    .fill = fill_inputs,
};
