/* SPDX-License-Identifier: MIT */
/* mamba.c - Mamba: state spaces */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "jamba", .runs = true, LLAMA, NO_ROPE,
      .other = GG_MIX_MAMBA_NORM, .mix_rule = GG_MIX_RULE_NO_KV,
      .moe = { .where = GG_EXPERTS_TENSOR }, MORE(SSM) },
    { .name = "mamba", .runs = true, ONE, NO_ROPE, .order = GG_ORDER_SINGLE,
      .mixer = GG_MIX_MAMBA, .ffn = GG_FFN_NONE, MORE(SSM, KM(ssm_rms)) },
    { .name = "mamba2", .runs = true, ONE, NO_ROPE, .order = GG_ORDER_SINGLE,
      .mixer = GG_MIX_MAMBA2, .ffn = GG_FFN_NONE, MORE(SSM, K(ssm_groups)) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_mamba = { rows, GG_LEN(rows) };
