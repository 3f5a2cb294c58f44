/* SPDX-License-Identifier: MIT */
/* olmo.c - OLMo */
#include "config.h"
#include "model/family/arch_row.h"

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "olmo", .runs = true, LLAMA, .norm = GG_NORM_LAYER,
      .choose_weights = { gg_arch_without_norm_weights,
                          "norms without weights" },
      .clamp_qkv = GG_MAY },
    { .name = "olmo2", .runs = true, POST_NORM, NEOX, OWN,
      .qkv = &gg_arch_qkv_separate, .qk_norm = { .form = GG_QK_ALL_HEADS },
      .window = { &gg_arch_window_last_full, GG_MAY, 4,
                  .rope = &gg_arch_window_rope_plain } },
    { .name = "olmoe", .runs = true, LLAMA, NEOX, OWN,
      .qkv = &gg_arch_qkv_separate, .qk_norm = { .form = GG_QK_ALL_HEADS },
      .moe = MOE_ALL(NO, NULL) },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_olmo = { rows, GG_LEN(rows) };
