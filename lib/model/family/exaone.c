/* SPDX-License-Identifier: MIT */
/* exaone.c - EXAONE */
#include "config.h"
#include "model/family/arch_row.h"

/* EXAONE 4's models of 64 layers have windows, smaller ones none. */
static uint32_t window_size(const struct gg_hparams *hp)
{
    if (hp->n_layer != 64)
        return 0;
    return hp->has[GG_HP_n_window] ? hp->n_window : 4096;
}

/* clang-format off */
static const struct gg_arch rows[] = {
    { .name = "exaone", .runs = true, LLAMA, NEOX, FREQS },
    { .name = "exaone-moe", .runs = true, LLAMA, NEOX, OWN, FREQS, HEAD_NORM,
      .rope_rule = &gg_arch_rope_in_windows,
      .window = { &gg_arch_window_last_full, GG_MUST, .period = 4 },
      .moe = { .where = &gg_arch_experts_leading, .gating = GG_GATING_KEY,
               .gating_key = GG_MUST, .expert_bias = GG_MAY, .norm = GG_MAY,
               .scale = true, .ff = &gg_arch_expert_width_given,
               .shared = &gg_arch_shared_wide },
      .nextn = true },
    { .name = "exaone4", .runs = true, POST_NORM, NEOX, FREQS, HEAD_NORM,
      .rope_rule = &gg_arch_rope_in_windows,
      .window = { &gg_arch_window_last_full, GG_MAY, 4,
                  .size = { window_size,
                            "of 4096 unless given; only with 64 layers" } },
      .nextn = true,
      .remark = "without windows every layer has RoPE" },
};
/* clang-format on */

const struct gg_arch_family gg_arch_family_exaone = { rows, GG_LEN(rows) };
