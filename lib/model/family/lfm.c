/* SPDX-License-Identifier: MIT */
/* lfm.c - LFM2 */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
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
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_lfm = { rows, GG_LEN(rows) };
