/* SPDX-License-Identifier: MIT */
/* arch_recurrent.c - decoders in which at least some layers keep a state
 * instead of keys and values */
#include "config.h"
#include "model/arch_row.h"

/* clang-format off */
/* Two names for one. */
#define NEMOTRON                                                              \
    ONE, NO_ROPE, .order = GG_ORDER_SINGLE,                                   \
    .other = GG_MIX_MAMBA2, .mix_rule = GG_MIX_RULE_NO_KV_NO_FF,              \
    .out_b = GG_MAY, .ffn = GG_FFN_PLAIN, .act = GG_ACT_RELU_SQR,             \
    .ffn_b = GG_MAY,                                                          \
    .moe = { .where = GG_EXPERTS_FF, .gating = GG_GATING_SIGMOID,             \
             .select_b = GG_MUST, .norm = GG_MAY, .scale = true,              \
             .plain = true, .ff = GG_EXPERT_FF_KEY_OR_PART,                   \
             .shared = GG_SHARED_WIDTH_ONLY },                                \
    MORE(SSM, K(ssm_groups), KM(moe_latent), M(LATENT_DOWN),                  \
         M(LATENT_UP))

static const struct gg_arch rows[] = {
    { .name = "arwkv7", .runs = true, LLAMA, NO_ROPE, OWN,
      .mixer = GG_MIX_RWKV7, .norm_eps_maybe = true, MORE(RANKS_7) },
    { .name = "falcon-h1", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(FFN_NORM_BARE)), OUTPUT_NORM),
      NEOX, FREQS, .mixer = GG_MIX_ATTENTION_MAMBA2, .out_b = GG_MAY,
      .ffn_b = GG_MAY, MORE(SSM, K(ssm_groups), M(FFN_NORM)),
      IDLE(W(ATTN_OUT_B), W(ROPE_FREQS)),
      .odd = "attn_output.bias and rope_freqs are not used" },
    { .name = "granitehybrid", .runs = true, GRANITE,
      .other = GG_MIX_MAMBA2, .mix_rule = GG_MIX_RULE_NO_KV,
      MORE(SSM, K(ssm_groups)) },
    { .name = "jamba", .runs = true, LLAMA, NO_ROPE,
      .other = GG_MIX_MAMBA_NORM, .mix_rule = GG_MIX_RULE_NO_KV,
      .moe = { .where = GG_EXPERTS_TENSOR }, MORE(SSM) },
    { .name = "kimi-linear", .runs = true, LLAMA, NO_ROPE, OWN,
      .mixer = GG_MIX_LATENT_NOPE, .other = GG_MIX_KDA,
      .mix_rule = GG_MIX_RULE_NO_KV,
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .select_b = GG_MUST, .norm = GG_MUST,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT_ALWAYS },
      MORE(K(rank_kv), K(dim_k_mla), K(dim_v_mla), K(ssm_conv),
           K(kda_head)) },
    { .name = "lfm2", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(FFN_NORM)), EMBD_NORM),
      NEOX, HEAD_NORM, .other = GG_MIX_SHORTCONV,
      .mix_rule = GG_MIX_RULE_NO_KV,
      .window = { GG_WINDOW_EVERY, .key = GG_MAY },
      MORE(K(n_lconv), M(DENSE_2), M(DENSE_2_B), KM(n_embd_out)) },
    { .name = "lfm2moe", .runs = true,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(FFN_NORM)), EMBD_NORM),
      NEOX, HEAD_NORM, .other = GG_MIX_SHORTCONV,
      .mix_rule = GG_MIX_RULE_NO_KV,
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .select_b = GG_MUST, .norm = GG_MUST,
               .ff = GG_EXPERT_FF_KEY },
      MORE(K(n_lconv)) },
    { .name = "mamba", .runs = true, ONE, NO_ROPE, .order = GG_ORDER_SINGLE,
      .mixer = GG_MIX_MAMBA, .ffn = GG_FFN_NONE, MORE(SSM, KM(ssm_rms)) },
    { .name = "mamba2", .runs = true, ONE, NO_ROPE, .order = GG_ORDER_SINGLE,
      .mixer = GG_MIX_MAMBA2, .ffn = GG_FFN_NONE, MORE(SSM, K(ssm_groups)) },
    { .name = "nemotron_h", .runs = true, NEMOTRON },
    { .name = "nemotron_h_moe", .runs = true, NEMOTRON },
    { .name = "plamo2", .runs = true, FOUR_BARE, NEOX,
      .rope_where = GG_ROPE_WHERE_FIRST_HEADS, .other = GG_MIX_PLAMO_MAMBA,
      .mix_rule = GG_MIX_RULE_NO_KV, .qkv = GG_QKV_FUSED,
      .qk = { .form = GG_QK_HEADS }, .scale = GG_SCALE_VALUE,
      .ffn = GG_FFN_FUSED, MORE(SSM, K(ssm_groups)),
      .odd = "nothing turns in files whose first layer has no heads, which "
             "published ones are: as in llama.cpp, not as in the paper" },
    { .name = "qwen35", .runs = true, LLAMA_POST, HEAD_NORM,
      .rope = GGUF_ROPE_IMROPE, .rope_axes = true, .qkv = GG_QKV_GATED,
      .other = GG_MIX_DELTA_TILED,
      .mix_rule = GG_MIX_RULE_INTERVAL, .nextn = true,
      MORE(SSM, K(ssm_groups), KM(attn_interval), KM(recurrent)) },
    { .name = "qwen35moe", .runs = true, LLAMA_POST, HEAD_NORM,
      .rope = GGUF_ROPE_IMROPE, .rope_axes = true, .qkv = GG_QKV_GATED,
      .other = GG_MIX_DELTA_TILED,
      .mix_rule = GG_MIX_RULE_INTERVAL,
      .moe = { .where = GG_EXPERTS_ALL, .norm = GG_MUST, .fused = true,
               .ff = GG_EXPERT_FF_KEY_OR_PART,
               .shared = GG_SHARED_WIDTH_MODEL, .shared_gate = true },
      .nextn = true,
      MORE(SSM, K(ssm_groups), KM(attn_interval), KM(recurrent)) },
    { .name = "qwen3next", .runs = true, LLAMA_POST, NEOX, HEAD_NORM,
      .qkv = GG_QKV_GATED, .other = GG_MIX_DELTA,
      .mix_rule = GG_MIX_RULE_INTERVAL,
      .moe = { .where = GG_EXPERTS_ALL, .norm = GG_MUST, .fused = true,
               .ff = GG_EXPERT_FF_KEY_OR_PART,
               .shared = GG_SHARED_WIDTH_MODEL, .shared_gate = true },
      .nextn = true,
      MORE(SSM, K(ssm_groups), KM(attn_interval), KM(recurrent)) },
    { .name = "rwkv6", .runs = true, LAYER, NO_ROPE, OWN,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(ATTN_NORM_2)), OUTPUT_NORM),
      .norm_eps_maybe = true, .mixer = GG_MIX_RWKV6,
      .ffn = GG_FFN_CHANNEL_MIX_R, .embd_norm = GG_MUST,
      .rescales = true,
      MORE(K(wkv_head), K(n_mix), K(n_decay), KM(n_shift)) },
    { .name = "rwkv6qwen2", .runs = true, LLAMA, NO_ROPE, OWN,
      .norm_eps_maybe = true, .mixer = GG_MIX_RWKV6_LINEAR,
      MORE(K(wkv_head), K(n_mix), K(n_decay), KM(rescale), KM(n_shift),
           M(OUTPUT_NORM_B)),
      .odd = "rescale_every_n_layers does nothing" },
    { .name = "rwkv7", .runs = true, LAYER, NO_ROPE, OWN,
      NORMS(AT(.pre = W(ATTN_NORM)), AT(.pre = W(ATTN_NORM_2)), OUTPUT_NORM),
      .norm_eps_maybe = true, .mixer = GG_MIX_RWKV7,
      .ffn = GG_FFN_CHANNEL_MIX, .embd_norm = GG_MUST, MORE(RANKS_7) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_recurrent = { rows, GG_LEN(rows) };
