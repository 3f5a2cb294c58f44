/* SPDX-License-Identifier: MIT */
/* plamo.c - PLaMo */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "plamo", .runs = true,
      ONE, NEOX, OWN, .order = GG_ORDER_PARALLEL },
    { .name = "plamo2", .runs = true, FOUR_BARE, NEOX,
      .rope_where = GG_ROPE_WHERE_FIRST_HEADS, .other = GG_MIX_PLAMO_MAMBA,
      .mix_rule = GG_MIX_RULE_NO_KV, .qkv = GG_QKV_FUSED,
      .qk = { .form = GG_QK_HEADS }, .scale = GG_SCALE_VALUE,
      .ffn = GG_FFN_FUSED, MORE(SSM, K(ssm_groups)),
      .odd = "nothing turns in files whose first layer has no heads, which "
             "published ones are: as in llama.cpp, not as in the paper" },
    { .name = "plamo3", .runs = true, FOUR_BARE, NEOX, HEAD_NORM,
      .qkv = GG_QKV_FUSED,
      .window = { GG_WINDOW_LAST_FULL, GG_MAY, 8, .rope = GG_WINDOW_ROPE_OWN },
      .ffn = GG_FFN_FUSED },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_plamo = { rows, GG_LEN(rows) };
