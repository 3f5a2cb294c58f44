/* SPDX-License-Identifier: MIT */
/* mistral.c - Mistral */
#include "config.h"
#include "model/family/arch_row.h"

static void fill_temperature(struct gg_hparams *hp)
{
    hp->temperature.scale = hp->temp_scale;
    hp->temperature.length =
        hp->has[GG_HP_n_ctx_orig] ? hp->n_ctx_orig : hp->n_ctx_train;
}

static const struct gg_arch_temperature by_context = {
    .text = "query temperature by key, n the original "
            "context",
    .fill = fill_temperature
};

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "mistral3", .runs = true, LLAMA, FREQS, LONGROPE,
      .temperature = &by_context, .out_b = GG_MAY, .ffn_b = GG_MAY,
      .moe = MOE_IF_ANY, MORE(KM(temp_scale), YARN) },
    { .name = "mistral4", .runs = true, LLAMA, .mixer = &gg_mixer_latent,
      .scale = &gg_arch_scale_yarn,
      .moe = { .where = &gg_arch_experts_leading, .gating_key = GG_MAY,
               .expert_bias = GG_MAY, .norm = GG_MAY, .scale = true,
               .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_counted },
      .nextn = true, .temperature = &gg_arch_temperature_by_keys,
      MORE(KM(temp_scale), KM(temp_length), LATENT, YARN) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_mistral = { rows, GG_LEN(rows) };
