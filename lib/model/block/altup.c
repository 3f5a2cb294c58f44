/* SPDX-License-Identifier: MIT */
/* altup.c - layers on four residual streams (AltUp)
 *
 * One stream is computed by the layer, the others are predicted and corrected
 * (Baykal et al., arXiv 2301.13310). A low-rank branch runs beside attention
 * (Laurel, Menghani et al., arXiv 2411.07501). Used by Gemma 3n.
 */
#include "config.h"
#include "model/build_int.h"

#include <math.h>

typedef struct gguf_tensor tensor;

enum { N = 4 };

/* Row i of x [n, N], [1, N]. */
static tensor *view_row(const struct gg_model_at *at, tensor *x, int64_t i)
{
    return x ? gguf_op_view_2d(at->c, x, 1, x->ne[1], x->nb[1],
                               (uint64_t)(i * x->nb[0]))
             : NULL;
}

/* Lengths of columns, [1, N]. */
static tensor *column_lengths(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    return gguf_op_sqrt(c, gguf_op_sum_rows(c, gguf_op_sqr(c, x)));
}

/* Multiply x by matrix i of a stacked weight, then scale the columns to the
 * length of those of y. */
static tensor *match_length(const struct gg_model_at *at, enum gg_weight id,
                            int64_t i, tensor *x, tensor *y)
{
    struct gguf_ctx *c = at->c;
    tensor *all = gg_weight_at(at, id);
    tensor *w = gguf_op_view_2d(c, all, all->ne[0], all->ne[1], all->nb[1],
                                (uint64_t)(i * all->nb[2]));
    x = gguf_op_matmul(c, w, x);
    return gguf_op_mul(
        c, x, gguf_op_div(c, column_lengths(at, y), column_lengths(at, x)));
}

/* Compute the streams of embeddings x. */
static void split_streams(const struct gg_model_at *at, tensor *x,
                          tensor *h[N])
{
    h[0] = x;
    for (int j = 1; j < N; j++)
        h[j] = match_length(at, GG_W_ALTUP_PROJ, j - 1, x, x);
}

/* Mean of the streams, projected back to the first. */
static tensor *merge_streams(const struct gg_model_at *at, tensor *const h[N])
{
    tensor *sum = h[0];
    for (int j = 1; j < N; j++)
        sum = gguf_op_add(
            at->c, sum,
            match_length(at, GG_W_ALTUP_UNEMBD, j - 1, h[j], h[0]));
    return gguf_op_scale(at->c, sum, 1.0f / N);
}

/* Router output that determines the coefficients of a layer, [N, tokens]. */
static tensor *route_streams(const struct gg_model_at *at, tensor *x)
{
    struct gguf_ctx *c = at->c;
    x = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_ALTUP_NORM, x);
    x = gguf_op_scale(c, x, 1 / (float)at->m->hp.n_embd);
    return gguf_op_tanh(c, gg_model_linear(at, GG_W_ALTUP_ROUTER, x));
}

/* Predict the streams after a layer from the streams before it. */
static void predict_streams(const struct gg_model_at *at, tensor *const h[N],
                            tensor *p[N])
{
    struct gguf_ctx *c = at->c;
    tensor *all =
        gg_model_linear(at, GG_W_ALTUP_PREDICT, route_streams(at, h[0]));
    for (int b = 0; b < N; b++) {
        p[b] = h[b];
        for (int a = 0; a < N; a++)
            p[b] = gguf_op_add(
                c, p[b], gguf_op_mul(c, h[a], view_row(at, all, N * b + a)));
    }
}

/* Correct the predicted streams by x, the computed first stream. */
static void correct_streams(const struct gg_model_at *at, tensor *const p[N],
                            tensor *x, tensor *h[N])
{
    struct gguf_ctx *c = at->c;
    tensor *all =
        gg_model_linear(at, GG_W_ALTUP_CORRECT, route_streams(at, x));
    tensor *off = gguf_op_sub(c, x, p[0]);
    /* add (1 + coefficient) times the error of the prediction */
    for (int b = 0; b < N; b++) {
        tensor *more = gguf_op_mul(c, off, view_row(at, all, b));
        h[b] = gguf_op_add(c, gguf_op_add(c, p[b], off), more);
    }
}

static tensor *add_laurel(const struct gg_model_at *at, tensor *x)
{
    tensor *y = gg_model_linear(at, GG_W_LAUREL_R,
                                gg_model_linear(at, GG_W_LAUREL_L, x));
    y = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_LAUREL_NORM, y);
    return gguf_op_add(at->c, x, y);
}

/* A layer; false: the last one of a pass without outputs. */
static bool build_layer(const struct gg_model_at *at, tensor *h[N])
{
    struct gguf_ctx *c = at->c;
    const struct gg_arch *a = at->arch;
    tensor *p[N];
    predict_streams(at, h, p);
    tensor *x = gg_model_apply_norm_if(at, a->mix_norm.pre, p[0]);
    tensor *y = gg_model_mix_attention(at, x);
    if (gg_model_is_last_layer(at)) {
        if (!at->p->n_out)
            return false;
        y = gg_model_take_output_rows(at, y);
        x = gg_model_take_output_rows(at, x);
        for (int b = 0; b < N; b++)
            p[b] = gg_model_take_output_rows(at, p[b]);
    }
    tensor *beside = add_laurel(at, x);
    y = gg_model_linear(at, GG_W_ATTN_OUT, y);
    y = gguf_op_add(c, p[0], gg_model_apply_norm_if(at, a->mix_norm.post, y));
    x = gguf_op_scale(c, gguf_op_add(c, y, beside), sqrtf(0.5f));
    y = gg_model_build_ffn(at, gg_model_apply_norm_if(at, a->ffn_norm.pre, x));
    x = gguf_op_add(c, x, gg_model_apply_norm_if(at, a->ffn_norm.post, y));
    correct_streams(at, p, x, h);
    y = gg_model_project_layer_input(
        at, gguf_op_mul(c, h[0], gg_weight_at(at, GG_W_ALTUP_SCALE)));
    for (int j = 1; j < N; j++)
        h[j] = gguf_op_add(c, h[j], y);
    return true;
}

tensor *gg_altup_layers(const struct gg_model_pass *p,
                        struct gg_model_layer_links *across, tensor *x)
{
    tensor *h[N];
    struct gg_model_at at = gg_model_at_layer(p, across, 0);
    split_streams(&at, x, h);
    for (uint32_t il = 0; il < gg_model_n_main_layers(p->model); il++) {
        at = gg_model_at_layer(p, across, il);
        if (!build_layer(&at, h))
            return NULL;
    }
    return merge_streams(&at, h);
}
