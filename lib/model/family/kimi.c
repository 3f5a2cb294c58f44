/* SPDX-License-Identifier: MIT */
/* kimi.c - Kimi */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "kimi-linear", .runs = true, LLAMA, NO_ROPE, OWN,
      .mixer = GG_MIX_LATENT_NOPE, .other = GG_MIX_KDA,
      .mix_rule = GG_MIX_RULE_NO_KV,
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .select_b = GG_MUST, .norm = GG_MUST,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT_ALWAYS },
      MORE(K(rank_kv), K(dim_k_mla), K(dim_v_mla), K(ssm_conv),
           K(kda_head)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_kimi = { rows, GG_LEN(rows) };
