/* SPDX-License-Identifier: MIT */
/* granite.c - Granite */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
#define GRANITE                           \
    LLAMA, FREQS, .out_b = GG_MAY, .rope_where = GG_ROPE_WHERE_TUNED,         \
    .scale = GG_SCALE_KEY, .ffn_b = GG_MAY,                                   \
    .moe = { .where = GG_EXPERTS_COUNT, .norm = GG_MUST,                      \
             .shared = GG_SHARED_WIDTH_ONLY },                                \
    .embd_scale = GG_EMBD_SCALE_KEY, .residual_scale = true,                  \
    .logit_scale = GG_LOGIT_SCALE_OVER

static const struct gg_arch rows[] = {
    { .name = "granite", .runs = true, GRANITE, LONGROPE,
      MORE(K(logit_scale)) },
    { .name = "granitehybrid", .runs = true, GRANITE,
      .other = &gg_mixer_mamba2, .mix_rule = GG_MIX_RULE_NO_KV,
      MORE(SSM, K(ssm_groups)) },
    { .name = "granitemoe", .runs = true, GRANITE, LONGROPE,
      MORE(K(logit_scale)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_granite = { rows, GG_LEN(rows) };
