/* SPDX-License-Identifier: MIT */
/* state_cache.c - memory of recurrences: one state for each sequence, which
 * every token changes
 *
 * The effect of a token on a state cannot be undone: a sequence is cleared as
 * a whole or not at all. */
#include "config.h"
#include "run/memory_int.h"

static struct gguf_tensor *describe_rows(const struct gg_memory *m,
                                         struct gguf_ctx *c, uint32_t il,
                                         unsigned which)
{
    struct gg_model_state_sizes n = { 0 };
    if (which > 1)
        return NULL;
    gg_model_layer_state_sizes(m->model, il, &n);
    if (which)
        return n.scan[0]
                   ? gguf_tensor_create_4d(c, GGUF_DTYPE_F32, n.scan[0],
                                           n.scan[1], n.scan[2], m->n_seq)
                   : NULL;
    return n.conv[0] && n.conv[1]
               ? gguf_tensor_create_3d(c, GGUF_DTYPE_F32, n.conv[0], n.conv[1],
                                       m->n_seq)
               : NULL;
}

static void make_inputs(struct gg_memory *m, const struct gg_ubatch_shape *h,
                        struct gg_model_pass *pass)
{
    m->in[0] = gg_run_mark_input(
        gguf_tensor_create_1d(pass->ctx, GGUF_DTYPE_I32, h->n_seq),
        "state_ids");
    pass->states = (struct gg_model_pass_states){
        .conv = m->t,
        .scan = m->t ? m->t + gg_model_n_unrolled_layers(m->model) : NULL,
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
    .name = { "state_conv", "state" },
    .describe = describe_rows,
    .inputs = make_inputs,
    .fill = fill_inputs,
    .by_seq = true,
};
