/* SPDX-License-Identifier: MIT */
/* minimax.c - MiniMax */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "minimax-m2", .runs = true,
      LLAMA, NEOX, OWN, .qkv = GG_QKV_SEPARATE,
      .qk = { .form = GG_QK_WIDE },
      .moe = { .where = GG_EXPERTS_ALL, .gating = GG_GATING_KEY,
               .gating_key = GG_MAY, .select_b = GG_MUST, .norm = GG_MUST },
      MORE(K(n_ff_expert)) },
    { .name = "minimax-m3", .runs = true, LLAMA, NEOX, OWN, HEAD_NORM,
      .mixer = GG_MIX_BLOCKS, .other = GG_MIX_ATTENTION,
      .idx_rope = GGUF_ROPE_NEOX,
      .mix_rule = GG_MIX_RULE_LEADING, .act = GG_ACT_OAI,
      .moe = { .where = GG_EXPERTS_LEAD, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .select_b = GG_MUST, .norm = GG_MAY,
               .scale = true, .ff = GG_EXPERT_FF_KEY,
               .shared = GG_SHARED_COUNT },
      MORE(INDEXER, K(idx_block), K(idx_local)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_minimax = { rows, GG_LEN(rows) };
