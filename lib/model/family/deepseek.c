/* SPDX-License-Identifier: MIT */
/* deepseek.c - DeepSeek, and models with its latent attention or experts */
#include "config.h"
#include "model/family/arch_row.h"

static const struct gg_mixer sparse = { GG_MIXER_SPARSE,
                                        .idx_rope = GGUF_ROPE_NEOX };

static const struct gg_ffn_act silu_clamped_first = { .text = "",
                                                      .alone = gguf_op_silu,
                                                      .gated = gguf_op_swiglu,
                                                      .clamps_first = true };

static void scale_both(struct gg_hparams *hp)
{
    gg_hparams_scale_by_yarn(hp, true);
}

static const struct gg_arch_scale yarn_of_both = {
    .text = "with YaRN's magnitude, of positions, too", .by_yarn = scale_both
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "deepseek", .runs = true, LLAMA,
      .moe = { .where = GG_EXPERTS_LEAD, .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT } },
    { .name = "deepseek2", .runs = true, LLAMA, .mixer = &gg_mixer_latent,
      .scale = &yarn_of_both,
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_SIZE,
               .gating_key = GG_MAY, .select_b = GG_MAY, .norm = GG_MAY,
               .scale = true, .fused = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT },
      .nextn = true, .temper = &gg_arch_temperature_by_keys,
      MORE(KM(temp_scale), KM(temp_length), LATENT, YARN) },
    { .name = "deepseek2-ocr", .runs = true, LLAMA, NEOX,
      .qkv = &gg_arch_qkv_separate,
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_SOFTMAX,
               .gating_key = GG_MAY, .select_b = GG_MAY, .norm = GG_MAY,
               .scale = true, .fused = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT } },
    { .name = "deepseek32", .runs = true, LLAMA, .mixer = &sparse,
      .scale = &gg_arch_scale_yarn,
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .select_b = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT },
      .nextn = true, MORE(LATENT, INDEXER, YARN) },
    { .name = "deepseek4", .runs = true, LLAMA, OWN,
      .act = &silu_clamped_first,
      .build_layers = { gg_hyper_layers, "hyper-connected streams" },
      .mixer = &gg_mixer_compressed, .sinks = GG_MUST,
      .window = { &gg_arch_window_everywhere, .key = GG_MUST,
                  .rope = &gg_arch_window_rope_plain },
      .moe = { .where = GG_EXPERTS_ALL, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .select_b = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT },
      .nextn = true,
      MORE(N(OUTPUT_HC_FN), N(OUTPUT_HC_BASE), N(OUTPUT_HC_SCALE), K(rank_q),
           INDEXER, K(out_groups), K(out_rank), K(compress_base), K(compress),
           K(n_streams), K(n_sinkhorn), K(streams_eps), K(n_hash),
           K(expert_norm), K(expert_scale), K(clamp_exp), KM(clamp_shexp)),
      .odd = "first layers choose experts by the token's number; clamped "
             "SwiGLU" },
    { .name = "dots1", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_KEY,
               .gating_key = GG_MAY, .select_b = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT } },
    { .name = "plm", .runs = true, LLAMA, .mixer = &gg_mixer_latent_expanded,
      .ffn = &gg_ffn_plain, .act = &gg_ffn_act_relu_sqr,
      .output = GG_OUTPUT_EMBD, MORE(K(rank_kv)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_deepseek = { rows, GG_LEN(rows) };
