/* SPDX-License-Identifier: MIT */
/* state_cache.c - memory of recurrences: one state for each sequence, which
 * every token changes
 *
 * The effect of a token on a state cannot be undone: a sequence is cleared as
 * a whole or not at all. */
#include "config.h"
#include "run/memory_int.h"

/* Tensors of a layer. */
enum { CONV, SCAN, NGRAMS, RECENT };

static struct gguf_tensor *describe_rows(const struct gg_memory *m,
                                         struct gguf_ctx *c, uint32_t il,
                                         unsigned which)
{
    struct gg_model_state_sizes n = { 0 };
    gg_model_layer_state_sizes(m->model, il, &n);
    if (which == SCAN)
        return n.scan[0]
                   ? gguf_tensor_create_4d(c, GGUF_DTYPE_F32, n.scan[0],
                                           n.scan[1], n.scan[2], m->n_seq)
                   : NULL;
    if (which == RECENT)
        return n.recent ? gguf_tensor_create_3d(c, GGUF_DTYPE_I32, n.recent, 1,
                                                m->n_seq)
                        : NULL;
    const int64_t *d = which == CONV ? n.conv : n.ngrams;
    return d[0] && d[1]
               ? gguf_tensor_create_3d(c, GGUF_DTYPE_F32, d[0], d[1], m->n_seq)
               : NULL;
}

static void make_inputs(struct gg_memory *m, const struct gg_ubatch_shape *h,
                        struct gg_model_pass *pass)
{
    m->in[0] = gg_run_mark_input(
        gguf_tensor_create_1d(pass->ctx, GGUF_DTYPE_I32, h->n_seq),
        "state_ids");
    const size_t n = gg_model_n_unrolled_layers(m->model);
    pass->states = (struct gg_model_pass_states){
        .conv = m->t,
        .scan = m->t ? m->t + SCAN * n : NULL,
        .ngrams = m->t ? m->t + NGRAMS * n : NULL,
        .recent = m->t ? m->t + RECENT * n : NULL,
        .ids = m->in[0]
    };
}

static enum gguf_status fill_inputs(struct gg_memory *m,
                                    const struct gg_ubatch *u,
                                    struct gguf_error *err)
{
    (void)u;
    return gg_run_set_input(m->in[0], m->ids, err);
}

const struct gg_memory_kind gg_memory_states = {
    .id = GG_MODEL_MEMORY_STATES,
    .name = { "state_conv", "state", "state_ngrams", "state_recent" },
    .describe = describe_rows,
    .inputs = make_inputs,
    .fill = fill_inputs,
    .by_seq = true,
};
