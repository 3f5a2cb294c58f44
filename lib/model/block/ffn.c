/* SPDX-License-Identifier: MIT */
/* ffn.c - feed-forward parts: the part of a layer that treats tokens
 * separately */
#include "config.h"
#include "model/build_int.h"

#include <math.h>

typedef struct gguf_tensor tensor;

/* ---- activations ---- */

static tensor *swiglu_oai(struct gguf_ctx *c, tensor *gate, tensor *up)
{
    return gguf_op_swiglu_oai(c, gate, up, 1.702f, 7);
}

const struct gg_ffn_act gg_ffn_act_silu = { .text = "",
                                            .alone = gguf_op_silu,
                                            .gated = gguf_op_swiglu },
                        gg_ffn_act_silu_clamped_first = { .text = "",
                                                          .alone =
                                                              gguf_op_silu,
                                                          .gated =
                                                              gguf_op_swiglu,
                                                          .clamps_first =
                                                              true },
                        gg_ffn_act_gelu = { .text = "GELU",
                                            .alone = gguf_op_gelu,
                                            .gated = gguf_op_geglu },
                        gg_ffn_act_relu = { .text = "ReLU",
                                            .alone = gguf_op_relu,
                                            .gated = gguf_op_reglu },
                        gg_ffn_act_relu_sqr = { .text = "squared ReLU",
                                                .alone = gguf_op_relu_sqr },
                        gg_ffn_act_oai = { .text = "clamped SwiGLU",
                                           .gated = swiglu_oai };

/* Smaller limits mean no limit, as in llama.cpp: some layers have 0. */
#define LEAST_LIMIT 1e-6f

tensor *gg_model_apply_gated_act(const struct gg_model_at *at, tensor *gate,
                                 tensor *up, float limit)
{
    const struct gg_ffn_act *act = at->m->hp.act;
    if (act->gated_of_layer)
        return act->gated_of_layer(at, gate, up);
    if (!(limit > LEAST_LIMIT))
        return act->gated(at->c, gate, up);
    up = gguf_op_clamp(at->c, up, -limit, limit);
    if (act->clamps_first)
        return act->gated(at->c, gguf_op_clamp(at->c, gate, -INFINITY, limit),
                          up);
    gate = gguf_op_clamp(at->c, act->alone(at->c, gate), -INFINITY, limit);
    return gguf_op_mul(at->c, gate, up);
}

tensor *gg_model_apply_act(const struct gg_model_at *at, tensor *x)
{
    const struct gg_ffn_act *act = at->m->hp.act;
    return act->of_layer ? act->of_layer(at, x) : act->alone(at->c, x);
}

static bool has_alone(const struct gg_ffn_act *act)
{
    return act->alone || act->of_layer;
}

static bool has_gated(const struct gg_ffn_act *act)
{
    return act->gated || act->gated_of_layer;
}

/* ---- dense ---- */

/* Norm of the down projection's input (BitNet). */
static tensor *sub_norm(const struct gg_model_at *at, tensor *x)
{
    return gg_weight_at(at, GG_W_FFN_SUB_NORM)
               ? gg_model_apply_norm_if(at, GG_W_FFN_SUB_NORM, x)
               : x;
}

/* Activation sparsity: subtract the threshold, mean + k standard deviations,
 * from each gate; negative results become 0. */
static tensor *keep_top_gates(const struct gg_model_at *at, tensor *gate)
{
    struct gguf_ctx *c = at->c;
    if (!gate)
        return NULL;
    const float n = (float)gate->ne[0];
    gate = gguf_op_sub(c, gate, gguf_op_mean(c, gate));
    tensor *var = gguf_op_sum_rows(c, gguf_op_sqr(c, gate));
    tensor *dev = gguf_op_sqrt(c, gguf_op_scale(c, var, 1 / (n - 1)));
    dev = gguf_op_scale(c, dev, at->layer->activation_sparsity);
    return gguf_op_relu(c, gguf_op_sub(c, gate, dev));
}

static tensor *ffn_gated(const struct gg_model_at *at, tensor *x)
{
    tensor *gate = gg_model_linear(at, GG_W_FFN_GATE, x);
    if (at->layer->activation_sparsity > -INFINITY)
        gate = keep_top_gates(at, gate);
    tensor *up = gg_model_linear(at, GG_W_FFN_UP, x);
    tensor *y = gg_model_apply_gated_act(at, gate, up, at->layer->clamp_shexp);
    return gg_model_linear(at, GG_W_FFN_DOWN, sub_norm(at, y));
}

/* Activations may be divided by numbers, by which AWQ multiplied the columns of
 * the last matrix (MPT). */
static tensor *ffn_plain(const struct gg_model_at *at, tensor *x)
{
    tensor *by = gg_weight_at(at, GG_W_FFN_ACT_SCALE);
    tensor *y = gg_model_apply_act(at, gg_model_linear(at, GG_W_FFN_UP, x));
    return gg_model_linear(at, GG_W_FFN_DOWN,
                           by ? gguf_op_div(at->c, y, by) : y);
}

tensor *gg_model_take_row_half(const struct gg_model_at *at, tensor *x, int i)
{
    if (!x)
        return NULL;
    const int64_t n = x->ne[0] / 2;
    tensor *y = gguf_op_view_3d(at->c, x, n, x->ne[1], x->ne[2], x->nb[1],
                                x->nb[2], (uint64_t)(i * n * x->nb[0]));
    return gguf_op_cont(at->c, y);
}

/* Gate and up in one matrix, the gate first. */
static tensor *ffn_fused(const struct gg_model_at *at, tensor *x)
{
    tensor *both = gg_model_linear(at, GG_W_FFN_UP, x);
    tensor *gate = gg_model_take_row_half(at, both, 0);
    tensor *up = gg_model_take_row_half(at, both, 1);
    return gg_model_linear(
        at, GG_W_FFN_DOWN,
        gg_model_apply_gated_act(at, gate, up, at->layer->clamp_shexp));
}

static const uint16_t w_gated[] = { GG_NEED(FFN_GATE), GG_NEED(FFN_UP),
                                    GG_NEED(FFN_DOWN), 0 },
                      w_plain[] = { GG_NEED(FFN_UP), GG_NEED(FFN_DOWN), 0 };

const struct gg_ffn gg_ffn_gated = { .text = "",
                                     .weights = w_gated,
                                     .build = ffn_gated },
                    gg_ffn_fused = { .text = "gate and up fused",
                                     .weights = w_plain,
                                     .build = ffn_fused,
                                     .fused_gate = true },
                    gg_ffn_plain = { .text = "no gate",
                                     .weights = w_plain,
                                     .build = ffn_plain,
                                     .ungated = true };

bool gg_ffn_is_supported(const struct gguf_model *m,
                         const struct gg_model_layer *l)
{
    const struct gg_ffn_act *act = m->hp.act;
    if (l->moe && !(m->arch->moe.plain ? has_alone(act) : has_gated(act)))
        return false;
    if (!l->ffn)
        return true;
    return l->ffn->build &&
           (l->ffn->ungated ? has_alone(act) : has_gated(act));
}
