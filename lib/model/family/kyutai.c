/* SPDX-License-Identifier: MIT */
/* kyutai.c - text parts of Kyutai's speech models */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "pockettts", .runs = true, LLAMA, LAYER, .ffn = &gg_ffn_plain,
      .act = &gg_ffn_act_gelu, .output = GG_OUTPUT_EMBD },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_kyutai = { rows, GG_LEN(rows) };
