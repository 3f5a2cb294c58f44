/* SPDX-License-Identifier: MIT */
/* bailing.c - Bailing (Ling) */
#include "config.h"
#include "model/family/arch_row.h"

static double width_times_count(const struct gg_hparams *hp, double own,
                                double ff)
{
    return gg_arch_shared_wide.width(hp, own, ff) * hp->n_shared;
}

static const struct gg_arch_shared counted_of_width = {
    .text = "shared: expert_shared_count of own width",
    .width = width_times_count
};

/* ---- Ling 3.0 ---- */

static const uint16_t w_gate[] = { N(ATTN_GATE_HEAD), 0 },
                      w_kda[] = { N(KDA_F), N(KDA_G), N(KDA_A), 0 };

/* The decay of the other layers is bounded. */
static enum gguf_status check_decay(struct gg_hparams_reader *r)
{
    const struct gg_hparams *hp = r->hp;
    const struct gguf_kv *kv = gg_hparams_find(r, GG_HP_kda_safe);
    if (gg_finding_is_fatal(r->report) && hp->has[GG_HP_kda_safe] &&
        !hp->kda_safe)
        return gg_hparams_fail(r, kv, GG_CHECK_KEY_VALUE, GGUF_E_UNSUPPORTED,
                               "%s is false: models whose decay has no lower "
                               "bound are not supported",
                               r->key);
    return gg_hparams_check_latent(r);
}

static const struct gg_mixer latent_gated = { .text = "latent attention",
                                              .weights =
                                                  gg_mixer_latent_weights,
                                              .more_weights = w_gate,
                                              .latent = true,
                                              .check_hparams = check_decay,
                                              .mix = gg_model_mix_latent,
                                              .out = GG_W_ATTN_OUT,
                                              .memory = GG_MODEL_MEMORY_KV,
                                              .keys =
                                                  gg_model_size_keys_latent };

static const struct gg_mixer kda = {
    .text = "Kimi's delta rule, with one matrix each for decay and gate",
    .more_weights = w_kda,
    .mix = gg_model_mix_kda_positive,
    GG_MIXER_KDA
};

static double width_given_or_counted(const struct gg_hparams *hp, double own,
                                     double ff)
{
    (void)ff;
    return hp->n_ff_shared ? hp->n_ff_shared
                           : own * (hp->n_shared ? hp->n_shared : 1);
}

static const struct gg_arch_shared given_or_counted = {
    .text = "shared: own width, or expert_shared_count, at least one",
    .width = width_given_or_counted
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "bailingmoe", .runs = true, LLAMA, OWN,
      .moe = { .where = &gg_arch_experts_all, .norm = GG_MAY, .scale = true,
               .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      MORE(KM(n_dense)) },
    { .name = "bailingmoe2", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .qkv = &gg_arch_qkv_fused,
      .moe = { .where = &gg_arch_experts_leading, .gating_key = GG_MUST,
               .gating = GG_GATING_KEY, .expert_bias = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &counted_of_width },
      .nextn = true, MORE(M(LAYER_OUT_NORM)) },
    { .name = "bailingmoe3", .runs = true, LLAMA,
      .mixer = &latent_gated, .other = &kda, .mix_rule = &gg_arch_mix_by_kv,
      .gate_attention = { gg_arch_gate_each_head, "sigmoid gate per head" },
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .expert_bias = GG_MUST, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &given_or_counted },
      .nextn = true,
      MORE(K(rank_kv), KM(rank_q), K(dim_k_mla), K(dim_v_mla), K(ssm_conv),
           K(kda_head), K(kda_bound), KM(kda_safe), K(n_shared), K(n_dense),
           KM(clamp_exp), KM(clamp_shexp), M(LAYER_OUT_NORM)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_bailing = { rows, GG_LEN(rows) };
