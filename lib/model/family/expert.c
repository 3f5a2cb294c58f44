/* SPDX-License-Identifier: MIT */
/* expert.c - models of several makers, most with experts, each alone in its
 * lineage */
#include "config.h"
#include "model/family/arch_row.h"

#include <inttypes.h>
#include <math.h>

typedef struct gguf_tensor tensor;

static const uint16_t w_square[] = { N(FFN_GATE_SQUARE), N(FFN_UP_SQUARE),
                                     N(FFN_DOWN_SQUARE), 0 };

/* A square feed-forward part: as wide as the model. */
static tensor *ffn_square(const struct gg_model_at *at, tensor *x)
{
    tensor *gate = gg_model_linear(at, GG_W_FFN_GATE_SQUARE, x);
    tensor *up = gg_model_linear(at, GG_W_FFN_UP_SQUARE, x);
    return gg_model_linear(at, GG_W_FFN_DOWN_SQUARE,
                           gg_model_apply_gated_act(at, gate, up, 0));
}

static const struct gg_ffn square = { .text = "as wide as the model",
                                      .weights = w_square,
                                      .build = ffn_square };

/* Arctic's experts read the layer's input, in parallel with both of its
 * parts. */
static tensor *build_dense(const struct gg_model_at *at, tensor *x)
{
    return at->layer->ffn->build(at, x);
}

static const struct gg_arch_dense_branch on_input = { .text = "",
                                                      .always = true,
                                                      .build = build_dense };

static tensor *add_experts(const struct gg_model_at *at, tensor *x)
{
    if (!at->layer->moe)
        return x;
    return gguf_op_add(
        at->c, x,
        gg_model_build_moe(
            at, gg_model_apply_norm_if(at, GG_W_FFN_NORM_EXPS, at->in)));
}

/* ---- Grok ---- */

/* A dense part, if the layer has one; the sum is multiplied by 1/sqrt(2). */
static tensor *add_dense(const struct gg_model_at *at, tensor *x)
{
    tensor *y = gg_model_build_moe(at, x);
    if (!gg_weight_at(at, GG_W_FFN_UP))
        return y;
    y = gguf_op_add(at->c, gg_ffn_gated.build(at, x), y);
    return gguf_op_scale(at->c, y, 0.70710678118654752f);
}

static const struct gg_arch_dense_branch maybe_dense = {
    .text = "a dense part may be added: the sum times "
            "1/sqrt(2)",
    .build = add_dense
};

/* 1/sqrt(128), that of Grok-1's heads, without the key. */
static float output_scale(const struct gg_hparams *hp,
                          const struct gg_model_layer *l)
{
    (void)l;
    return hp->has[GG_HP_attn_out_scale] ? hp->attn_out_scale
                                         : 0.08838834764831845f;
}

static const struct gg_arch_scale by_output_scale = {
    .text = "by attention.output_scale", .of_layer = output_scale
};

/* ---- Laguna ---- */

static const struct gg_arch_window_rope plain_base = {
    .text = "own base if given, not scaled", .base = true
};

static tensor *gate_by_softplus(const struct gg_model_at *at, tensor *x,
                                tensor *taken)
{
    tensor *gate = gg_model_linear(at, GG_W_ATTN_GATE_ANY, x);
    return gg_model_gate_heads(at, taken, gguf_op_softplus(at->c, gate));
}

/* Laguna's gate has an element for each element of the result, or for each
 * head. */
static enum gguf_status check_gate(const struct gguf_model *m, uint32_t il,
                                   struct gguf_error *err)
{
    char name[GG_WEIGHT_NAME];
    const struct gg_model_layer *l = &m->hp.layer[il];
    size_t i;
    if (!gg_source_find(&m->src, gg_weight_name(GG_W_ATTN_GATE_ANY, il, name),
                        &i))
        return GGUF_OK;
    const struct gguf_tensor_info *t = gg_source_tensor(&m->src, i).info;
    const int64_t n = l->n_head, wide = n * l->dim_v;
    if (t->ne[1] == n || t->ne[1] == wide)
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_TENSOR, t->info_off,
                        "tensor '%s' has %" PRId64 " rows, must have %" PRId64
                        " or %" PRId64,
                        name, t->ne[1], n, wide);
}

/* ---- Maple ---- */

/* The model's own limit, which early files lack. */
static void fill_clamp(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    if (hp->has[GG_HP_clamp_exp])
        return;
    for (uint32_t il = 0; il < hp->n_layer; il++)
        hp->layer[il].clamp_exp = 7;
}

/* ---- Step 3.5 ---- */

/* In full layers half of rope.dimension_count is rotated. */
static enum gguf_status halve_full_rope(struct gg_hparams_reader *r)
{
    struct gg_hparams *hp = r->hp;
    hp->rope.n_dims /= 2;
    if (hp->rope.n_dims % 2 == 0)
        return GGUF_OK;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_n_rot);
    return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_HPARAM,
                           "%s is %" PRIu32 ", half of it must be even",
                           r->key, hp->n_rot);
}

/* Frequency factors cover the wider of both kinds of layers. */
static void size_factors(const struct gg_hparams *hp,
                         const struct gg_model_layer *l,
                         struct gg_model_sizes *z)
{
    (void)l;
    const uint32_t n_rot = GG_MAX(hp->n_rot, hp->n_rot_swa);
    z->rot = n_rot ? n_rot : NAN;
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "arctic", .runs = true, LLAMA,
      .finish_layer = { add_experts,
                        "experts beside both, on the layer's input" },
      .ffn = &square,
      .moe = { .where = &gg_arch_experts_all, .norm = GG_MUST,
               .dense_branch = &on_input },
      MORE(N(FFN_NORM_EXPS)) },
    { .name = "grok", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM), .post = W(ATTN_OUT_NORM)),
            AT(.pre = W(FFN_NORM), .post = W(LAYER_OUT_NORM)), OUTPUT_NORM),
      NEOX, .scale = &by_output_scale, .act = &gg_ffn_act_gelu,
      .moe = { .where = &gg_arch_experts_all, .norm = GG_MUST,
               .ff = &gg_arch_expert_width_or_model,
               .dense_branch = &maybe_dense },
      .embd_scale = &gg_arch_embd_by_key, .logit_scale = &gg_arch_logits_times,
      DEFAULTS(D(yarn_fast, 8), D(embd_scale, 78.38367176906169f),
               D(logit_scale, 0.5773502691896257f), D(attn_softcap, 30)),
      MORE(KM(logit_softcap), KM(attn_out_scale), M(NORM_POST_FFN), M(FFN_GATE),
           M(FFN_UP), M(FFN_DOWN)),
      .remark = "a dense part beside the experts; router_logit_softcapping is "
                "not used" },
    { .name = "laguna", .runs = true, LLAMA, NEOX, HEAD_NORM,
      .gate_attention = { gate_by_softplus, "softplus gate" },
      .check_layer = check_gate,
      .window = { &gg_arch_window_first_full, GG_MAY, 4, .rope = &plain_base },
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_SIGMOID,
               .gating_key = GG_MAY, .expert_bias = GG_MUST, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_wide_or_counted },
      MORE(N(ATTN_GATE_ANY), K(n_dense)) },
    { .name = "maple", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .rope_rule = &gg_arch_rope_in_windows,
      .window = { &gg_arch_window_listed, GG_MUST,
                  .rope = &gg_arch_window_rope_base },
      .act = &gg_ffn_act_silu_clamped_first,
      .moe = { .where = &gg_arch_experts_all, .norm = GG_MUST,
               .ff = &gg_arch_expert_width_given },
      .fill_hparams = { fill_clamp, "" },
      MORE(K(window_pattern), KM(clamp_exp)),
      .remark = "clamp of 7 before SiLU without swiglu_clamp_exp" },
    { .name = "mimo2", .runs = true, LLAMA, NEOX, OWN, .sinks = GG_MAY,
      .window = { &gg_arch_window_listed, GG_MUST,
                  .rope = &gg_arch_window_rope_own },
      .moe = { .where = &gg_arch_experts_by_router,
               .gating = GG_GATING_SIGMOID, .expert_bias = GG_MAY,
               .norm = GG_MUST, .ff = &gg_arch_expert_width_given },
      .nextn = true,
      MORE(K(window_pattern), KM(value_scale), M(LAYER_OUT_NORM)),
      UNUSED(W(ATTN_Q_B), W(ATTN_K_B), W(ATTN_V_B), W(ATTN_QKV_B),
             W(LAYER_OUT_NORM)),
      .remark = "attention's result times attention.value_scale; its biases "
                "are not added" },
    { .name = "spark2_5", .runs = true, LLAMA, NEOX, .act = &gg_ffn_act_gelu,
      .gate_attention = { gg_arch_gate_each_head, "sigmoid gate per head" },
      .window = { &gg_arch_window_listed, GG_MUST,
                  .rope = &gg_arch_window_rope_base },
      MORE(N(ATTN_GATE_HEAD), K(window_pattern)) },
    { .name = "step35", .runs = true, LLAMA, NEOX, OWN, FREQS, LONGROPE,
      .qkv = &gg_arch_qkv_separate,
      .qk_norm = { .form = GG_QK_HEAD, .optional = true },
      .gate_attention = { gg_arch_gate_each_head, "sigmoid gate per head" },
      .window = { &gg_arch_window_listed, GG_MUST,
                  .rope = &gg_arch_window_rope_own },
      .moe = { .where = &gg_arch_experts_by_router,
               .gating = GG_GATING_SIGMOID, .gating_key = GG_MAY,
               .expert_bias = GG_MAY, .norm = GG_MAY, .scale = true,
               .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_wide },
      .fill_full_rope = { halve_full_rope, "half as many in full layers" },
      .layer_sizes = { size_factors, "" }, .nextn = true,
      MORE(M(ATTN_GATE_HEAD), K(window_pattern), KM(clamp_exp),
           KM(clamp_shexp), M(FFN_GATE), M(FFN_UP), M(FFN_DOWN)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_expert = { rows, GG_LEN(rows) };
