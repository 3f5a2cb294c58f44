/* SPDX-License-Identifier: MIT */
/* phi.c - Phi */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "phi2", .runs = true, ONE, LAYER, NEOX, OWN, GELU_B,
      .order = GG_ORDER_PARALLEL, .out_b = GG_MUST, .output_b = GG_MUST },
    { .name = "phi3", .runs = true, LLAMA, NEOX, LONGROPE,
      .ffn = &gg_ffn_fused,
      .remark = "attention.sliding_window is not used" },
    { .name = "phimoe", .runs = true, LLAMA, NEOX, OWN, LONGROPE,
      .choose_norm = { gg_arch_norm_by_epsilon,
                       "RMS or layer norms, by the epsilon's key" },
      .norm_b = GG_MUST, .out_b = GG_MUST, .moe = MOE_ALL(MUST, NULL),
      .output_b = GG_MUST,
      .remark = "the definition has layer norms; files with the key of RMS "
                "norms have those" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_phi = { rows, GG_LEN(rows) };
