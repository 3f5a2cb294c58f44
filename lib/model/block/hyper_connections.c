/* SPDX-License-Identifier: MIT */
/* hyper_connections.c - layers with hyper-connections (Xie et al., mHC, arXiv
 * 2512.24880, as in DeepSeek-V4; Hunyuan 4 without a matrix)
 *
 * The state of a token is n streams of n_embd numbers. A part of a layer reads
 * a weighted sum of the streams. Its result is added to each stream with a
 * weight. Before that, the streams are mixed with each other by a matrix,
 * which some models lack. All weights are computed from all streams
 * (gguf_op_hyper). No other residual stream exists.
 */
#include "config.h"
#include "model/build_int.h"

typedef struct gguf_tensor tensor;

/* Weights from which coefficients are computed. */
struct meets {
    enum gg_weight fn, base, scale;
};
static const struct meets at_mixer = { GG_W_HC_ATTN_FN, GG_W_HC_ATTN_BASE,
                                       GG_W_HC_ATTN_SCALE },
                          at_ffn = { GG_W_HC_FFN_FN, GG_W_HC_FFN_BASE,
                                     GG_W_HC_FFN_SCALE },
                          at_end = { GG_W_OUTPUT_HC_FN, GG_W_OUTPUT_HC_BASE,
                                     GG_W_OUTPUT_HC_SCALE };

/* Weights of the streams of a part without a matrix, [2 n, N], from z [2 n, N]:
 * n to read, sigmoid(..) + eps, and n to write, magnitude sigmoid(..) + eps. */
static tensor *gate_streams(const struct gg_model_at *at,
                            const struct meets *of, tensor *z)
{
    struct gguf_ctx *c = at->c;
    const struct gg_hparams *hp = &at->m->hp;
    const int64_t n = hp->n_streams;
    tensor *base = gg_weight_at(at, of->base);
    tensor *scale = gg_weight_at(at, of->scale), *half[2];
    for (int i = 0; i < 2; i++) {
        const float magnitude = i ? hp->streams_magnitude : 1;
        half[i] = gguf_op_hyper(
            c,
            gguf_op_view_2d(c, z, n, z->ne[1], z->nb[1],
                            (uint64_t)(i * n * z->nb[0])),
            gguf_op_view_1d(c, base, n, (uint64_t)(i * n * base->nb[0])),
            gguf_op_view_1d(c, scale, 1, (uint64_t)(i * scale->nb[0])),
            (int32_t)n, 0, hp->streams_eps / magnitude);
        half[i] = gg_model_apply_scale(at, half[i], magnitude);
    }
    return gguf_op_concat(c, half[0], half[1], 0);
}

/* Coefficients of streams h [n_embd, n, N]: (2 + n) n elements for each token,
 * 2 n without a matrix, or n at the end of the model. */
static tensor *stream_coefficients(const struct gg_model_at *at,
                                   const struct meets *of, tensor *h)
{
    const struct gg_hparams *hp = &at->m->hp;
    if (!h)
        return NULL;
    tensor *z = gguf_op_reshape_2d(at->c, h, h->ne[0] * h->ne[1], h->ne[2]);
    z = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_NONE, z);
    z = gg_model_linear(at, of->fn, z);
    if (z && z->ne[0] == 2 * h->ne[1])
        return gate_streams(at, of, z);
    return gguf_op_hyper(at->c, z, gg_weight_at(at, of->base),
                         gg_weight_at(at, of->scale), (int32_t)hp->n_streams,
                         (int32_t)hp->n_sinkhorn, hp->streams_eps);
}

/* Rows [first, first + n m) of coefficients as [n, m, N]. */
static tensor *coefficient_rows(const struct gg_model_at *at, tensor *all,
                                int64_t first, int64_t n, int64_t m)
{
    if (!all)
        return NULL;
    return gguf_op_view_3d(at->c, all, n, m, all->ne[1], n * all->nb[0],
                           all->nb[1], (uint64_t)(first * all->nb[0]));
}

/* Input of a part: weighted sum of the streams, [n_embd, N]. */
static tensor *merge_streams(const struct gg_model_at *at, tensor *h,
                             tensor *all)
{
    tensor *x = gguf_op_out_prod(
        at->c, h, coefficient_rows(at, all, 0, 1, at->m->hp.n_streams));
    return x ? gguf_op_reshape_2d(at->c, x, x->ne[0], x->ne[2]) : NULL;
}

/* The streams after a part's result y [n_embd, N]. */
static tensor *spread_result(const struct gg_model_at *at, tensor *h,
                             tensor *all, tensor *y)
{
    struct gguf_ctx *c = at->c;
    const int64_t n = at->m->hp.n_streams;
    if (!y)
        return NULL;
    y = gguf_op_reshape_3d(c, y, y->ne[0], 1, y->ne[1]);
    y = gguf_op_out_prod(c, y, coefficient_rows(at, all, n, n, 1));
    if (all && all->ne[0] > 2 * n)
        h = gguf_op_out_prod(c, h, coefficient_rows(at, all, 2 * n, n, n));
    return gguf_op_add(c, h, y);
}

/* A layer; NULL: the last one of a pass without outputs. */
static tensor *build_layer(const struct gg_model_at *at, tensor *h)
{
    const struct gg_arch *a = at->arch;
    const struct gg_mixer *mixer = at->layer->mixer;
    tensor *all = stream_coefficients(at, &at_mixer, h);
    tensor *x =
        gg_model_apply_norm_if(at, a->mix_norm.pre, merge_streams(at, h, all));
    x = mixer->mix(at, x);
    if (gg_model_is_last_layer(at)) {
        if (!at->p->n_out)
            return NULL;
        x = gg_model_take_output_rows(at, x);
        all = gg_model_take_output_rows(at, all);
        h = gg_model_take_output_streams(at, h);
    }
    h = spread_result(at, h, all, gg_model_linear(at, mixer->out, x));
    all = stream_coefficients(at, &at_ffn, h);
    x = gg_model_apply_norm_if(at, a->ffn_norm.pre, merge_streams(at, h, all));
    return spread_result(at, h, all, gg_model_build_ffn(at, x));
}

tensor *gg_hyper_connections_layers(const struct gg_model_pass *p,
                                    struct gg_model_layer_links *across,
                                    tensor *x)
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
    return p->n_out
               ? merge_streams(&at, h, stream_coefficients(&at, &at_end, h))
               : NULL;
}
