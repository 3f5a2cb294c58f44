/* SPDX-License-Identifier: MIT */
/* glm.c - GLM */
#include "config.h"
#include "model/family/arch_row.h"

typedef struct gguf_tensor tensor;

/* Image tokens have their own matrices, which texts do not use. */
static const struct gg_mixer two_sets = { .text = "attention, other weights "
                                                  "for images",
                                          .heads = true,
                                          .mix = gg_model_mix_attention,
                                          .out = GG_W_ATTN_OUT,
                                          .memory = GG_MODEL_MEMORY_KV,
                                          .keys = gg_model_size_keys_heads };
static const struct gg_mixer sparse = { GG_MIXER_SPARSE };

/* Base 10000 without scaling, whatever the file says. */
static void fix_rope(struct gguf_rope *rope)
{
    rope->freq_base = 10000;
    rope->freq_scale = rope->attn_factor = 1;
    rope->ext_factor = 0;
}

/* GLM 5.2, recognized by its context, has an indexer in the first three layers
 * and then in every fourth. */
static bool has_indexer(const struct gg_hparams *hp, uint32_t il)
{
    return hp->n_ctx_train < 1 << 20 || il < 2 || (il - 2) % 4 == 0;
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "chatglm", .runs = true, LLAMA, .ffn = &gg_ffn_fused },
    { .name = "cogvlm", .runs = true, LLAMA, NEOX, FREQS, .mixer = &two_sets,
      .qkv = &gg_arch_qkv_fused, .fix_rope = fix_rope,
      MORE(N(VIS_QKV), N(VIS_OUT), N(VIS_GATE), N(VIS_UP), N(VIS_DOWN)),
      UNUSED(W(VIS_QKV), W(VIS_OUT), W(VIS_GATE), W(VIS_UP), W(VIS_DOWN),
             W(ROPE_FREQS)),
      .remark = "rotary base 10000 whatever the file says; rope_freqs is not "
                "used" },
    { .name = "glm-dsa", .runs = true, LLAMA, .mixer = &sparse,
      .scale = &gg_arch_scale_yarn, .has_indexer = has_indexer,
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_SIGMOID,
               .gating_key = GG_MAY, .expert_bias = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      .nextn = true, MORE(LATENT, INDEXER, KM(idx_types)),
      .remark = "layers may share the choice of an indexer, "
                "whose norm has the definition's epsilon" },
    { .name = "glm4", .runs = true, SANDWICH_NORM, .mrope_sections = true,
      .ffn = &gg_ffn_fused, .nextn = true },
    { .name = "glm4moe", .runs = true, LLAMA_POST, NEOX, .mrope_sections = true,
      .qk_norm = { .form = GG_QK_HEAD, .optional = true },
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_SIGMOID,
               .gating_key = GG_MAY, .expert_bias = GG_MUST, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_or_part,
               .shared = &gg_arch_shared_counted },
      .nextn = true },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_glm = { rows, GG_LEN(rows) };
