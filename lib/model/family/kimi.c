/* SPDX-License-Identifier: MIT */
/* kimi.c - Kimi */
#include "config.h"
#include "model/family/arch_row.h"

static const uint16_t w_kda[] = {
    N(KDA_Q),      N(KDA_K),      N(KDA_V),    N(KDA_CONV_Q),
    N(KDA_CONV_K), N(KDA_CONV_V), N(KDA_F_A),  N(KDA_F_B),
    N(KDA_G_A),    N(KDA_G_B),    N(KDA_BETA), N(KDA_A),
    N(KDA_DT_B),   N(KDA_NORM),   N(KDA_OUT),  0
};

static const struct gg_mixer latent_nope = {
    .text = "latent attention without positions", GG_MIXER_LATENT
};

static const struct gg_mixer kda = { .text = "Kimi's delta rule",
                                     .weights = w_kda,
                                     .mix = gg_model_mix_kda,
                                     .out = GG_W_KDA_OUT,
                                     .memory = GG_MODEL_MEMORY_STATES,
                                     .states = gg_model_size_states_kda };

static double width_of_one_at_least(const struct gg_hparams *hp, double own,
                                    double ff)
{
    (void)ff;
    return own * (hp->n_shared ? hp->n_shared : 1);
}

static const struct gg_arch_shared at_least_one = {
    .text = "shared: at least one", .width = width_of_one_at_least
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "kimi-linear", .runs = true, LLAMA, NO_ROPE, OWN,
      .mixer = &latent_nope, .other = &kda, .mix_rule = &gg_arch_mix_by_kv,
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .expert_bias = GG_MUST, .norm = GG_MUST,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &at_least_one },
      MORE(K(rank_kv), K(dim_k_mla), K(dim_v_mla), K(ssm_conv), K(kda_head)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_kimi = { rows, GG_LEN(rows) };
