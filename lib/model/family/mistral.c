/* SPDX-License-Identifier: MIT */
/* mistral.c - Mistral */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "mistral3", .runs = true, LLAMA, FREQS, LONGROPE,
      .temper = GG_TEMPER_CONTEXT, .out_b = GG_MAY, .ffn_b = GG_MAY,
      .moe = MOE_IF_ANY, MORE(YARN) },
    { .name = "mistral4", .runs = true, LLAMA, .mixer = &gg_mixer_latent,
      .scale = GG_SCALE_YARN,
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_SIZE,
               .gating_key = GG_MAY, .select_b = GG_MAY, .norm = GG_MAY,
               .scale = true, .fused = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT },
      .nextn = true, .temper = GG_TEMPER_KEYS, MORE(LATENT, YARN) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_mistral = { rows, GG_LEN(rows) };
