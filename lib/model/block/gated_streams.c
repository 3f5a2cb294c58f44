/* SPDX-License-Identifier: MIT */
/* gated_streams.c - layers with gated hyper-connections (Qwen3.8; Zhu et al.,
 * Hyper-Connections, arXiv 2409.19606)
 *
 * The state of a token is n streams of n_embd numbers. A part of a layer reads
 * the mean of the normed streams, each element times a gate. The gates are
 * computed from all normed streams by two matrices of low rank. The result of
 * the part is added to each stream, times 2 sigmoid of a number that is
 * computed from the same normed streams. No other norm and no other residual
 * stream exists.
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

/* Weights of a mix; inject GG_W_NONE: nothing is added to the streams. */
struct mix {
    enum gg_weight norm, down, up, inject;
};
static const struct mix at_mixer = { GG_W_ATTN_MIX_NORM, GG_W_ATTN_MIX_DOWN,
                                     GG_W_ATTN_MIX_UP, GG_W_ATTN_MIX_INJECT },
                        at_ffn = { GG_W_FFN_MIX_NORM, GG_W_FFN_MIX_DOWN,
                                   GG_W_FFN_MIX_UP, GG_W_FFN_MIX_INJECT },
                        at_end = { .norm = GG_W_OUTPUT_MIX_NORM,
                                   .down = GG_W_OUTPUT_MIX_DOWN,
                                   .up = GG_W_OUTPUT_MIX_UP };

tensor *gg_model_norm_streams(const struct gg_model_at *at, enum gg_weight id,
                              tensor *h)
{
    if (!h)
        return NULL;
    h = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_NONE, h);
    h = gguf_op_reshape_2d(at->c, h, h->ne[0] * h->ne[1], h->ne[2]);
    tensor *w = gg_weight_at(at, id);
    return gg_model_name_after_weight(w, gguf_op_mul(at->c, h, w));
}

/* Mean over the streams of x [n_embd * n, N]: [n_embd, N]. */
static tensor *average_streams(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    const int64_t n = at->m->hp.n_streams;
    if (!x)
        return NULL;
    const int64_t d = x->ne[0] / n, n_tok = x->ne[1];
    x = gguf_op_permute(c, gguf_op_reshape_3d(c, x, d, n, n_tok), 1, 0, 2, 3);
    x = gguf_op_mean(c, gguf_op_cont(c, x));
    return gguf_op_reshape_2d(c, x, d, n_tok);
}

/* Input of a part from streams h [n_embd, n, N]. *inject receives the numbers
 * of gg_weight inject, [n, N]. */
static tensor *mix_streams(const struct gg_model_at *at, const struct mix *m,
                           tensor *h, tensor **inject)
{
    struct gguf_ctx *c = at->c;
    const float n = (float)at->m->hp.n_streams;
    tensor *x = gg_model_norm_streams(at, m->norm, h);
    tensor *gate = gguf_op_scale(c, gg_model_linear(at, m->down, x), 1 / n);
    gate = gg_model_linear(at, m->up, gguf_op_silu(c, gate));
    if (m->inject != GG_W_NONE)
        *inject = gg_model_linear(at, m->inject, x);
    x = gguf_op_mul(c, x, gguf_op_sigmoid(c, gate));
    return average_streams(at, x);
}

/* The streams h after a part's result y [n_embd, N]. */
static tensor *add_result(const struct gg_model_at *at, tensor *h,
                          tensor *inject, tensor *y)
{
    struct gguf_ctx *c = at->c;
    const int64_t n = at->m->hp.n_streams;
    if (!y || !h)
        return NULL;
    tensor *w = gguf_op_sigmoid(c, gguf_op_scale(c, inject, 1 / (float)n));
    w = gguf_op_reshape_3d(c, gguf_op_scale(c, w, 2), n, 1, h->ne[2]);
    y = gguf_op_reshape_3d(c, y, h->ne[0], 1, h->ne[2]);
    return gguf_op_add(c, h, gguf_op_out_prod(c, y, w));
}

/* A layer; NULL: the last one of a pass without outputs. */
static tensor *build_layer(const struct gg_model_at *at, tensor *h)
{
    const struct gg_mixer *mixer = at->layer->mixer;
    tensor *inject = NULL;
    if (at->layer->has_ngrams)
        h = gg_model_add_ngrams(at, h);
    tensor *y = mixer->mix(at, mix_streams(at, &at_mixer, h, &inject));
    if (gg_model_is_last_layer(at)) {
        if (!at->p->n_out)
            return NULL;
        y = gg_model_take_output_rows(at, y);
        inject = gg_model_take_output_rows(at, inject);
        h = gg_model_take_output_streams(at, h);
    }
    h = add_result(at, h, inject, gg_model_linear(at, mixer->out, y));
    y = gg_model_build_ffn(at, mix_streams(at, &at_ffn, h, &inject));
    return add_result(at, h, inject, y);
}

tensor *gg_gated_streams_layers(const struct gg_model_pass *p,
                                struct gg_model_layer_links *across, tensor *x)
{
    struct gg_model_at at = gg_model_at_layer(p, across, 0);
    if (!x)
        return NULL;
    tensor *h = gguf_op_reshape_3d(at.c, x, x->ne[0], 1, x->ne[1]);
    h = gguf_op_repeat(at.c, h, x->ne[0], p->model->hp.n_streams, x->ne[1], 1);
    for (uint32_t il = 0; il < gg_model_n_main_layers(p->model); il++) {
        at = gg_model_at_layer(p, across, il);
        h = build_layer(&at, h);
    }
    return p->n_out ? mix_streams(&at, &at_end, h, NULL) : NULL;
}
