/* SPDX-License-Identifier: MIT */
/* gpt.c - GPT-2 and the models that are made like it, and GPT-OSS */
#include "config.h"
#include "model/family/arch_row.h"

typedef struct gguf_tensor tensor;

/* GPT-OSS: heads as wide as what positions turn. */
static uint32_t head_width(const struct gg_hparams *hp)
{
    return hp->has[GG_HP_n_rot] ? hp->n_rot : 0;
}

/* Jais */
static float scale_by_width(const struct gg_hparams *hp,
                            const struct gg_model_layer *l)
{
    (void)hp;
    return 1 / (float)l->dim_k;
}

static const struct gg_arch_scale by_width = { .text = "1/d",
                                               .of_layer = scale_by_width };

/* GPT-NeoX's use_parallel_residual */
static bool is_parallel_by_key(const struct gg_model_at *at)
{
    return at->m->hp.parallel;
}

/* StableLM */
static bool is_parallel_by_norm(const struct gg_model_at *at)
{
    return !gg_weight_at(at, GG_W_FFN_NORM);
}

/* Talkie: queries have a gain of each head, and what embeddings become is added
 * after each layer. */
static tensor *norm_and_gain(const struct gg_model_at *at, enum gg_weight id,
                             tensor *x)
{
    x = gg_model_apply_norm(at, GG_NORM_RMS, GG_W_NONE, x);
    return id == GG_W_ATTN_Q_NORM
               ? gguf_op_mul(at->c, x, gg_weight_at(at, GG_W_HEAD_GAIN))
               : x;
}

static tensor *add_embeddings(const struct gg_model_at *at, tensor *x)
{
    tensor *first = gg_model_take_output_rows(at, at->across->first);
    tensor *scale = gg_weight_at(at, GG_W_LAYER_OUT_SCALE);
    return gguf_op_add(at->c, x, gguf_op_mul(at->c, first, scale));
}

static uint32_t gating_of_gpt_oss(const struct gg_hparams *hp)
{
    (void)hp;
    return GG_EXPERT_SOFTMAX_OF_CHOSEN;
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "bloom", .runs = true, LLAMA, LAYER, NO_ROPE, FUSED_B, GELU_B,
      .alibi = 8, .embd_norm = true },
    { .name = "codeshell", .runs = true, LLAMA, LAYER, NEOX, OWN, GELU_B,
      .out_b = GG_MUST, MORE(N(TOKEN_EMBD_MAYBE)),
      .remark = "without embeddings the output is the embeddings" },
    { .name = "dbrx", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(ATTN_OUT_NORM)), OUTPUT_NORM),
      NEOX, OWN, .norm = GG_NORM_LAYER, .qkv = &gg_arch_qkv_fused,
      .clamp_qkv = GG_MUST, .moe = MOE_ALL(MUST, NULL) },
    { .name = "gpt-oss", .runs = true, LLAMA_POST, NEOX, OWN, .out_b = GG_MUST,
      .sinks = GG_MUST,
      .head_width = { head_width,
                      "as wide as its rotary dimensions unless given" },
      .window = { &gg_arch_window_last_full, GG_MUST, 2,
                  .rope = &gg_arch_window_rope_base },
      .act = &gg_ffn_act_oai,
      .moe = { .where = &gg_arch_experts_all,
               .gating_of_model = { gating_of_gpt_oss,
                                    "softmax of the chosen" },
               .ff = &gg_arch_expert_width_given },
      MORE(N(ROUTER_B), N(GATE_EXPS_B), N(UP_EXPS_B), N(DOWN_EXPS_B),
           M(GATE_UP_EXPS_B)) },
    { .name = "gpt2", .runs = true, LLAMA, LAYER, NO_ROPE, FUSED_B, GELU_B,
      .position = GG_MUST },
    { .name = "gptneox", .runs = true, LLAMA, LAYER, NEOX, OWN, FUSED_B,
      GELU_B,
      .is_parallel = { is_parallel_by_key,
                       "parallel or not by use_parallel_residual" },
      MORE(K(parallel)) },
    { .name = "jais", .runs = true, LLAMA, LAYER, NO_ROPE, OWN, FUSED_B,
      .scale = &by_width, .ffn_b = GG_MUST, MORE(KM(max_alibi)) },
    { .name = "jais2", .runs = true, LLAMA, LAYER, NEOX,
      .qkv = &gg_arch_qkv_separate, .qkv_b = GG_MUST, .out_b = GG_MUST,
      .ffn = &gg_ffn_plain, .act = &gg_ffn_act_relu_sqr, .ffn_b = GG_MUST },
    { .name = "mpt", .runs = true, LLAMA, NO_ROPE, .norm = GG_NORM_LAYER,
      .norm_b = GG_MAY, .qkv = &gg_arch_qkv_fused, .qkv_b = GG_MAY,
      .out_b = GG_MAY, .clamp_qkv = GG_MAY,
      .qk_norm = { .form = GG_QK_ALL_HEADS, .kind = GG_NORM_LAYER,
      .optional = true,
              .bias = GG_MAY },
      .ffn = &gg_ffn_plain, .act = &gg_ffn_act_gelu, .ffn_b = GG_MAY,
      .position = GG_MAY, MORE(KM(max_alibi), M(FFN_ACT_SCALE)),
      .remark = "activations are divided by ffn.act.scales" },
    { .name = "refact", .runs = true, LLAMA, NO_ROPE, FREQS, .alibi = 8,
      .out_b = GG_MAY, .ffn_b = GG_MAY,
      UNUSED(W(ATTN_OUT_B), W(FFN_GATE_B), W(FFN_UP_B), W(FFN_DOWN_B)),
      .remark = "biases but of q, k, v are not used" },
    { .name = "stablelm", .runs = true, ONE, LAYER, NEOX, OWN,
      .is_parallel = { is_parallel_by_norm,
                       "parallel if there is no ffn_norm" },
      .qk_norm = { .form = GG_QK_EACH_HEAD, .kind = GG_NORM_LAYER,
      .optional = true },
      MORE(M(FFN_NORM), M(FFN_NORM_B)) },
    { .name = "starcoder", .runs = true, LLAMA, LAYER, NO_ROPE, FUSED_B,
      GELU_B, .position = GG_MUST },
    { .name = "starcoder2", .runs = true, LLAMA, LAYER, NEOX, GELU_B,
      .out_b = GG_MUST },
    { .name = "talkie", .runs = true, LLAMA, NEOX, OWN,
      .choose_weights = { gg_arch_without_norm_weights,
                          "norms without weights" },
      .qk_norm = { .norm_heads = { norm_and_gain,
                              "norms of q and k per head, no weight, a number "
                              "a query head, late" },
              .after_rope = true },
      .embd_norm = true, .finish_layer = { add_embeddings, "" },
      .logit_scale = &gg_arch_logits_times,
      MORE(N(HEAD_GAIN), K(logit_scale), N(LAYER_OUT_SCALE)),
      .remark = "normed embeddings are added, scaled, after each layer" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_gpt = { rows, GG_LEN(rows) };
